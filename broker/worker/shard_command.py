"""Commands of a shard, and the steps they make. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from engine.model.source import SourceName, Stream
from engine.model.step import Body, CreateSource, DropSource, Register, Registration, Unregister


@dataclass(frozen=True, slots=True)
class ShardCommand:
    """One change of what stands on a shard; ``name`` is a query id or a stream's name."""

    kind: Literal["register", "unregister", "create", "drop", "prove"]
    name: str
    sql: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    stream: Stream | None = None

    @classmethod
    def register(cls, name: str, sql: str, options: Mapping[str, Any]) -> ShardCommand:
        return cls("register", name, sql, {key: str(value) for key, value in options.items()})

    @classmethod
    def unregister(cls, name: str) -> ShardCommand:
        return cls("unregister", name)

    @classmethod
    def create(cls, stream: Stream, sql: str) -> ShardCommand:
        return cls("create", stream.name, sql, stream=stream)

    @classmethod
    def prove(cls) -> ShardCommand:
        """Makes a step that changes nothing."""
        return cls("prove", "")

    @classmethod
    def drop(cls, name: str) -> ShardCommand:
        return cls("drop", name)


@dataclass(frozen=True, slots=True)
class Made:
    """A step's body and the places of the commands it carries out; no body: they changed nothing."""

    body: Body | None
    places: tuple[int, ...]


def step_bodies(
    commands: Sequence[ShardCommand], queries: Mapping[str, str], streams: Collection[str]
) -> Iterator[Made]:
    """The steps of these commands, in order; runs of one kind share a step.

    ``queries``: id -> text of what stands, ``streams``: names of what stands; both are looked at when a step
    is asked for, so the caller keeps them up to date in between. A text under the id of another one
    replaces it: a removal, then a registration.
    """
    place = 0
    while place < len(commands):
        kind = commands[place].kind
        if kind == "register":
            stop, seen = place, set[str]()
            while stop < len(commands) and commands[stop].kind == kind and commands[stop].name not in seen:
                seen.add(commands[stop].name)
                stop += 1
            yield from _register(commands, range(place, stop), queries)
        elif kind == "unregister":
            stop = place
            while stop < len(commands) and commands[stop].kind == kind:
                stop += 1
            known = tuple(i for i in range(place, stop) if commands[i].name in queries)
            if known:
                yield Made(Unregister(tuple(commands[i].name for i in known)), known)
            yield Made(None, tuple(i for i in range(place, stop) if i not in set(known)))
        elif kind == "prove":
            stop = place + 1
            yield Made(Unregister(()), (place,))
        else:
            stop = place + 1
            yield Made(_source_body(commands[place], streams), (place,))
        place = stop


def _register(commands: Sequence[ShardCommand], places: range, queries: Mapping[str, str]) -> Iterator[Made]:
    same = tuple(i for i in places if queries.get(commands[i].name) == commands[i].sql)
    coming = tuple(i for i in places if queries.get(commands[i].name) != commands[i].sql)
    replaced = tuple(commands[i].name for i in coming if commands[i].name in queries)
    yield Made(None, same)
    if replaced:
        yield Made(Unregister(replaced), ())
    if coming:
        registrations = tuple(
            Registration(commands[i].name, commands[i].sql, options=commands[i].options) for i in coming
        )
        yield Made(Register(registrations), coming)


def _source_body(command: ShardCommand, streams: Collection[str]) -> Body | None:
    if command.kind == "create":
        if command.name in streams:
            return None
        assert command.stream is not None
        return CreateSource(command.stream, command.sql)
    return DropSource(SourceName(command.name)) if command.name in streams else None

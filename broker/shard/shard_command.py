"""Commands of a shard, and the steps they make. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import orjson

from broker.base.internal import Outcome
from broker.base.options import as_text, weight_of
from engine.language.templates import Read
from engine.model.allotment import Allotment
from engine.model.plain import compact
from engine.model.source import Derived, SourceName, Stream
from engine.model.step import (
    Allocate,
    Alter,
    AlterSummary,
    Body,
    CreateDerived,
    CreateSource,
    CreateSummary,
    DropSource,
    DropSummary,
    Heartbeat,
    Position,
    Register,
    Registration,
    Unregister,
)
from engine.model.summary import SummaryDefinition, SummaryName
from engine.queries.summaries import NamedSummary
from topics.wording import Values, said
from tureen.errors import TureenError

ID_BYTES = 64
"""More than a query id takes in a step's record."""
ALLOTMENT_BYTES = 1_024
"""More than an allotment takes there, of a query with as many sources as there may be."""
FRAME_BYTES = 256
"""More than a registration takes there besides its text, parameters and options."""

_NOTHING_PROMISED: Mapping[int, int] = {}

Standing = tuple[str, Mapping[str, str]]
"""What the registration of a standing query said, and the query's options."""


class Bound(NamedTuple):
    """A text that was bound, and the catalogue and the summaries that it was bound against."""

    read: Read
    catalogue: Mapping[str, Stream | Derived]
    summaries: Mapping[SummaryName, SummaryDefinition]


@dataclass(frozen=True, slots=True)
class ShardCommand:
    """One change of what stands on a shard; ``name`` is a query id, or that of a stream, a view, a summary.

    bound: of a registration, so that the shard's thread need not bind its text again. awake: sources whose
    clock is brought up to date first. below: of a heartbeat, as its step has it. allotment: what a query is
    given from now on. summary: of one that is created, or that stands and gets these settings. forced: a
    summary goes even if queries use it.
    """

    kind: Literal[
        "register",
        "unregister",
        "create",
        "drop",
        "create_summary",
        "drop_summary",
        "prove",
        "heartbeat",
        "allocate",
    ]
    name: str
    sql: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    source: Stream | Derived | None = None
    parameters: Values | None = None
    bound: Bound | None = None
    awake: tuple[str, ...] = ()
    below: Mapping[int, int] = field(default_factory=lambda: _NOTHING_PROMISED)
    allotment: Allotment | None = None
    summary: SummaryDefinition | None = None
    forced: bool = False

    @property
    def reads(self) -> tuple[str, ...]:
        """The sources whose clock it needs: of a query that is registered, those that it reads."""
        if self.bound is None or self.bound.read.template is None:
            return self.awake
        return self.bound.read.template.sources

    @property
    def size(self) -> int:
        """Bytes of a registration in its step's record, about."""
        return len(orjson.dumps([self.sql, self.parameters, dict(self.options)])) + FRAME_BYTES

    @property
    def said(self) -> str:
        """Equal for equal texts and parameters alone."""
        return said(self.sql, self.parameters)

    @property
    def standing(self) -> Standing:
        """What stands once this registration is applied."""
        return self.said, self.options

    def outcome(self, position: Position, error: Exception | None) -> Outcome:
        """What became of it."""
        if error is not None:
            told = error.as_dict() if isinstance(error, TureenError) else {"message": repr(error)}
            return {"state": "ERROR", "error": {"code": "error"} | told, "position": str(position)}
        gone = self.kind in ("unregister", "drop", "drop_summary")
        return {"state": "GONE" if gone else "RUNNING", "error": None, "position": str(position)}

    @classmethod
    def register(
        cls,
        name: str,
        sql: str,
        options: Mapping[str, Any],
        parameters: Values | None = None,
        bound: Bound | None = None,
    ) -> ShardCommand:
        return cls("register", name, sql, as_text(options), parameters=parameters, bound=bound)

    @classmethod
    def unregister(cls, name: str) -> ShardCommand:
        return cls("unregister", name)

    @classmethod
    def create(cls, stream: Stream, sql: str) -> ShardCommand:
        return cls("create", stream.name, sql, source=stream)

    @classmethod
    def create_derived(cls, derived: Derived) -> ShardCommand:
        return cls("create", derived.name, source=derived)

    @classmethod
    def create_summary(cls, definition: SummaryDefinition, sql: str) -> ShardCommand:
        return cls("create_summary", definition.name, sql, summary=definition)

    @classmethod
    def drop_summary(cls, name: SummaryName, *, forced: bool = False) -> ShardCommand:
        return cls("drop_summary", name, forced=forced)

    @classmethod
    def prove(cls, awake: tuple[str, ...] = ()) -> ShardCommand:
        """Makes a step that changes nothing."""
        return cls("prove", "", awake=awake)

    @classmethod
    def heartbeat(cls, name: str, below: Mapping[int, int]) -> ShardCommand:
        return cls("heartbeat", name, below=below)

    @classmethod
    def allocate(cls, name: str, allotment: Allotment) -> ShardCommand:
        return cls("allocate", name, allotment=allotment)

    @classmethod
    def drop(cls, name: str) -> ShardCommand:
        return cls("drop", name)


@dataclass(frozen=True, slots=True)
class Made:
    """A step's body and the places of the commands it carries out; no body: they changed nothing."""

    body: Body | None
    places: tuple[int, ...]


def step_bodies(
    commands: Sequence[ShardCommand],
    queries: Mapping[str, Standing],
    sources: Mapping[str, Stream | Derived],
    summaries: Mapping[SummaryName, NamedSummary],
    bytes_max: int,
    continues: Callable[[Registration], bool],
) -> Iterator[Made]:
    """The steps of these commands, in order; runs of one kind share a step, up to so many bytes.

    ``queries``: id -> what stands, ``sources``: streams and views that stand, ``summaries``: those that
    stand; all are looked at when a step is asked for, so the caller keeps them up to date in between. A text
    under the id of another one alters that query where ``continues`` says that its changes keep their shape,
    else it replaces it: a removal, and then a registration. The same text with other options changes those,
    and nothing else.
    """
    place = 0
    while place < len(commands):
        kind = commands[place].kind
        stop = place + 1
        if kind == "register":
            stop = _end_of_run(commands, place, repeats=False)
            yield from _register(commands, range(place, stop), queries, bytes_max, continues)
        elif kind == "unregister":
            stop = _end_of_run(commands, place, repeats=True)
            known = tuple(i for i in range(place, stop) if commands[i].name in queries)
            for first in range(0, len(known), bytes_max // ID_BYTES):
                part = known[first : first + bytes_max // ID_BYTES]
                yield Made(Unregister(tuple(commands[i].name for i in part)), part)
            yield Made(None, tuple(i for i in range(place, stop) if i not in set(known)))
        elif kind == "allocate":
            most = max(1, bytes_max // ALLOTMENT_BYTES)
            stop = min(_end_of_run(commands, place, repeats=False), place + most)
            given = [(one.name, one.allotment) for one in commands[place:stop]]
            body = Allocate(tuple((name, one) for name, one in given if one is not None))
            yield Made(body, tuple(range(place, stop)))
        elif kind == "prove":
            yield Made(Unregister(()), (place,))
        elif kind == "heartbeat":
            one = commands[place]
            there = one.name in sources
            yield Made(Heartbeat(SourceName(one.name), below=one.below) if there else None, (place,))
        elif kind in ("create_summary", "drop_summary"):
            yield Made(_summary_body(commands[place], summaries), (place,))
        else:
            yield Made(_source_body(commands[place], sources), (place,))
        place = stop


def _end_of_run(commands: Sequence[ShardCommand], place: int, *, repeats: bool) -> int:
    """Where the commands end that follow one and are of its kind. repeats: a name may come again."""
    seen = set[str]()
    stop = place
    while stop < len(commands) and commands[stop].kind == commands[place].kind:
        if not repeats and commands[stop].name in seen:
            break
        seen.add(commands[stop].name)
        stop += 1
    return stop


def _register(
    commands: Sequence[ShardCommand],
    places: range,
    queries: Mapping[str, Standing],
    bytes_max: int,
    continues: Callable[[Registration], bool],
) -> Iterator[Made]:
    same = tuple(i for i in places if queries.get(commands[i].name) == commands[i].standing)
    coming = tuple(i for i in places if queries.get(commands[i].name) != commands[i].standing)
    others = tuple(
        i for i in coming if commands[i].name in queries and queries[commands[i].name][0] != commands[i].said
    )
    altered = tuple(i for i in others if continues(registration_of(commands[i])))
    new = tuple(i for i in coming if i not in set(altered))
    yield Made(None, same)
    for removal in unregister_bodies([commands[i].name for i in others if i in set(new)], bytes_max):
        yield Made(removal, ())
    for body, kinds in ((Alter, altered), (Register, new)):
        for part in _parts(commands, kinds, bytes_max):
            yield Made(body(tuple(registration_of(commands[i]) for i in part)), part)


def unregister_bodies(query_ids: Sequence[str], bytes_max: int) -> Iterator[Unregister]:
    """Steps that remove these queries, each of so many bytes at most."""
    at_once = bytes_max // ID_BYTES
    for first in range(0, len(query_ids), at_once):
        yield Unregister(tuple(query_ids[first : first + at_once]))


def _parts(
    commands: Sequence[ShardCommand], places: Sequence[int], bytes_max: int
) -> Iterator[tuple[int, ...]]:
    """Places of registrations that share a step: one at least."""
    part: list[int] = []
    size = 0
    for place in places:
        own = commands[place].size
        if part and size + own > bytes_max:
            yield tuple(part)
            part, size = [], 0
        part.append(place)
        size += own
    if part:
        yield tuple(part)


def registration_of(command: ShardCommand) -> Registration:
    """What a step says of a query that it brings."""
    return compact(
        command.name,
        command.sql,
        weight=weight_of(command.options),
        options=command.options,
        parameters=command.parameters,
    )


def _summary_body(command: ShardCommand, summaries: Mapping[SummaryName, NamedSummary]) -> Body | None:
    there = summaries.get(command.name)
    if command.kind == "drop_summary":
        return None if there is None else DropSummary(command.name, command.forced)
    assert command.summary is not None
    if there is None:
        return CreateSummary(command.summary, command.sql)
    return (
        None if there.definition == command.summary else AlterSummary(command.name, command.summary.settings)
    )


def _source_body(command: ShardCommand, sources: Mapping[str, Stream | Derived]) -> Body | None:
    if command.kind == "drop":
        return DropSource(SourceName(command.name)) if command.name in sources else None
    assert command.source is not None
    if sources.get(command.name) == command.source:
        return None
    if isinstance(command.source, Derived):
        return CreateDerived(command.source)
    return CreateSource(command.source, command.sql)

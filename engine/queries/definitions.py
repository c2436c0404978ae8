"""What becomes of a definition: what CREATE, ALTER and DROP make of what stands, decided in one place.

Pure. An engine decides so over its steps, a broker over requests and records of the registry, a scale-out
over such records. Each says what stands with it (:class:`Definitions`) and carries out what is decided. What
only one of them knows, it asks besides: room in memory, topics, shards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from engine.changes.result_key import result_key
from engine.language.places import Place
from engine.language.query import CreateFromQuery, CreateStream, Query
from engine.model.constraint import target_of
from engine.model.source import Derived, Stream
from engine.model.summary import SummaryDefinition, SummaryName, SummarySettings
from tureen.errors import NotSupported, SourceConflict, SummaryConflict, UnknownSource


class Decision(Enum):
    """What is to be done. WAITS: until a source comes. ABSENT: what is to go is not there."""

    CREATE = "create"
    REPLACE = "replace"
    ALTER = "alter"
    SAME = "same"
    WAITS = "waits"
    DROP = "drop"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Create:
    """A definition is to stand.

    replaces: it may take the place of what stands under its name, a view of any other view, a summary of one
    that differs in what ALTER sets. if_not_exists: whatever stands under its name will do.
    """

    definition: Stream | Derived | SummaryDefinition
    replaces: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class Unbound:
    """A definition whose text means nothing yet, since what it reads is not there. of_summary: it is one."""

    missing: UnknownSource
    of_summary: bool = False


@dataclass(frozen=True, slots=True)
class Drop:
    """A name is to be free.

    kind: what it must be, as :func:`kind_of` says; None: a stream, a table or a view. cascade: what reads it
    goes before. forced: a summary goes although queries use it.
    """

    kind: str | None = None
    cascade: bool = False
    forced: bool = False


def _none(name: str) -> tuple[str, ...]:
    return ()


def nobody(name: str) -> int:
    """How many queries read it where none stand."""
    return 0


@dataclass(frozen=True, slots=True)
class Definitions:
    """What stands.

    readers: how many queries read a source. views: those that read it. referring: the other streams with a
    constraint that refers to it. users: how many queries use a summary. They are asked where something is to
    go or to be replaced.
    """

    sources: Mapping[str, Stream | Derived] = field(default_factory=dict)
    summaries: Mapping[SummaryName, SummaryDefinition] = field(default_factory=dict)
    readers: Callable[[str], int] = nobody
    views: Callable[[str], Iterable[str]] = _none
    referring: Callable[[str], Iterable[str]] = _none
    users: Callable[[str], int] = nobody


def decide(name: str, wanted: Create | Unbound | Drop, definitions: Definitions) -> Decision:
    """What becomes of a statement about a name.

    Raises SourceConflict, SummaryConflict: what stands does not let it; UnknownSource: it stands, and is to
    read what is not there. O(1) and, where something goes or is replaced, what the definitions ask.
    """
    match wanted:
        case Unbound(missing, of_summary):
            if name in (definitions.summaries if of_summary else definitions.sources):
                raise missing
            return Decision.WAITS
        case Create(definition):
            if isinstance(definition, SummaryDefinition):
                return _of_summary(name, wanted, definition, definitions)
            return _of_source(name, wanted, definition, definitions)
        case Drop(kind="summary"):
            if name not in definitions.summaries:
                return Decision.ABSENT
            users = 0 if wanted.forced else definitions.users(name)
            if users:
                noun = "query uses" if users == 1 else "queries use"
                hint = "end them first: SHOW QUERIES EXTENDED lists what each reads"
                raise SummaryConflict(f"{users:,} {noun} the summary {name!r}", hint=hint)
            return Decision.DROP
        case Drop():
            return _of_drop(name, wanted, definitions)


def create_of(statement: CreateStream | CreateFromQuery, sources: Mapping[str, Stream | Derived]) -> Create:
    """What a statement asks for as a record of the registry, which takes the place of the record before it:
    IF NOT EXISTS was answered before it was written. sources: those that stand.

    Raises NotSupported: it would make a table of rows that nothing tells apart.
    """
    if isinstance(statement, CreateStream):
        return Create(statement.stream)
    if statement.derived.is_table and key_of(statement.query, sources) is None:
        raise Place(statement.sql, max(statement.sql.find(statement.derived.sql), 0)).refuse(
            NotSupported,
            "rows of this SELECT have no key, which a table needs",
            hint="select the columns that it groups by, or the key of a table; or write CREATE VIEW "
            f"{statement.derived.name} AS SELECT ...",
        )
    return Create(statement.derived, replaces=statement.replace)


def key_of(query: Query, sources: Mapping[str, Stream | Derived]) -> tuple[str, ...] | None:
    """The columns of an answer that tell its rows apart; None: none do. sources: those that stand."""
    streams = {one.name: one for one in sources.values() if isinstance(one, Stream)}
    places = result_key(query, streams)
    return None if places is None else tuple(query.columns[place][0] for place in places)


def kind_of(source: Stream | Derived | None) -> str:
    """What lists call it; "stream" where it is not there."""
    match source:
        case Stream():
            return source.kind
        case Derived():
            return source.kind
        case _:
            return "stream"


def referring(streams: Iterable[Stream], name: str) -> list[str]:
    """The other streams of which a constraint refers to one. O(constraints)."""
    return [
        one.name
        for one in streams
        if one.name != name and any(target_of(constraint) == name for constraint in one.constraints)
    ]


def _of_source(name: str, wanted: Create, made: Stream | Derived, definitions: Definitions) -> Decision:
    if made.name != name:
        raise SourceConflict(_misnamed(name, made.name), hint="use the same name in both")
    there = definitions.sources.get(name)
    if there is None:
        return Decision.CREATE
    if there == made:
        return Decision.SAME
    if wanted.replaces and isinstance(made, Derived) and isinstance(there, Derived):
        _refuse_if_read(name, there, definitions)
        return Decision.REPLACE
    if wanted.if_not_exists:
        return Decision.SAME
    what = kind_of(there)
    raise SourceConflict(
        f"a {what} named {name!r} exists with another definition",
        hint=f"DROP {what.upper()} {name} first, or choose another name",
    )


def _of_summary(name: str, wanted: Create, made: SummaryDefinition, definitions: Definitions) -> Decision:
    if made.name != name:
        raise SummaryConflict(_misnamed(name, made.name), hint="use the same name in both")
    there = definitions.summaries.get(made.name)
    if there is None:
        return Decision.CREATE
    if there == made or wanted.if_not_exists:
        return Decision.SAME
    if wanted.replaces and replace(there, settings=altered(there.settings, made.settings)) == made:
        return Decision.ALTER
    raise SummaryConflict(
        f"a summary named {name!r} exists with another definition",
        hint=f"DROP SUMMARY {name} first, or choose another name; ALTER SUMMARY {name} SET (...) changes "
        "theta and zone_rows_min",
    )


def altered(there: SummarySettings, wanted: SummarySettings) -> SummarySettings:
    """What ALTER SUMMARY can make of settings towards those that are wanted."""
    return replace(there, theta=wanted.theta, zone_rows_min=wanted.zone_rows_min)


def _misnamed(name: str, made: str) -> str:
    return f"the key is {name!r}, the statement creates {made!r}"


def _of_drop(name: str, wanted: Drop, definitions: Definitions) -> Decision:
    there = definitions.sources.get(name)
    if there is None:
        return Decision.ABSENT
    what = kind_of(there)
    if wanted.kind not in (None, what):
        raise SourceConflict(f"{name!r} is a {what}", hint=f"write DROP {what.upper()} {name}")
    if not wanted.cascade:
        _refuse_if_read(name, there, definitions)
    for other in definitions.referring(name):
        raise SourceConflict(f"a constraint of {other!r} refers to {name!r}", hint=f"drop {other} first")
    summaries = sorted(one.name for one in definitions.summaries.values() if one.stream == name)
    if summaries and not wanted.cascade:
        raise SummaryConflict(
            f"{name!r} is summarised by {', '.join(summaries)}",
            hint=f"DROP SUMMARY {summaries[0]} first, or write CASCADE",
        )
    return Decision.DROP


def _refuse_if_read(name: str, there: Stream | Derived, definitions: Definitions) -> None:
    """Raise SourceConflict while a query or a view reads it."""
    readers = definitions.readers(name)
    if readers:
        what = kind_of(there)
        noun = "query reads" if readers == 1 else "queries read"
        raise SourceConflict(
            f"{readers:,} {noun} the {what} {name!r}",
            hint=f"end them first, as DROP {what.upper()} {name} CASCADE does; SHOW QUERIES EXTENDED lists "
            "what each reads",
        )
    for other in definitions.views(name):
        raise SourceConflict(f"{other} reads {name!r}", hint=f"drop {other} first, or write CASCADE")

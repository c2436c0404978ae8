"""A micro-batch: what was decided of it before anything of it was done.

One record step of every stream, in the order of their names, as an engine would take them: the rows of
partition 0, then of 1, and so on. Definitions, removals and registrations come before the rows. Everything
that decides an answer is in here, the clock too, so that a micro-batch which is run again, after a crash or
for a shard that catches up, gives the same records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from engine.model.persistence import PartitionClock
from engine.model.plain import (
    registration_as_dict,
    registration_from_dict,
    stream_as_dict,
    stream_from_dict,
)
from engine.model.source import Derived, SourceName, Stream
from engine.model.step import CreateDerived, CreateSource, DropSource, Position, Registration

VERSION = 2

WRITERS_MAX = 1 << 20
"""Writers of one micro-batch, at most: each has a position of its own."""

Placement = Literal["rows", "parts", "lane"]
"""Where a query is at work: beside the rows as they come, in all shards, in the one that has all rows
(``lane`` in what is stored and told)."""

Definition = CreateSource | CreateDerived | DropSource


class RecordRange(NamedTuple):
    """Records of a partition: first <= offset < until."""

    partition: int
    first: int
    until: int


class Summary(NamedTuple):
    """Consecutive rows of a partition in one piece, as the clock has to know them.

    max_ms: of those that are not refused as lying in the future, None where there is none.
    """

    partition: int
    first: int
    rows: int
    max_ms: int | None


@dataclass(frozen=True, slots=True)
class ClockState:
    """A source's time between two micro-batches, as its clock saves it."""

    now_ms: int | None = None
    clock_ms: int = 0
    partitions: Mapping[int, PartitionClock] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return {
            "now_ms": self.now_ms,
            "clock_ms": self.clock_ms,
            "partitions": [
                [p, c.timestamp_max_ms, c.active_clock_ms, c.next_offset] for p, c in self.partitions.items()
            ],
        }

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> ClockState:
        clocks = {p: PartitionClock(*rest) for p, *rest in facts["partitions"]}
        return cls(facts["now_ms"], facts["clock_ms"], clocks)


@dataclass(frozen=True, slots=True)
class SourceStep:
    """The step of one source. ranges: of every partition of its topic, empty ones too.

    lagging: partitions of which the log has more. before, after: its time; summaries: of its rows, in order.
    topic_id: of the life of the topic that is read, empty before it was known. lost: the topic is another one
    now, or gone: nothing is read, and NOW stands still.
    """

    source: SourceName
    topic: str
    ranges: tuple[RecordRange, ...]
    lagging: frozenset[int]
    before: ClockState
    topic_id: str = ""
    lost: bool = False
    summaries: tuple[Summary, ...] = ()
    after: ClockState = field(default_factory=ClockState)

    @property
    def now_before_ms(self) -> int | None:
        return self.before.now_ms

    @property
    def now_ms(self) -> int | None:
        return self.after.now_ms

    @property
    def next_offsets(self) -> dict[int, int]:
        """Where reading goes on."""
        return {one.partition: one.until for one in self.ranges}

    def as_dict(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "topic": self.topic,
            "ranges": [list(one) for one in self.ranges],
            "lagging": sorted(self.lagging),
            "before": self.before.as_dict(),
            "topic_id": self.topic_id,
            "lost": self.lost,
            "summaries": [list(one) for one in self.summaries],
            "after": self.after.as_dict(),
        }

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> SourceStep:
        return cls(
            SourceName(facts["source"]),
            facts["topic"],
            tuple(RecordRange(*one) for one in facts["ranges"]),
            frozenset(facts["lagging"]),
            ClockState.from_dict(facts["before"]),
            facts["topic_id"],
            facts["lost"],
            tuple(Summary(*one) for one in facts["summaries"]),
            ClockState.from_dict(facts["after"]),
        )


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """number: from 1. epoch: counts the runs of the job. plan: the version of what stands during it.

    placements: by id, of the queries of ``coming``. begins: by id, of those beside the rows that are to begin
    with their answer over the rows which are there, the stream: shards have these.
    """

    number: int
    epoch: int
    clock_ms: int
    plan: int
    definitions: tuple[Definition, ...] = ()
    going: tuple[str, ...] = ()
    coming: tuple[Registration, ...] = ()
    placements: Mapping[str, Placement] = field(default_factory=dict)
    begins: Mapping[str, SourceName] = field(default_factory=dict)
    steps: tuple[SourceStep, ...] = ()

    def position(self, writer: int) -> Position:
        """Position of what one of its writers writes: 0 <= writer < WRITERS_MAX."""
        return Position(self.epoch, self.number * WRITERS_MAX + writer)

    def as_dict(self) -> dict[str, Any]:
        return {
            "v": VERSION,
            "number": self.number,
            "epoch": self.epoch,
            "clock_ms": self.clock_ms,
            "plan": self.plan,
            "definitions": [_definition_as_dict(one) for one in self.definitions],
            "going": list(self.going),
            "coming": [registration_as_dict(one) for one in self.coming],
            "lanes": dict(self.placements),
            "begins": dict(self.begins),
            "steps": [one.as_dict() for one in self.steps],
        }

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> MicroBatch:
        return cls(
            facts["number"],
            facts["epoch"],
            facts["clock_ms"],
            facts["plan"],
            tuple(_definition_of(one) for one in facts["definitions"]),
            tuple(facts["going"]),
            tuple(registration_from_dict(one) for one in facts["coming"]),
            facts["lanes"],
            {query_id: SourceName(name) for query_id, name in facts["begins"].items()},
            tuple(SourceStep.from_dict(one) for one in facts["steps"]),
        )


def _definition_as_dict(one: Definition) -> dict[str, Any]:
    match one:
        case CreateSource(stream, sql):
            return {"kind": "create", "stream": stream_as_dict(stream), "sql": sql}
        case CreateDerived(derived):
            return {"kind": "derive", **derived.as_dict()}
        case DropSource(name):
            return {"kind": "drop", "name": name}


def _definition_of(facts: Mapping[str, Any]) -> Definition:
    match facts["kind"]:
        case "create":
            return CreateSource(stream_from_dict(facts["stream"]), facts["sql"])
        case "derive":
            name, is_table = SourceName(facts["name"]), facts.get("is_table", False)
            return CreateDerived(Derived(name, facts["sql"], facts["is_stream"], is_table))
        case _:
            return DropSource(SourceName(facts["name"]))


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that stands: streams with their statements, views, queries with where they are at work.

    broken: queries that ended since their changes could not be told, and why. They stay so over later runs.
    """

    version: int = 0
    streams: tuple[tuple[Stream, str], ...] = ()
    derived: tuple[Derived, ...] = ()
    queries: tuple[tuple[Registration, Placement], ...] = ()
    broken: tuple[tuple[Registration, Mapping[str, Any]], ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return {
            "v": VERSION,
            "version": self.version,
            "streams": [[stream_as_dict(stream), sql] for stream, sql in self.streams],
            "derived": [[one.name, one.sql, one.is_stream, one.is_table] for one in self.derived],
            "queries": [[registration_as_dict(one), where] for one, where in self.queries],
            "broken": [[registration_as_dict(one), dict(error)] for one, error in self.broken],
        }

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> Plan:
        return cls(
            facts["version"],
            tuple((stream_from_dict(stream), sql) for stream, sql in facts["streams"]),
            tuple(Derived(SourceName(name), *rest) for name, *rest in facts["derived"]),
            tuple((registration_from_dict(one), where) for one, where in facts["queries"]),
            tuple((registration_from_dict(one), error) for one, error in facts["broken"]),
        )

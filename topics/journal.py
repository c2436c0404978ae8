"""The step journal: what a shard applied, as records of its partition of the steps topic.

A record is a JSON object with a version. A step of records does not carry them, but names them: the ranges
of the source topic in batch order, so that the same batch is read and decoded again. A step of history names
what it took from the archive. The outcome (NOW, the idle partitions) stands beside it for checking. The
record's key is the position's text, so that steps before a position are passed over without being parsed.

Replaying the journal from the beginning gives the engine's state; a gap in it is an error, never skipped.
Records of a table may be gone, where its compacted topic has later ones of the same keys: a replay then gives
the same rows at its end, if not the same versions on its way.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import orjson

from engine.model.allotment import Allotment
from engine.model.batch import Batch
from engine.model.plain import (
    registration_as_dict,
    registration_from_dict,
    stream_as_dict,
    stream_from_dict,
    summary_as_dict,
    summary_from_dict,
)
from engine.model.shed import Shed
from engine.model.source import Derived, SourceName
from engine.model.step import (
    Allocate,
    Alter,
    AlterSummary,
    Backfill,
    Body,
    Claim,
    CreateDerived,
    CreateSource,
    CreateSummary,
    DropSource,
    DropSummary,
    Heartbeat,
    OutputWritten,
    Position,
    Records,
    Register,
    Rejoin,
    SetApart,
    Step,
    StepResult,
    Unregister,
    Written,
)
from engine.model.summary import SummarySettings
from topics.consumer import Range
from tureen.errors import TureenError

VERSION = 8
VERSIONS_READ = (1, 2, 3, 4, 5, 6, 7, 8)
NAMING = {Unregister: "unregister", SetApart: "set_apart", Rejoin: "rejoin"}
"""The kinds of steps that name queries, and nothing else."""
PAUSES_KEEP_ANSWERS = 6
"""Steps of earlier versions took the answers of followed queries back when these were paused."""
"""Version 1 knew no registrations with parameters, 2 no rows of the archive, 3 not from
when on rows are whole; 4 took members as columns by exact names only, and timestamps in seconds as rows, and
knew neither owners, nor output that is written later, nor altered queries; 5 no promises of heartbeats, no
allotments and no records that were shed, and it took the answers of paused queries back; 6 no summaries and
no grants of work; 7 set no queries apart."""


class JournalUnreadable(TureenError):
    """A step record that this version does not know, or a gap between two of them."""

    code = "journal_unreadable"


@dataclass(frozen=True, slots=True)
class RecordsNamed:
    """A step of records without its batch: where the records are, and how many of them gave a row.

    exact: it was written when members were columns by their exact names only, and timestamps in seconds were
    rows. heartbeats: so many of the records promised something and are no rows. shed: as of the step; what
    was not read is in none of the ranges. unknown_schemas: as of the step.
    """

    source: SourceName
    ranges: tuple[Range, ...]
    next_offsets: Mapping[int, int]
    lagging: frozenset[int]
    rows: int
    complete_from_ms: int | None = None
    exact: bool = False
    heartbeats: int = 0
    shed: Shed | None = None
    grant: int = 0
    unknown_schemas: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class HistoryNamed:
    """A step that brought rows back from the archive, without them: what was read, and what it gave.

    from_ms, until_ms: the rows at from_ms <= instant < until_ms. The latter is the history boundary, or was
    when they were read: then the step has what the stream held between as well. below: of each partition
    those with lower offsets, which are all that the archive had; what came into it later is not part of the
    step. rows, digest: how many, and :func:`digest_of` them.
    """

    source: SourceName
    from_ms: int
    until_ms: int
    below: Mapping[int, int]
    rows: int
    digest: str

    def check(self, batch: Batch) -> None:
        """Raise JournalUnreadable where what was read again is not the same."""
        if len(batch) != self.rows or digest_of(batch) != self.digest:
            raise JournalUnreadable(
                f"a step had {self.rows:,} archived rows of {self.source}, the archive has {len(batch):,} "
                "now, or others"
            )


@dataclass(frozen=True, slots=True)
class Deferral:
    """Which of the changes that a step caused were not written with it, and which never will be.

    later: the queries all of whose changes in this step are written later (:class:`Written`); None: all
    queries that emit. rows: how many changes these are. dropped: queries of whose changes in this step and
    earlier ones nothing more is written.
    """

    later: frozenset[str] | None = frozenset()
    rows: int = 0
    dropped: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return self.some_later or bool(self.dropped)

    @property
    def some_later(self) -> bool:
        """Whether there are changes that are written later."""
        return self.later is None or bool(self.later)

    def is_later(self, query_id: str) -> bool:
        """Whether the changes of a query are written later."""
        return self.later is None or query_id in self.later


NOTHING_DEFERRED = Deferral()


def digest_of(rows: Batch) -> str:
    """Which records the rows are of, in order, as 32 hexadecimal digits: a record never changes."""
    hashed = hashlib.blake2b(digest_size=16)
    for numbers in (rows.partition, rows.offset, rows.timestamp):
        hashed.update(np.ascontiguousarray(numbers, "<i8").data)
    return hashed.hexdigest()


@dataclass(frozen=True, slots=True)
class StepRecord:
    """A journalled step. ``body`` is the step's own, or :class:`RecordsNamed` in the place of Records, or
    :class:`HistoryNamed` in that of Backfill.

    now_ms, idle: the outcome, as StepResult has it; equal when the step is replayed.
    """

    position: Position
    clock_ms: int
    body: RecordsNamed | HistoryNamed | Body
    now_ms: int | None
    idle: frozenset[int]
    deferral: Deferral = NOTHING_DEFERRED

    def step(self, batch: Batch | None = None, *, compacted: bool = False) -> Step:
        """The step itself. ``batch``: what :class:`RangeReader` gave for a step of records; ``compacted``: it
        may have fewer rows than the step had.
        """
        body: Body
        if isinstance(self.body, RecordsNamed):
            if (
                batch is None
                or len(batch) > self.body.rows
                or (len(batch) < self.body.rows and not compacted)
            ):
                got = "none" if batch is None else f"{len(batch):,}"
                raise JournalUnreadable(
                    f"step {self.position} had {self.body.rows:,} rows of {self.body.source}, now {got}"
                )
            named = self.body
            body = Records(
                named.source,
                batch,
                named.next_offsets,
                named.lagging,
                complete_from_ms=named.complete_from_ms,
                unreadable=sum(one.count for one in named.ranges) - named.rows - named.heartbeats,
                shed=named.shed,
                grant=named.grant,
                unknown_schemas=named.unknown_schemas,
            )
        elif isinstance(self.body, HistoryNamed):
            raise JournalUnreadable(f"step {self.position} takes rows of the archive")
        else:
            body = self.body
        return Step(self.position, self.clock_ms, body)


def encode_step(
    step: Step,
    result: StepResult,
    read: Sequence[Range] | HistoryNamed = (),
    deferral: Deferral = NOTHING_DEFERRED,
) -> tuple[bytes, bytes]:
    """(key, value) of the step's record. ``read``: of all records read for it, bad ones too; or what was
    read from the archive. ``deferral``: of its changes.
    """
    value = {
        "v": VERSION,
        "epoch": step.position.epoch,
        "sequence": step.position.sequence,
        "clock_ms": step.clock_ms,
        "now_ms": result.now_ms,
        "idle": sorted(result.idle),
        **_body(step.body, read),
        **_deferred(deferral),
    }
    return str(step.position).encode("ascii"), orjson.dumps(value)


def decode_step(value: bytes) -> StepRecord:
    """The inverse. Raises JournalUnreadable: not a step, or written by a later version."""
    try:
        facts = orjson.loads(value)
        version = facts["v"]
    except (ValueError, TypeError, KeyError) as error:
        raise JournalUnreadable(f"not a step record: {error}") from error
    if version not in VERSIONS_READ:
        raise JournalUnreadable(
            f"a step record of version {version}, this program reads versions up to {VERSION}",
            hint="run the version that wrote it, or a later one",
        )
    try:
        return StepRecord(
            Position(facts["epoch"], facts["sequence"]),
            facts["clock_ms"],
            _body_of(facts),
            facts["now_ms"],
            frozenset(facts["idle"]),
            _deferral_of(facts),
        )
    except (ValueError, TypeError, KeyError, ArithmeticError) as error:
        raise JournalUnreadable(f"a damaged step record: {error!r}") from error


def _body(body: Body, read: Sequence[Range] | HistoryNamed) -> dict[str, Any]:
    match body:
        case Backfill():
            assert isinstance(read, HistoryNamed)
            return _backfill(read)
        case Records():
            assert not isinstance(read, HistoryNamed)
            return _records(body, read)
        case Heartbeat():
            beat: dict[str, Any] = {
                "kind": "heartbeat",
                "source": body.source,
                "lagging": sorted(body.lagging),
            }
            if body.below:
                beat["below"] = sorted(body.below.items())
            return beat | ({"grant": body.grant} if body.grant else {})
        case Register():
            return {
                "kind": "register",
                "registrations": [registration_as_dict(one) for one in body.registrations],
            }
        case Alter():
            return {
                "kind": "alter",
                "registrations": [registration_as_dict(one) for one in body.registrations],
            }
        case Allocate(allotments):
            return {"kind": "allocate", "allotments": [[name, one.as_dict()] for name, one in allotments]}
        case Unregister(query_ids) | SetApart(query_ids) | Rejoin(query_ids):
            return {"kind": NAMING[type(body)], "query_ids": list(query_ids)}
        case CreateSource():
            return {"kind": "create", "sql": body.sql, "stream": stream_as_dict(body.stream)}
        case CreateDerived(derived):
            return {"kind": "derive", **derived.as_dict()}
        case DropSource():
            return {"kind": "drop", "source": body.source}
        case CreateSummary(definition):
            return {"kind": "create_summary", "sql": body.sql, "summary": summary_as_dict(definition)}
        case AlterSummary():
            return {"kind": "alter_summary", "name": body.name, "settings": asdict(body.settings)}
        case DropSummary():
            return {"kind": "drop_summary", "name": body.name, "forced": body.forced}
        case Claim():
            return {"kind": "claim", "owner": body.owner}
        case Written():
            return {
                "kind": "written",
                "output": [[one.sequence, one.query_id, one.rows] for one in body.output],
            }


def _backfill(read: HistoryNamed) -> dict[str, Any]:
    return {
        "kind": "backfill",
        "source": read.source,
        "from_ms": read.from_ms,
        "until_ms": read.until_ms,
        "below": sorted(read.below.items()),
        "rows": read.rows,
        "digest": read.digest,
    }


def _records(body: Records, read: Sequence[Range]) -> dict[str, Any]:
    heartbeats = sum(one.count for one in read) - len(body.batch) - body.unreadable
    return {
        "kind": "records",
        "source": body.source,
        "ranges": [[r.partition, r.first, r.last, r.count] for r in read],
        "next_offsets": sorted(body.next_offsets.items()),
        "lagging": sorted(body.lagging),
        "rows": len(body.batch),
        **({} if body.complete_from_ms is None else {"whole_from_ms": body.complete_from_ms}),
        **({"heartbeats": heartbeats} if heartbeats else {}),
        **({} if body.shed is None else {"shed": _shed(body.shed)}),
        **({"grant": body.grant} if body.grant else {}),
        **({"unknown_schemas": sorted(body.unknown_schemas)} if body.unknown_schemas else {}),
    }


def _shed(shed: Shed) -> dict[str, Any]:
    ranges = [[partition, *bounds] for partition, bounds in sorted(shed.ranges.items())]
    return {"level": shed.level, "ranges": ranges, "unread": shed.unread}


def _shed_of(facts: dict[str, Any]) -> Shed:
    ranges = {partition: (first, until) for partition, first, until in facts["ranges"]}
    return Shed(facts["level"], ranges, facts["unread"])


def _deferred(deferral: Deferral) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if deferral.some_later:
        found["later"] = None if deferral.later is None else sorted(deferral.later)
        found["later_rows"] = deferral.rows
    if deferral.dropped:
        found["dropped"] = sorted(deferral.dropped)
    return found


def _deferral_of(facts: dict[str, Any]) -> Deferral:
    if "later" not in facts and "dropped" not in facts:
        return NOTHING_DEFERRED
    later = facts.get("later", ())
    return Deferral(
        None if later is None else frozenset(later),
        facts.get("later_rows", 0),
        frozenset(facts.get("dropped", ())),
    )


def _records_named(facts: dict[str, Any]) -> RecordsNamed:
    return RecordsNamed(
        SourceName(facts["source"]),
        tuple(Range(*numbers) for numbers in facts["ranges"]),
        dict(facts["next_offsets"]),
        frozenset(facts["lagging"]),
        facts["rows"],
        facts.get("whole_from_ms"),
        facts["v"] < 5,
        facts.get("heartbeats", 0),
        _shed_of(facts["shed"]) if "shed" in facts else None,
        facts.get("grant", 0),
        frozenset(facts.get("unknown_schemas", ())),
    )


def _body_of(facts: dict[str, Any]) -> Any:
    match facts["kind"]:
        case "records":
            return _records_named(facts)
        case "backfill":
            return HistoryNamed(
                SourceName(facts["source"]),
                facts["from_ms"],
                facts["until_ms"],
                dict(facts["below"]),
                facts["rows"],
                facts["digest"],
            )
        case "heartbeat":
            below = dict(facts.get("below", ()))
            lagging = frozenset(facts["lagging"])
            return Heartbeat(SourceName(facts["source"]), lagging, below, facts.get("grant", 0))
        case "register":
            registrations = tuple(registration_from_dict(one) for one in facts["registrations"])
            return Register(registrations, takes_back=facts["v"] < PAUSES_KEEP_ANSWERS)
        case "alter":
            return Alter(tuple(registration_from_dict(one) for one in facts["registrations"]))
        case "allocate":
            return Allocate(tuple((name, Allotment.from_dict(one)) for name, one in facts["allotments"]))
        case "unregister":
            return Unregister(tuple(facts["query_ids"]))
        case "set_apart":
            return SetApart(tuple(facts["query_ids"]))
        case "rejoin":
            return Rejoin(tuple(facts["query_ids"]))
        case "create":
            return CreateSource(stream_from_dict(facts["stream"]), facts["sql"])
        case "derive":
            name, is_table = SourceName(facts["name"]), facts.get("is_table", False)
            return CreateDerived(Derived(name, facts["sql"], facts["is_stream"], is_table))
        case "drop":
            return DropSource(SourceName(facts["source"]))
        case "create_summary":
            return CreateSummary(summary_from_dict(facts["summary"]), facts["sql"])
        case "alter_summary":
            return AlterSummary(facts["name"], SummarySettings(**facts["settings"]))
        case "drop_summary":
            return DropSummary(facts["name"], facts["forced"])
        case "claim":
            return Claim(facts["owner"])
        case "written":
            return Written(tuple(OutputWritten(*one) for one in facts["output"]))
        case kind:
            raise ValueError(f"a step of kind {kind!r}")

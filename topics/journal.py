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
import time
from collections.abc import Iterator, Mapping, Sequence
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
from engine.model.source import Derived, SourceName, Stream
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
from topics.admin import Admin
from topics.consumer import BatchConsumer, OffsetLost, Range
from topics.keyed import decode_messages
from topics.settings import KafkaSettings
from tureen.errors import KafkaUnavailable, TureenError

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
READ_TIMEOUT_S = 30.0
SCANNED_STEPS = 20_000
"""Steps that are read through rather than searched."""
TAIL_OFFSETS = 64
"""Offsets from the end where the last step is looked for first; markers of transactions are among them."""


class JournalUnreadable(TureenError):
    """A step record that this version does not know, or a gap between two of them."""

    code = "journal_unreadable"


@dataclass(frozen=True, slots=True)
class RecordsNamed:
    """A step of records without its batch: where the records are, and how many of them gave a row.

    exact: it was written when members were columns by their exact names only, and timestamps in seconds were
    rows. heartbeats: so many of the records promised something and are no rows. shed: as of the step; what
    was not read is in none of the ranges.
    """

    source: SourceName
    ranges: tuple[Range, ...]
    next_offsets: Mapping[int, int]
    lagging: frozenset[int]
    rows: int
    whole_from_ms: int | None = None
    exact: bool = False
    heartbeats: int = 0
    shed: Shed | None = None
    grant: int = 0


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
                whole_from_ms=named.whole_from_ms,
                unreadable=sum(one.count for one in named.ranges) - named.rows - named.heartbeats,
                shed=named.shed,
                grant=named.grant,
            )
        elif isinstance(self.body, HistoryNamed):
            raise JournalUnreadable(f"step {self.position} takes rows of the archive")
        else:
            body = self.body
        return Step(self.position, self.clock_ms, body)


# --- codec ----------------------------------------------------------------------------------------


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
            return {
                "kind": "backfill",
                "source": read.source,
                "from_ms": read.from_ms,
                "until_ms": read.until_ms,
                "below": sorted(read.below.items()),
                "rows": read.rows,
                "digest": read.digest,
            }
        case Records():
            assert not isinstance(read, HistoryNamed)
            heartbeats = sum(one.count for one in read) - len(body.batch) - body.unreadable
            return {
                "kind": "records",
                "source": body.source,
                "ranges": [[r.partition, r.first, r.last, r.count] for r in read],
                "next_offsets": sorted(body.next_offsets.items()),
                "lagging": sorted(body.lagging),
                "rows": len(body.batch),
                **({} if body.whole_from_ms is None else {"whole_from_ms": body.whole_from_ms}),
                **({"heartbeats": heartbeats} if heartbeats else {}),
                **({} if body.shed is None else {"shed": _shed(body.shed)}),
                **({"grant": body.grant} if body.grant else {}),
            }
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
            return {
                "kind": "derive",
                "name": derived.name,
                "sql": derived.sql,
                "is_stream": derived.is_stream,
            }
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


def _body_of(facts: dict[str, Any]) -> Any:
    match facts["kind"]:
        case "records":
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
            )
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
            return CreateDerived(Derived(SourceName(facts["name"]), facts["sql"], facts["is_stream"]))
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


# --- reading --------------------------------------------------------------------------------------


def read_steps(
    settings: KafkaSettings,
    topic: str,
    shard: int,
    after: Position,
    *,
    timeout_s: float = READ_TIMEOUT_S,
) -> Iterator[StepRecord]:
    """The shard's steps past a position, in order, to the end of its partition as it is now.

    Fence the shard's other writers first: then the end is the end. Raises JournalUnreadable when the next
    step is not the one that follows (it was deleted by retention), KafkaUnavailable, TopicMissing.
    """
    expected = after.sequence + 1
    for message in _to_end(settings, topic, shard, timeout_s, before=expected):
        key = message.key()
        if key is not None and Position.parse(key.decode("ascii")).sequence < expected:
            continue
        record = decode_step(message.value())
        if record.position.sequence != expected:
            raise JournalUnreadable(
                f"after step {expected - 1} of shard {shard} comes step {record.position.sequence}",
                hint=f"topic {topic} must be kept as long as the store may lag behind; "
                "empty the store to start again",
            )
        expected += 1
        yield record


def last_record(
    settings: KafkaSettings, topic: str, shard: int, *, timeout_s: float = READ_TIMEOUT_S
) -> StepRecord | None:
    """The shard's last committed step, None where there is none. Cost: some fetches.

    Raises JournalUnreadable, KafkaUnavailable, TopicMissing.
    """
    admin = Admin(settings, timeout_s)
    begin, end = admin.begin_offsets(topic)[shard], admin.end_offsets(topic)[shard]
    back, start = TAIL_OFFSETS, end
    while start > begin:
        start = max(begin, end - back)
        back *= 16
        last = None
        consumer = BatchConsumer(settings)
        try:
            consumer.add(topic, {shard: start}, append_times=False)
            for polled in consumer.until(lambda: consumer.has_read({topic: {shard: end}}), timeout_s):  # noqa: B023
                last = polled.messages[-1] if polled.messages else last
        finally:
            consumer.close()
        if last is not None:
            return decode_step(last.value())
    return None


def _to_end(
    settings: KafkaSettings, topic: str, partition: int, timeout_s: float, before: int
) -> Iterator[Any]:
    """The partition's records from a place on where sequences are still lower than ``before``."""
    start = _place_before(settings, topic, partition, timeout_s, before)
    consumer = BatchConsumer(settings)
    try:
        consumer.add(topic, {partition: start}, append_times=False)
        for polled in consumer.until(lambda: not consumer.lagging(topic), timeout_s):
            yield from polled.messages
    finally:
        consumer.close()


def _place_before(
    settings: KafkaSettings, topic: str, partition: int, timeout_s: float, sequence: int
) -> int:
    """An offset, not far, before the step with that sequence number; -1: the beginning.

    Sequence numbers ascend with offsets, so it is found by halving: O(log steps) fetches.
    """
    admin = Admin(settings, timeout_s)
    low, high = admin.begin_offsets(topic)[partition], admin.end_offsets(topic)[partition]
    start = -1
    if high - low <= SCANNED_STEPS:
        return start
    consumer = BatchConsumer({**settings, "queued.min.messages": 1, "max.partition.fetch.bytes": 16_384})
    try:
        while high - low > SCANNED_STEPS:
            middle = (low + high) // 2
            consumer.add(topic, {partition: middle}, append_times=False)
            found = _first(consumer, topic, timeout_s)
            if found is None or decode_step(found.value()).position.sequence >= sequence:
                high = middle
            else:
                low = start = middle
    finally:
        consumer.close()
    return start


def _first(consumer: BatchConsumer, topic: str, timeout_s: float) -> Any:
    """The next record, None at the end of the log."""
    for polled in consumer.until(lambda: not consumer.lagging(topic), timeout_s, records_max=1):
        if len(polled):
            return polled.messages[0]
    return None


class RangeReader:
    """Fetches the records that steps named, again, in the order named.

    Keep one for all steps of a replay: consecutive ranges are read on without a seek.
    """

    def __init__(self, settings: KafkaSettings, *, timeout_s: float = READ_TIMEOUT_S) -> None:
        self._settings = settings
        self._timeout_s = timeout_s
        self._readers: dict[tuple[str, int], _PartitionReader] = {}

    def read(self, stream: Stream, ranges: Sequence[Range], *, exact: bool = False) -> Batch:
        """The batch of a step, row for row as it was; of a table what is left of it. exact: as in
        :class:`RecordsNamed`.

        Raises OffsetLost when records of a stream are gone.
        """
        found: list[Any] = []
        for one in ranges:
            place = (stream.topic, one.partition)
            reader = self._readers.get(place)
            if reader is None:
                reader = self._readers[place] = _PartitionReader(self._settings, *place, self._timeout_s)
            found += reader.read(one, compacted=stream.is_table)
        return decode_messages(
            stream,
            found,
            [m.value() for m in found],
            [m.partition() for m in found],
            [m.offset() for m in found],
            [m.timestamp()[1] for m in found],
            exact=exact,
        ).batch

    def close(self) -> None:
        for reader in self._readers.values():
            reader.close()
        self._readers.clear()


class _PartitionReader:
    """One partition, read on from where the last range ended."""

    def __init__(self, settings: KafkaSettings, topic: str, partition: int, timeout_s: float) -> None:
        self._consumer = BatchConsumer({**settings, "queued.max.messages.kbytes": 8192})
        self._topic = topic
        self._partition = partition
        self._timeout_s = timeout_s
        self._ahead: list[Any] = []
        self._next = -1

    def read(self, wanted: Range, *, compacted: bool) -> list[Any]:
        if wanted.first < self._next or self._next < 0:
            self._ahead = []
            self._consumer.add(self._topic, {self._partition: wanted.first})
        found: list[Any] = []
        deadline = time.monotonic() + self._timeout_s
        while True:
            found += self._ahead
            self._ahead = []
            if found and found[-1].offset() >= wanted.last:
                break
            if self._consumer.next_offsets(self._topic).get(self._partition, -1) > wanted.last:
                break
            for polled in self._consumer.poll(max(1, wanted.count - len(found)), 0.2):
                self._ahead = polled.messages
                deadline = time.monotonic() + self._timeout_s
            if time.monotonic() > deadline:
                raise KafkaUnavailable(
                    f"no records arrive from topic {self._topic}", hint="is Kafka running?"
                )
        self._ahead = [m for m in found if m.offset() > wanted.last]
        found = [m for m in found if wanted.first <= m.offset() <= wanted.last]
        self._next = wanted.last + 1
        if len(found) != wanted.count and not compacted:
            raise OffsetLost(
                self._topic,
                self._partition,
                wanted.first,
                hint=f"{wanted.count - len(found):,} records that were applied are gone: the topic must be "
                "kept (and not compacted) for as long as the store may lag behind",
            )
        return found

    def close(self) -> None:
        self._consumer.close()

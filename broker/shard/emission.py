"""What a shard's queries emit: the changes of a step as records for their topics, now or later.

Changes that a transaction has no room for are written later (:mod:`broker.shard.pending`): all of a query's
in a step, or none; the small ones go first. A query of which some wait has all that follows wait behind it.
Where more would wait than ``changes_max`` the query ends, before any of these is written; what takes its
answer back is written whatever waits.

Changes of many queries with the same columns come as one object and are written as one, wherever they go to
the same topic in the same form. Which queries emit is derived from what stands; nothing of it is kept.

What cannot be written breaks the queries whose output it is, and none else: they are named, to go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from broker.base import logs
from broker.base.counts import Counts
from broker.shard.pending import Pending, Portion, portions
from engine.engine import Engine
from engine.model.changes import Changes
from engine.model.defects import internal, refusal_of
from engine.model.step import Body, Position, Register, StepResult, Unregister
from engine.views.view import View
from topics.destination import Destination
from topics.journal import NOTHING_DEFERRED, Deferral
from topics.outputs import AWAITED, Outputs, destination, emits
from topics.results import Records, RowsTooLarge, parts
from tureen.errors import ChangesBroken, InternalError, LimitExceeded, TureenError
from tureen.protocol import TopicNames

LOGGED_MAX = 100
"""Most queries that the log names of those that one defect ended."""

log = logs.get()


class _Broken(Exception):
    """The changes of these queries cannot be told."""

    def __init__(self, query_ids: Iterable[str], reason: TureenError) -> None:
        self.query_ids = tuple(query_ids)
        self.reason = reason
        super().__init__(reason.message)


def log_defects(reasons: Mapping[str, Exception]) -> None:
    """Tell the log of defects, each with the queries that it ended."""
    ended: dict[str, list[str]] = {}
    traces: dict[str, str] = {}
    for query_id, reason in reasons.items():
        if isinstance(reason, InternalError):
            ended.setdefault(reason.incident, []).append(query_id)
            traces.setdefault(reason.incident, reason.trace)
    for incident, names in ended.items():
        queries, trace = sorted(names)[:LOGGED_MAX], traces[incident]
        log.error("query_failed", incident=incident, queries=queries, count=len(names), trace=trace)


LISTED_MAX = 1_000
"""Where more queries than that have changes to be written later, all of the step's are."""


@dataclass(frozen=True, slots=True)
class Room:
    """How much of what a step changes may be written with it."""

    records: int
    size: int


@dataclass(frozen=True, slots=True)
class Emitted:
    """What becomes of the changes of a step. broken: queries that emit no more, since their changes cannot
    all be written.
    """

    records: list[Records]
    broken: tuple[str, ...] = ()
    deferral: Deferral = NOTHING_DEFERRED
    later: tuple[Portion, ...] = ()


class Emission:
    """Used by the shard's thread alone; ``broken`` may be read by others."""

    def __init__(self, names: TopicNames, outputs: Outputs, counts: Counts, changes_max: int) -> None:
        """changes_max: of one query that wait."""
        self._changes_max = changes_max
        self._names = names
        self._outputs = outputs
        self._counts = counts
        self.broken: Mapping[str, ChangesBroken | InternalError] = {}
        """Queries that went since their changes could not be told, or since their work failed, and why; never
        changed in place.
        """
        self._unclear: dict[str, Exception] = {}
        """Queries that came, and of which it cannot be told what leaves them."""
        self._to: dict[str, Destination] = {}

    def came(self, view: View, queries: Iterable[tuple[str, str]]) -> None:
        """Queries, by their ids and texts, stand: those of them that emit do so from now on."""
        for query_id, sql in queries:
            try:
                output = view.output(query_id) if emits(sql) else None
            except Exception as defect:  # noqa: BLE001  (it is this query's alone)
                self._unclear[query_id] = refusal_of(defect)
                continue
            to = None if output is None else destination(self._names, output)
            if to is not None:
                self._to[query_id] = to

    def stepped(self, body: Body, result: StepResult, engine: Engine) -> None:
        """Know of the queries that a step brought."""
        if not isinstance(body, Register):
            return
        if self.broken:
            coming = {one.query_id for one in body.registrations}
            self.broken = {name: told for name, told in self.broken.items() if name not in coming}
        if any(emits(one.sql) for one in body.registrations):
            stand = (one for one in body.registrations if one.query_id not in result.failed)
            self.came(engine.view(), ((one.query_id, one.sql) for one in stand))

    def emit(self, body: Body, result: StepResult, pending: Pending, room: Room) -> Emitted:
        """What of a step's changes is written with it, and what later.

        Raises KafkaUnavailable, RegistryUnavailable; what was asked for is then to be asked for again.
        """
        broken: dict[str, Exception] = dict(self._unclear)
        self._unclear.clear()
        broken |= {name: error for name, error in result.broken.items() if name in self._to}
        counts = self._later(result, pending, room)
        ending = {name for one in result.changes if one.occasion == "end" for name in one.query_ids}
        for query_id, count in counts.items():
            got = count + pending.of(query_id)
            if got > self._changes_max and query_id not in ending:
                hint = "narrow the window or the predicate, or make the rows of its sources come more slowly"
                broken.setdefault(query_id, LimitExceeded("changes_max", self._changes_max, got, hint=hint))
        later = counts.keys() - broken.keys()
        found: list[Records] | None = None
        while found is None:
            try:
                found = self._records(result, {*broken, *later}) if result.changes else []
            except _Broken as more:
                broken |= dict.fromkeys(more.query_ids, more.reason)
        made = portions(result, self._to.get, later.__contains__) if later else []
        for query_id in body.query_ids if isinstance(body, Unregister) else ():
            self._to.pop(query_id, None)
            broken.pop(query_id, None)
        deferral = NOTHING_DEFERRED
        if made:
            rows = sum(portion.rows for portion in made)
            every = len(made) > LISTED_MAX and not broken
            deferral = Deferral(None if every else frozenset(one.query_id for one in made), rows)
        return Emitted(found, self._break(broken), deferral, tuple(made))

    def _later(self, result: StepResult, pending: Pending, room: Room) -> Mapping[str, int]:
        """Queries whose changes are not written with the step, and how many each has."""
        rows = sum(len(changes) for changes in result.changes)
        size = sum(changes.table.nbytes for changes in result.changes)
        if not rows or (not pending and rows <= room.records and size <= room.size):
            return {}
        counts: Counter[str] = Counter()
        sizes: Counter[str] = Counter()
        for changes in result.changes:
            row_bytes = -(-changes.table.nbytes // max(1, len(changes)))
            numbers = (changes.starts[1:] - changes.starts[:-1]).tolist()
            for query_id, count in zip(changes.query_ids, numbers, strict=True):
                if count and query_id in self._to:
                    counts[query_id] += count
                    sizes[query_id] += count * row_bytes
        records_left, size_left = room.records, room.size
        later: dict[str, int] = {}
        for query_id, count in sorted(counts.items(), key=lambda one: one[1]):
            if query_id in pending or count > records_left or sizes[query_id] > size_left:
                later[query_id] = count
            else:
                records_left -= count
                size_left -= sizes[query_id]
        return counts if len(later) > LISTED_MAX else later

    def written(self, portion: Portion, changes: Changes) -> Records:
        """The records of the next changes of a portion. Raises TureenError: they cannot be written; of
        AWAITED, for now.
        """
        numbered = {portion.query_id: portion.written}
        try:
            records = self._outputs.encoded(changes, portion.to, portion.position, numbered)
        except TureenError:
            raise
        except Exception as defect:
            raise internal(defect) from defect
        self._count(portion.to, len(changes), records)
        return records

    def refused(self, topics: Mapping[str, TureenError], pending: Pending) -> tuple[str, ...]:
        """End the emission of queries that write to these topics, which refuse it; return which queries those
        are.
        """
        reasons = {name: topics[to.topic] for name, to in self._to.items() if to.topic in topics}
        waiting = {one.query_id: topics[one.to.topic] for one in pending if one.to.topic in topics}
        return self._break(waiting | reasons)

    def give_up(self, reasons: Mapping[str, Exception]) -> tuple[str, ...]:
        """End the emission of these queries; return them."""
        return self._break(reasons)

    def _break(self, reasons: Mapping[str, Exception]) -> tuple[str, ...]:
        told: dict[str, ChangesBroken | InternalError] = {}
        log_defects(reasons)
        for query_id, reason in reasons.items():
            self._to.pop(query_id, None)
            if isinstance(reason, InternalError):
                told[query_id] = InternalError(
                    reason.incident
                )  # without the trace, and what that holds on to
                continue
            text, cure = getattr(reason, "message", repr(reason)), getattr(reason, "hint", None)
            told[query_id] = ChangesBroken(text, cure)
        if told:
            self.broken = {**self.broken, **told}
        return tuple(told)

    def _records(self, result: StepResult, left_out: Container[str]) -> list[Records]:
        numbered: dict[Position, dict[str, int]] = {}
        found: list[Records] = []
        counted: list[tuple[Destination, int]] = []
        for changes in result.changes:
            for to, mine in parts(changes, self._to, left_out):
                position = mine.position or result.position
                records = self._encoded(mine, to, position, numbered.setdefault(position, {}))
                if len(records):
                    found.append(records)
                    counted.append((to, len(mine)))
        for (to, deltas), records in zip(counted, found, strict=True):
            self._count(to, deltas, records)
        return found

    def _count(self, to: Destination, deltas: int, records: Records) -> None:
        counts = self._counts
        counts.deltas[to.topic, to.operator] += deltas
        counts.result_records[to.topic, to.operator] += len(records)
        counts.result_bytes[to.topic, to.operator] += records.size

    def _encoded(
        self, changes: Changes, to: Destination, position: Position, numbered: dict[str, int]
    ) -> Records:
        """Raises _Broken, KafkaUnavailable, RegistryUnavailable."""
        try:
            return self._outputs.encoded(changes, to, position, numbered)
        except AWAITED:
            raise
        except RowsTooLarge as large:
            raise _Broken(large.query_ids, large) from large
        except Exception as error:
            raise _Broken(changes.query_ids, refusal_of(error)) from error

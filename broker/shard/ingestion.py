"""What a shard takes up by itself and makes steps of: records of its streams, history, and the clock.

Records come a transaction's worth at a time, shared fairly among the streams that have some; the
scheduler says which of these is the next (:mod:`broker.shard.turns`). Where few come,
the shard *lingers*: the next are taken up some ms after these, so that one transaction has what all its
streams brought meanwhile. It does not where more wait than were taken up. Few records of several streams are
read first, then all their steps are made, then what these write is encoded.

What cannot be decoded, or comes late, goes into the same transaction as a letter to the topic for such; of a
replica, which another shard has as well, only its home writes and counts that.

Used by the shard's thread alone, but for what the parts that are public have others read.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from broker.archive.backfill import Backfills
from broker.archive.notes import HistoryNotes
from broker.base import logs
from broker.memory.levels import Level
from broker.runtime.call_times import CALL_TIMES
from broker.shard.accounting import account, is_home
from broker.shard.context import ShardContext
from broker.shard.grants import Grants, within_s
from broker.shard.linger import Linger
from broker.shard.outbox import Outgoing
from broker.shard.quiet_streams import QuietStreams
from broker.shard.saving import Saving
from broker.shard.shedder import Shedder
from broker.shard.step_size import StepSize
from broker.shard.steps import Steps
from broker.shard.streams import ReadStream, Streams, backlogs
from broker.shard.taken import TakenRows
from broker.shard.turns import StreamQueue, Turns
from engine.model.source import SourceName, Stream
from engine.model.step import Heartbeat, Records, StepResult
from engine.overload.shed_order import ShedOrder
from engine.sources.promise import check_promise
from engine.views.view import View
from topics.consumer import Range
from tureen.errors import HeartbeatRefused, KafkaUnavailable

TURNS_S = 0.25
"""A stream has a further step in a transaction only so long after its begin: where steps take long, those of
other streams come first.
"""
FEW_ROWS = 64
"""Steps of so many records at most are made together with those of other streams."""

log = logs.get()


class Ingestion:
    """Takes up records, history and the clock of one shard, and makes steps of them."""

    def __init__(
        self,
        context: ShardContext,
        streams: Streams,
        steps: Steps,
        saving: Saving,
        backfills: Backfills | None,
        history: HistoryNotes,
        grants: Grants,
    ) -> None:
        settings = context.settings
        self._context = context
        self._streams = streams
        self._steps = steps
        self._saving = saving
        self.backfills = backfills
        """How streams get their history; None without an archive."""
        self.history = history
        """Keeps which steps brought some."""
        self.grants = grants
        """What steps may work for queries with a preference."""
        self._turns = Turns()
        self.shedder = Shedder(context.number, ShedOrder(settings.shed_queue_bytes))
        self._step_size = StepSize(settings.step_rows_max)
        self._linger = Linger(settings.linger_ms / 1_000)
        self._quiet = QuietStreams(settings.heartbeat_ms)

    def linger_s(self) -> float:
        """How long the shard waits, for commands alone, before it looks for more records."""
        return self._linger.left_s(time.monotonic())

    @property
    def has_few(self) -> bool:
        """Whether few records were taken up last."""
        return self._linger.has_few

    def rest_s(self) -> float:
        """How long the shard may wait for commands and records: not at all where some are there. Records that
        cannot be taken up yet are looked at again soon.
        """
        if not self._streams.ready():
            self._linger.takes()
            rests = self._quiet.all_rest and not self._streams.is_away()
            return (self._context.settings.heartbeat_ms if not rests else self._quiet.rest_ms) / 1_000
        return 0.0 if self._linger.leaves() else self._context.settings.poll_ms / 1_000

    def take_up(self, view: View, outgoing: Outgoing) -> None:
        """Make steps of what the streams have, up to a transaction's worth of rows.

        view: as of the last transaction.
        """
        self._streams.look_after()
        if self._streams.is_away():
            if "read" not in self._context.stalls:
                away = KafkaUnavailable("Kafka does not answer; streams wait for it")
                self._context.stalls.tell("read", away.as_dict())
        else:
            self._context.stalls.tell("read", None)
        registry_away = self._streams.registry_away()
        self._context.stalls.tell("schemas", None if registry_away is None else registry_away.as_dict())
        ready = self._streams.ready()
        if ready or self.shedder.shares:
            self.shedder.look(self._steps.engine, backlogs(ready), time.monotonic())
        if not ready:
            return
        self._turns.begin(self._steps.engine, [one.stream.name for one in ready])
        ready = self._streams.in_step(ready, view.now_of, self._steps.engine.needs.joined_with)
        self.grants.records_come()
        self._linger.begins(time.monotonic(), time.thread_time())
        share = max(
            self._context.settings.step_rows_max,
            self._context.settings.transaction_rows_max // max(1, len(ready)),
        )
        rows = self._from_all(ready, share, outgoing)
        if rows:
            self._took_up(rows, ready)

    def _took_up(self, rows: int, streams: Iterable[ReadStream]) -> None:
        """So many rows of these streams were taken up: what comes next waits accordingly."""
        demand, least_ms, left, gathered = self._steps.engine.needs.demand, None, 0, True
        for one in streams:
            allowed_ms = demand(one.stream.name).latency_ms_max
            if allowed_ms is not None:
                least_ms = allowed_ms if least_ms is None else min(least_ms, allowed_ms)
            if one.intake is not None:
                one.intake.hurry(is_hurried=self._linger.hurries(allowed_ms))
                left += one.intake.backlog
                gathered = gathered and one.intake.is_gathered
        self._linger.took(rows, left, least_ms, gathered=gathered)
        self._streams.rest(self._linger.rest_s)

    def _from_all(self, ready: Iterable[ReadStream], share: int, outgoing: Outgoing) -> int:
        """Make steps of up to ``share`` rows of each stream, in the scheduler's order; how many rows."""
        scheduler = self._steps.engine.scheduler
        taken: Counter[SourceName] = Counter()
        by_name = {one.stream.name: one for one in ready}
        until_s = time.monotonic() + TURNS_S
        together = self._linger.has_few and self._step_size.is_whole
        together = together and not self._steps.engine.needs.preferring()
        for stream in by_name.values():
            self._offer(stream)
        few: list[tuple[ReadStream, TakenRows]] = []
        while (name := self._turns.next(scheduler, time.perf_counter_ns())) is not None:
            if outgoing.caused >= self._steps.size.records or self._context.memory.look() >= Level.HOLD:
                break
            stream, began_ns = by_name[SourceName(name)], time.perf_counter_ns()
            came = self._poll(stream)
            if came is not None:
                taken[stream.stream.name] += came.count
                if together and came.count <= FEW_ROWS and stream.calls.is_whole and not came.promises:
                    few.append((stream, came))
                else:
                    self._make_together(few, outgoing)
                    few = []
                    calls_ns = CALL_TIMES.ns
                    self._records(stream, came, outgoing)
                    calls_s = (CALL_TIMES.ns - calls_ns) / 1e9
                    self._took(stream, came, time.perf_counter_ns() - began_ns, calls_s)
            if taken[stream.stream.name] < share and time.monotonic() < until_s:
                self._offer(stream)
        self._make_together(few, outgoing)
        return taken.total()

    def _offer(self, stream: ReadStream) -> None:
        """What waits of a stream may be the next step's."""
        intake = stream.intake
        if intake is not None and intake.is_ready:
            self._turns.offer(self._steps.engine, stream.stream.name, *intake.waiting, time.perf_counter_ns())

    def _poll(self, stream: ReadStream) -> TakenRows | None:
        """What came of one stream, for one step."""
        self._linger.takes()
        self._quiet.came(stream)
        rows_max = min(self._step_size.rows, stream.calls.rows)
        shedding, rows = self.shedder.shedding(self._steps.engine, stream.stream.name, rows_max)
        return self._streams.poll(stream, rows, shedding)

    def _took(self, stream: ReadStream, taken: TakenRows, spent_ns: int, calls_s: float) -> None:
        """A step of one stream took so long, and calls of users' functions in it."""
        stream.calls.stepped(taken.count, calls_s)
        self._turns.ran(self._steps.engine.scheduler, stream.stream.name, taken.size, spent_ns)
        self.shedder.took(stream.stream.name, taken, spent_ns)

    def _make_together(self, few: Sequence[tuple[ReadStream, TakenRows]], outgoing: Outgoing) -> None:
        """Make steps of few records of some streams, which promise nothing. The time is divided evenly."""
        if not few:
            return
        began_ns, caused, calls_ns = time.perf_counter_ns(), outgoing.caused, CALL_TIMES.ns
        results = self._steps.make_together([(taken.body, taken.ranges) for _, taken in few], outgoing)
        for (stream, taken), result in zip(few, results, strict=True):
            self._stepped(stream, taken)
            account(self._context, taken, [], result, result.entered, outgoing)
        rows = sum(len(taken.messages) for _, taken in few)
        self._step_size.stepped(rows, outgoing.caused - caused, self._steps.size.records)
        spent_ns = (time.perf_counter_ns() - began_ns) // len(few)
        calls_s = (CALL_TIMES.ns - calls_ns) / 1e9 / len(few)
        for stream, taken in few:
            self._took(stream, taken, spent_ns, calls_s)

    def queues(self) -> list[tuple[SourceName, StreamQueue]]:
        """What waits of each stream that had records. Any thread."""
        return [(SourceName(name), one) for name, one in self._turns.queues(self._steps.engine.scheduler)]

    def work_wait_s(self, linger_s: float) -> float:
        """How long until a heartbeat may bring queries with a preference further; infinite: none can. It is
        made now where it fits into the time for which records wait for others to come, ``linger_s``, and else
        behind that, if no more come soon.
        """
        if not self.grants.left or self._carrier() is None:
            return math.inf
        return self.grants.next_s(time.perf_counter_ns(), linger_s)

    def work(self, linger_s: float, outgoing: Outgoing) -> None:
        """While nothing comes: make a heartbeat with a grant, where work is left for queries with a
        preference. linger_s: of the time for which records wait for others.
        """
        granted = self.grants.for_heartbeat(time.perf_counter_ns(), within_s(linger_s))
        if not granted:
            return
        stream = self._carrier()
        if stream is None:
            return
        # Of a topic that is lost nothing more comes: its clock stands still.
        everything = frozenset(self._steps.next_offsets(stream.stream.name))
        lagging = everything if stream.intake is None else stream.intake.lagging
        began_ns = time.perf_counter_ns()
        spent = self._beat(stream, lagging, outgoing, granted)
        self.grants.heartbeat_took(time.perf_counter_ns() - began_ns, granted, spent)
        if spent:
            self._saving.changed()

    def _carrier(self) -> ReadStream | None:
        """The stream whose heartbeat may have a grant, which is for all queries with a preference: the first
        of theirs that is read, else one whose topic is lost. None: all wait for Kafka. O(their streams).
        """
        by_name = self._streams.by_name
        streams = [by_name[name] for name in self._steps.engine.needs.preferring() if name in by_name]
        lost = (one for one in streams if one.lost)
        return next((one for one in streams if one.intake is not None), next(lost, None))

    def worked(self, *, alone: bool) -> None:
        """A transaction was written: see what work is left for queries with a preference. alone: it had
        a heartbeat for that, and no other step.
        """
        self._linger.written(time.thread_time())
        self.grants.left = self._steps.engine.needs.preference_work()
        self.grants.waiting = self._steps.pending.rows
        if not alone:
            self.grants.stepped()

    def bring_back(self, outgoing: Outgoing) -> None:
        """Make steps of history that was read from the archive; not while queries are set apart."""
        engine = self._steps.engine
        if self.backfills is None or engine.apart():
            return
        for body, named in self.backfills.ready(engine):
            self.history.put(body.source, engine.position.sequence + 1)
            result = self._steps.make(body, outgoing, named)
            for refused in result.failed.values():
                log.warning(
                    "backfill_refused", shard=self._context.number, stream=body.source, reason=str(refused)
                )
            self._saving.changed(len(body.batch))

    def beat(self, outgoing: Outgoing) -> None:
        """Give the clock to streams that are quiet, where it may move their NOW: at once to those of which
        something came, to the others twice in the time between two heartbeats. Those that rest are looked at
        seldom. O(streams that do not rest).
        """
        clock_ms = self._steps.now_ms()
        for name, stream in self._quiet.due(clock_ms, self._streams.by_name).items():
            if stream.intake is None or self._streams.by_name.get(name) is not stream:
                continue
            lagging, needed = stream.intake.lagging, self._steps.engine.needs.clock(name)
            self._streams.lagging[name] = lagging
            if stream.pace.is_due(clock_ms, lagging, needed):
                self._beat(stream, lagging, outgoing)
            if not stream.pace.rests(lagging, needed):
                self._quiet.is_awake(stream)

    def close(self) -> None:
        """No more history is read."""
        if self.backfills is not None:
            self.backfills.close()

    def commanded(self) -> None:
        """Commands were carried out: streams that rested may be needed now."""
        self._quiet.wake_all()

    def wake(self, names: Iterable[str], outgoing: Outgoing) -> None:
        """Queries, or answers of now, are about to come over these: where none needed it, the clock may be
        behind.
        """
        clock_ms = self._steps.now_ms()
        for name in names:
            stream = self._streams.by_name.get(SourceName(name))
            if stream is None or stream.intake is None or self._steps.engine.needs.clock(stream.stream.name):
                continue
            lagging = stream.intake.lagging
            if stream.pace.is_due(clock_ms, lagging):
                self._beat(stream, lagging, outgoing)

    def _beat(self, stream: ReadStream, lagging: frozenset[int], outgoing: Outgoing, granted: int = 0) -> int:
        """Make a heartbeat; the units of its grant that were spent."""
        name = stream.stream.name
        result = self._steps.make(Heartbeat(name, lagging, grant=granted), outgoing)
        stream.pace.stepped(self._steps.clock_ms, (), lagging)
        if is_home(self._context, name):
            self._context.counts.entered[name] += result.entered
        if result.entered:
            self._saving.changed()
        return result.spent

    def _records(self, stream: ReadStream, taken: TakenRows, outgoing: Outgoing) -> None:
        caused = outgoing.caused
        below, refused = self._promised(stream.stream, taken) if taken.promises else ({}, [])
        body = replace(taken.body, unreadable=taken.body.unreadable + len(refused)) if refused else taken.body
        result = self._granted(body, outgoing, taken.ranges)
        self._stepped(stream, taken)
        entered = result.entered
        if below:
            entered += self._promise(stream, below, taken.body.lagging, outgoing)
        account(self._context, taken, refused, result, entered, outgoing)
        self._step_size.stepped(len(taken.messages), outgoing.caused - caused, self._steps.size.records)

    def _stepped(self, stream: ReadStream, taken: TakenRows) -> None:
        """A step of a stream's records was made."""
        self._saving.changed(len(taken.messages))
        stream.pace.stepped(self._steps.clock_ms, taken.body.batch.partitions(), taken.body.lagging)

    def _granted(self, body: Records, outgoing: Outgoing, read: Sequence[Range]) -> StepResult:
        """Make a step of records, with a grant where there are queries with a preference."""
        engine, began_ns = self._steps.engine, time.perf_counter_ns()
        if not engine.needs.preferring():
            return self._steps.make(body, outgoing, read)
        granted, before_ns = self.grants.for_records(began_ns, lagging=bool(body.lagging)), engine.work_ns
        result = self._steps.make(replace(body, grant=granted), outgoing, read)
        took_ns, spent_ns = time.perf_counter_ns() - began_ns, engine.work_ns - before_ns
        self.grants.records_took(took_ns, granted, result.spent, spent_ns)
        return result

    def _promised(self, stream: Stream, taken: TakenRows) -> tuple[dict[int, int], list[tuple[int, str]]]:
        """What heartbeats among records promise, by partition, and (place, reason) of those that the stream
        does not take.
        """
        below, refused = dict[int, int](), list[tuple[int, str]]()
        clock_ms = self._steps.now_ms()
        for place, partition, ms in taken.promises:
            try:
                check_promise(stream, {partition: ms}, clock_ms)
            except HeartbeatRefused as refusal:
                refused.append((place, f"{refusal.code}: {refusal.message}"))
            else:
                below[partition] = max(ms, below.get(partition, ms))
        return below, refused

    def _promise(
        self, stream: ReadStream, below: Mapping[int, int], lagging: frozenset[int], outgoing: Outgoing
    ) -> int:
        """Make a step of promises where they raise a watermark; how many rows entered by it."""
        name = stream.stream.name
        raised = self._steps.engine.needs.raised_by(name, below)
        if not raised:
            return 0
        body = Heartbeat(name, lagging, {partition: below[partition] for partition in raised})
        result = self._steps.make(body, outgoing)
        stream.pace.stepped(self._steps.clock_ms, raised, lagging)
        return result.entered

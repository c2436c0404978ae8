"""The steps of a shard: the engine makes them, and they go into a transaction with all that they tell.

One step is one transition of the engine. Its record for the journal and what emitting queries tell of it are
put into an :class:`broker.shard.outbox.Outgoing`, whose commit makes the steps so far final:

    body -> engine -> journal record, changes for result topics -> ... -> one transaction

Changes for which a transaction has no room wait (:mod:`broker.shard.pending`): further transactions have a
piece of them each, and a step that says so. Queries whose changes cannot be told go by steps of their own.
The clock of steps never goes back.

The engine is this module's: others read it between steps. Used by the shard's thread alone; ``epoch`` may be
read by others.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from broker.base import logs
from broker.base.placement import shard_of
from broker.shard.context import ShardContext
from broker.shard.doing import doing
from broker.shard.emission import Emission, Emitted, Room
from broker.shard.outbox import Letter, Outbox, Outgoing, Unwritable
from broker.shard.pending import Pending, Portion
from broker.shard.shard_command import unregister_bodies
from broker.shard.step_size import TransactionSize
from broker.shard.violations import letters_of
from engine.engine import Engine
from engine.model.changes import Changes
from engine.model.source import Stream
from engine.model.step import (
    Allocate,
    Alter,
    Body,
    OutputWritten,
    Position,
    Records,
    Register,
    Step,
    StepResult,
    Unregister,
    Written,
)
from topics.consumer import Range
from topics.journal import Deferral, HistoryNamed, encode_step
from topics.outputs import AWAITED
from topics.results import Records as ResultRecords
from topics.sizes import RECORD_OVERHEAD_BYTES
from tureen.errors import ChangesBroken, InternalError, TureenError

WAITING_FACTOR = 2
"""How many times ``changes_max`` changes of all queries may wait before nothing more causes any."""
PIECE_ROWS = 4_096
"""Changes of one query that are encoded at once; others that wait have their turn."""
PIECES_MAX = 1_000
"""Queries of which one transaction writes changes that waited."""
RECORD_BYTES = 256
"""Bytes that a record is assumed to have before any was made."""

log = logs.get()


@dataclass(frozen=True, slots=True)
class _Applied:
    """A step that the engine went through, and of which nothing is written yet. body: as it was asked for.
    read, dropped: as for :meth:`Steps.make`.
    """

    step: Step
    body: Body
    result: StepResult
    read: Sequence[Range] | HistoryNamed
    dropped: frozenset[str]


class Steps:
    """``engine``: after the last step. ``clock_ms``: of the last step. ``pending``: changes that wait.
    ``size``: of transactions.
    """

    def __init__(
        self,
        context: ShardContext,
        engine: Engine,
        emission: Emission,
        outbox: Outbox,
        gone: Callable[[Iterable[str]], None],
    ) -> None:
        """gone: told of queries that a step let go, since their changes cannot be told. Each step is a sign
        of life.
        """
        settings = context.settings
        self.engine = engine
        self.epoch = 0
        self.clock_ms = 0
        self.pending = Pending()
        self.size = TransactionSize(settings.transaction_records_max, settings.transaction_write_ms / 1_000)
        self._record_bytes = RECORD_BYTES
        self._context = context
        self._emission = emission
        self._outbox = outbox
        self._gone = gone

    def begin(self, engine: Engine, epoch: int, pending: Pending) -> None:
        """Go on with a recovered engine; ``epoch`` tells the positions of this owner's steps from others'."""
        self.engine, self.epoch, self.pending = engine, epoch, pending
        pending.committed()
        self.clock_ms = self.now_ms()

    @property
    def body_bytes_max(self) -> int:
        """Most bytes of what a step registers or removes; what else the step's record has needs less."""
        return (self._context.settings.record_bytes_max - RECORD_OVERHEAD_BYTES) // 2

    @property
    def _waiting_max(self) -> int:
        return WAITING_FACTOR * self._context.settings.changes_max

    @property
    def is_full(self) -> bool:
        """Whether so many changes wait that no command is carried out for a while: it may cause many more."""
        return self.pending.rows > self._waiting_max

    @property
    def is_flooded(self) -> bool:
        """Whether so many changes wait that rows caused that no more rows are taken up for a while. Whole
        answers, however large, hold up the rows of nobody.
        """
        return self.pending.step_rows > self._waiting_max

    def now_ms(self) -> int:
        """What the clock of the next step says."""
        return max(self.clock_ms, time.time_ns() // 1_000_000)

    def next_offsets(self, source: str) -> dict[int, int]:
        """Where reading a source goes on."""
        return next(info.next_offsets for info in self.engine.view().sources() if info.name == source)

    def make(
        self,
        body: Body,
        outgoing: Outgoing,
        read: Sequence[Range] | HistoryNamed = (),
        dropped: frozenset[str] = frozenset(),
    ) -> StepResult:
        """Apply a step and add what it writes. read: where its rows can be read again. dropped: queries of
        whose changes nothing more is written. Raises Interrupted.
        """
        made = self._applied(body, read, dropped)
        self._let_go(self._written_with(made, outgoing), outgoing)
        self.end_failed(outgoing)
        return made.result

    def make_together(
        self, bodies: Iterable[tuple[Records, Sequence[Range]]], outgoing: Outgoing
    ) -> list[StepResult]:
        """Apply steps of few records of several streams, then add what all of them write, in their order:
        code that does the same for each is still in the caches. Queries whose changes cannot be told go after
        the last. bodies: with where their rows can be read again. Raises Interrupted.
        """
        made = [self._applied(body, read) for body, read in bodies]
        broken = [name for one in made for name in self._written_with(one, outgoing)]
        self._let_go(tuple(dict.fromkeys(broken)), outgoing)
        self.end_failed(outgoing)
        return [one.result for one in made]

    def _applied(
        self, body: Body, read: Sequence[Range] | HistoryNamed = (), dropped: frozenset[str] = frozenset()
    ) -> _Applied:
        """The engine goes through a step."""
        self._context.pulse.beat(doing(body))
        self.clock_ms = self.now_ms()
        last = self.engine.position
        step = Step(Position(self.epoch, last.sequence + 1), self.clock_ms, body)
        self.engine.enqueue(step)
        (result,) = self.engine.run()
        if result.failed:
            # An answer may be too large to tell; a replay tells none, so it would not refuse.
            match body:
                case Register(registrations):
                    # A defect may be gone when this is replayed.
                    kept = tuple(
                        one
                        for one in registrations
                        if not isinstance(result.failed.get(one.query_id), InternalError)
                    )
                    step = replace(step, body=replace(body, registrations=kept))
                case Alter(registrations):
                    kept = tuple(one for one in registrations if one.query_id not in result.failed)
                    step = replace(step, body=Alter(kept))
                case Allocate(allotments):
                    left = tuple(one for one in allotments if one[0] not in result.failed)
                    step = replace(step, body=Allocate(left))
        return _Applied(step, body, result, read, dropped)

    def _written_with(self, made: _Applied, outgoing: Outgoing) -> tuple[str, ...]:
        """Add what a step writes; the queries whose changes cannot be told, which are to go."""
        step, body, result, dropped = made.step, made.body, made.result, made.dropped
        self.pending.drop(dropped)
        emitted = self._emitted(body, result, outgoing)
        deferral = Deferral(emitted.deferral.later, emitted.deferral.rows, dropped)
        key, value = encode_step(step, result, made.read, deferral)
        outgoing.letters.append(Letter(self._context.settings.names.steps, value, key, self._context.number))
        self._tell_violations(result, outgoing)
        outgoing.last = step.position
        outgoing.results.append(result)
        if isinstance(body, Register | Alter):
            outgoing.touched.update(one.query_id for one in body.registrations)
        elif isinstance(body, Allocate):
            outgoing.touched.update(name for name, _ in body.allotments)
        elif isinstance(body, Unregister):
            outgoing.touched.update(body.query_ids)
        self._context.counts.steps += 1
        outgoing.tell(emitted.records)
        outgoing.deferred += emitted.deferral.rows
        self.pending.put(emitted.later)
        return emitted.broken

    def end_failed(self, outgoing: Outgoing) -> None:
        """Let queries go whose own work failed by a defect. Raises Interrupted."""
        failed = self.engine.defects
        if failed:
            self._let_go(self._emission.give_up(failed), outgoing)

    def _tell_violations(self, result: StepResult, outgoing: Outgoing) -> None:
        """Letters of rows that broke a promise; of a replica only its home writes and counts them."""
        settings, counts = self._context.settings, self._context.counts
        for broken in result.violations:
            name = broken.source
            if shard_of([name], settings.shards) != self._context.number:
                continue
            stream = self.engine.catalogue[name]
            assert isinstance(stream, Stream)
            outgoing.letters += letters_of(broken, stream, settings.names.late, settings.record_bytes_max)
            counts.violations[name] += len(broken.reasons)
            counts.late[name] += len(broken.reasons) if broken.withheld else 0

    def write_later(self, outgoing: Outgoing) -> None:
        """Add a piece of the changes that wait, where there are some. Raises Interrupted.

        Of every query that has some in turn, so that a large answer does not keep others waiting; of those
        that are ordered (:mod:`broker.shard.ordering`).
        """
        records_left = max(self.size.records - outgoing.written, self.size.records // 4)
        settings = self._context.settings
        bytes_max = settings.transaction_bytes_max
        bytes_left = max(bytes_max - outgoing.told_bytes, bytes_max // 4)
        until_s = time.perf_counter() + settings.transaction_write_ms / 2_000
        done: dict[tuple[int, str], OutputWritten] = {}
        broken: dict[str, TureenError] = {}
        more = True
        while more and records_left > 0 and bytes_left > 0:
            more = False
            for portion in self.pending.firsts():
                if records_left <= 0 or bytes_left <= 0 or time.perf_counter() > until_s:
                    more = False
                    break
                if not portion.is_ready or portion.query_id in broken or len(done) >= PIECES_MAX:
                    continue
                rows = min(PIECE_ROWS, records_left, max(1, bytes_left // self._record_bytes))
                try:
                    changes = portion.next(rows)
                    records = self._written(portion, changes)
                except TureenError as refused:
                    broken[portion.query_id] = refused
                    continue
                outgoing.tell([records])
                progress = OutputWritten(
                    portion.position.sequence, portion.query_id, portion.written + len(changes)
                )
                done[portion.position.sequence, portion.query_id] = progress
                self.pending.wrote(progress)
                records_left -= len(changes)
                bytes_left -= records.size
                self._record_bytes = max(1, records.size // max(1, len(changes)))
                more = True
        if done:
            self.make(Written(tuple(done.values())), outgoing)
        self._let_go(self._emission.give_up(broken), outgoing)

    def _written(self, portion: Portion, changes: Changes) -> ResultRecords:
        while True:
            try:
                records = self._emission.written(portion, changes)
                break
            except AWAITED as away:
                self._context.stalls.wait("output", away)
        self._context.stalls.tell("output", None)
        return records

    def give_up(self, reasons: Mapping[str, TureenError], outgoing: Outgoing) -> None:
        """Let queries go of whose changes not all can be written. Raises Interrupted."""
        self._let_go(self._emission.give_up(reasons), outgoing)

    def commit(self, outgoing: Outgoing) -> None:
        """Write it; what topics refuse is left out. Of results, the queries whose output it is go.

        Raises Fenced, Interrupted.
        """
        began_s = time.perf_counter()
        while True:
            try:
                self._outbox.commit(outgoing)
                break
            except Unwritable as refused:
                outgoing.leave_out(refused.topics)
                self._pass_over(refused.topics, outgoing)
                self._let_go(self._emission.refused(refused.topics, self.pending), outgoing)
        self.pending.committed()
        self._context.counts.transactions += 1
        self.size.wrote(outgoing.written, time.perf_counter() - began_s)

    def _pass_over(self, refused: Mapping[str, TureenError], outgoing: Outgoing) -> None:
        """Leave out letters that their topic refuses: the records are where they came from."""
        left = Counter(one.topic for one in outgoing.letters if one.topic in refused)
        outgoing.letters = [one for one in outgoing.letters if one.topic not in refused]
        for topic, count in left.items():
            self._context.counts.forwarded_lost[topic] += count
            self._context.counts.forwarding_refused[topic] = refused[topic].as_dict()
            log.error(
                "forwarded_records_lost",
                shard=self._context.number,
                topic=topic,
                records=count,
                reason=refused[topic].message,
            )

    def _emitted(self, body: Body, result: StepResult, outgoing: Outgoing) -> Emitted:
        """What the queries that emit tell of a step.

        A transaction may be twice as large as it should be: a step that comes last in it has room.
        """
        self._emission.stepped(body, result, self.engine)
        bytes_max = self._context.settings.transaction_bytes_max
        room = Room(
            max(0, 2 * self.size.records - outgoing.told), max(0, 2 * bytes_max - outgoing.told_bytes)
        )
        while True:
            try:
                emitted = self._emission.emit(body, result, self.pending, room)
                break
            except AWAITED as away:
                self._context.stalls.wait("output", away)
        self._context.stalls.tell("output", None)
        return emitted

    def _let_go(self, broken: tuple[str, ...], outgoing: Outgoing) -> None:
        if broken:
            changes = sorted(
                name for name in broken if self._emission.broken[name].code == ChangesBroken.code
            )
            if changes:
                log.error("changes_broken", shard=self._context.number, queries=changes)
            for part in unregister_bodies(broken, self.body_bytes_max):
                waiting = frozenset(name for name in part.query_ids if name in self.pending)
                self.make(part, outgoing, dropped=waiting)
            self._gone(broken)

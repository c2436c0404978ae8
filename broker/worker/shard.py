"""A shard: one engine with its store, its journal and its streams, in one thread.

The loop makes steps of what came (commands, records, the clock), runs them, journals them, shows them, saves:

    poll, commands -> step -> engine.run -> transaction {steps, late rows, dead letters} -> view -> save

The engine runs ahead of the transaction, since late rows are known only then, but its view is published after
it, and the store is written after it. So what is shown and what is saved is always journalled.

Waiting is part of life: while Kafka is away, or the disk is full, the shard tries on, answers from the
last view, and says in ``trouble`` what it waits for. Rows are then taken up where they were left. A defect
or a store that cannot be read ends this shard alone (``failed``).
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Literal

from broker import logs
from broker.archive.backfill import Backfills
from broker.archive.notes import HistoryNotes
from broker.archive.shelf import Shelf
from broker.internal import Outcome
from broker.settings import Settings
from broker.worker.emission import Emission
from broker.worker.engines import Engines
from broker.worker.intake import Taken
from broker.worker.listener import Listener
from broker.worker.metrics import STEP_SECONDS, Counts
from broker.worker.outbox import Interrupted, Letter, Outbox, Outgoing, Unwritable
from broker.worker.placement import shard_of
from broker.worker.questions import Asked, Found, Questions
from broker.worker.recovery import recover
from broker.worker.saving import Saving
from broker.worker.shard_command import ShardCommand, Standing, step_bodies
from broker.worker.step_size import StepSize
from broker.worker.streams import ReadStream, Streams
from engine.engine import Engine
from engine.model.source import Derived, Stream
from engine.model.step import Body, Heartbeat, Position, Register, Step, StepResult, Unregister
from engine.results.view import View
from storage.store import Store
from topics.admin import Admin
from topics.consumer import Range
from topics.journal import HistoryNamed, encode_step
from topics.outputs import AWAITED, Outputs
from topics.producer import forwarded
from topics.wording import said
from tureen.errors import (
    BrokerUnavailable,
    ChangesBroken,
    Fenced,
    KafkaUnavailable,
    StoreFull,
    TureenError,
)

State = Literal["recovering", "live", "failed", "fenced", "stopped"]

log = logs.get()


@dataclass(slots=True)
class _Job:
    commands: Sequence[ShardCommand]
    future: Future[list[Outcome]]
    outcomes: list[Outcome] | None = None


class Shard(threading.Thread):
    """Public attributes may be read from any thread; :meth:`submit`, :meth:`stop`, :meth:`view` called."""

    def __init__(
        self,
        number: int,
        settings: Settings,
        kafka: dict[str, str],
        engines: Engines,
        admin: Admin,
        outputs: Outputs,
        listener: Listener,
        on_fenced: Callable[[int], None],
        shelf: Shelf | None = None,
    ) -> None:
        """shelf: the archive, where there is one."""
        super().__init__(name=f"shard-{number}", daemon=True)
        self.number = number
        self.state: State = "recovering"
        self.epoch = 0
        self.counts = Counts()
        self.asked = Asked(settings.revise_interval_ms / 1_000)
        self.recovered: Future[None] = Future()
        self._settings = settings
        self._kafka = kafka
        self._engines = engines
        self._listener = listener
        self._on_fenced = on_fenced
        self._troubles: dict[str, dict[str, Any]] = {}
        self._engine: Engine = engines.fresh()
        self._view = self._engine.view()
        self._store: Store | None = None
        self._saving = Saving(number, settings, self._tell)
        self._emission = Emission(settings, outputs, self.counts)
        self._outbox = Outbox(
            number, settings, kafka, self._is_stopping, lambda t: self._tell("journal", t), outputs.look
        )
        topic_ids = {} if shelf is None else shelf.topic_ids
        self._streams = Streams(number, settings, kafka, admin, self._next_offsets, topic_ids)
        self._queries: dict[str, Standing] = {}
        self._sources: dict[str, Stream | Derived] = {}
        self._jobs: deque[_Job] = deque()
        self._at_work: list[_Job] = []
        self._questions = Questions()
        self._step_size = StepSize(settings.step_rows_max, settings.transaction_records_max)
        self._wake = threading.Condition()
        self._shelf = shelf
        self.history = HistoryNotes(settings.data_dir / "shards" / f"{number}.history.json")
        self._backfills = None if shelf is None else Backfills(number, settings, shelf, self._woken)
        self._stop_asked = threading.Event()
        self._clock_ms = 0
        self._lost_history: Mapping[str, dict[str, Any]] = {}

    # --- for other threads ------------------------------------------------------------------------

    def view(self) -> View:
        """The answers after the last journalled step."""
        return self._view

    @property
    def saved_position(self) -> Position | None:
        """Of the last step that is in the store."""
        return self._saving.position

    @property
    def trouble(self) -> dict[str, Any] | None:
        """What keeps the shard from going on; None while nothing does."""
        if self.state == "recovering" and not self._troubles:
            return {"code": "recovering", "message": "store and journal are being read"}
        return next(iter(list(self._troubles.values())), None)

    def lagging(self, name: str) -> frozenset[int]:
        """Partitions of a stream with unread records, as of the last poll."""
        return self._streams.lagging.get(name, frozenset())

    @property
    def broken(self) -> Mapping[str, ChangesBroken]:
        """Queries that went since their changes could not be told, and why."""
        return self._emission.broken

    @property
    def stream_errors(self) -> dict[str, dict[str, Any]]:
        """Streams that read no more, and why."""
        return self._streams.errors

    @property
    def backfills(self) -> Backfills | None:
        """How streams get their history; None without an archive."""
        return self._backfills

    @property
    def lost_history(self) -> Mapping[str, dict[str, Any]]:
        """Streams that came back without rows which the archive had given them, and why."""
        return self._lost_history

    def streams(self) -> dict[str, tuple[Stream, str]]:
        """Streams and their statements; once recovered, before commands are submitted."""
        statements = {info.name: info.sql for info in self._view.sources()}
        return {
            name: (one, statements[name]) for name, one in self._sources.items() if isinstance(one, Stream)
        }

    def derived(self) -> list[Derived]:
        """Views; as :meth:`streams`."""
        return [one for one in self._sources.values() if isinstance(one, Derived)]

    def submit(self, commands: Sequence[ShardCommand]) -> Future[list[Outcome]]:
        """Carry out in order; the future has one outcome each, once they are journalled."""
        job = _Job(commands, Future())
        with self._wake:
            if self.state in ("failed", "fenced", "stopped"):
                job.future.set_result([self._refusal()] * len(commands))
            else:
                self._jobs.append(job)
                self._wake.notify()
        return job.future

    def ask(self, work: Callable[[Engine], Found]) -> Future[Found]:
        """What ``work`` finds in the engine between two steps, in the shard's own thread."""
        with self._wake:
            future = self._questions.put(work)
            if self.state in ("failed", "fenced", "stopped"):
                self._questions.refuse(BrokerUnavailable(f"shard {self.number} has stopped"))
            self._wake.notify()
        return future

    def stop(self) -> None:
        """Finish the step at hand, save, end."""
        with self._wake:
            self._stop_asked.set()
            self._wake.notify()

    # --- life -------------------------------------------------------------------------------------

    def run(self) -> None:
        try:
            self._come_back()
            self._live()
            self._end("stopped", None)
        except Interrupted:
            self._end("stopped", None)
        except Fenced as fenced:
            log.error("shard_fenced", shard=self.number, reason=fenced.message)
            self._end("fenced", fenced)
            self._on_fenced(self.number)
        except TureenError as refused:
            log.error("shard_failed", shard=self.number, code=refused.code, reason=str(refused))
            self._end("failed", refused)
        except BaseException as defect:  # a thread that died without a word would be live for ever
            log.error("shard_failed", shard=self.number, error=repr(defect), exc_info=defect)
            self._end(
                "failed", TureenError(f"shard {self.number} failed: {defect!r}", hint="see the broker's log")
            )

    def _end(self, state: State, error: TureenError | None) -> None:
        with self._wake:
            self.state = state
            if error is not None:
                self._troubles = {"end": error.as_dict()}
            jobs, self._jobs = self._at_work + list(self._jobs), deque()
            self._questions.refuse(error or BrokerUnavailable(f"shard {self.number} has stopped"))
        self._listener.ended(self.number, error if state == "failed" else None)
        self._streams.close()
        if self._backfills is not None:
            self._backfills.close()
        self._outbox.close()
        if self._store is not None:
            self._store.close()
        if not self.recovered.done():
            self.recovered.set_result(None)
        # Commands that were not carried out are said again to the next owner.
        if state != "stopped":
            for job in jobs:
                job.future.set_result([self._refusal()] * len(job.commands))

    def _refusal(self) -> Outcome:
        error = self.trouble or BrokerUnavailable(f"shard {self.number} has stopped").as_dict()
        return {"state": "ERROR", "error": error, "position": None}

    def _come_back(self) -> None:
        directory = self._settings.data_dir / "shards" / str(self.number)
        while self._store is None:
            try:
                self._store = Store(directory)
            except StoreFull as full:
                self._wait("store", full)
        self._tell("store", None)
        self._outbox.fence()
        while True:
            try:
                back = recover(
                    self.number, self._store, self._settings, self._kafka, self._engines, self._shelf
                )
                break
            except KafkaUnavailable as away:
                self._wait("journal", away)
        self._tell("journal", None)
        self._engine, self.epoch = back.engine, back.epoch
        self._lost_history = back.lost_history
        for name, sequence in back.history.items():
            self.history.put(name, sequence)
        self._saving.begin(self._store, replayed=bool(back.replayed))
        self._view = self._engine.view()
        self._clock_ms = self._now_ms()
        self._queries = {
            info.query_id: (said(info.sql, info.parameters), info.options) for info in self._view.queries()
        }
        self._emission.came(self._view, ((one.query_id, one.sql) for one in self._view.queries()))
        self._sources = dict(self._engine.catalogue)
        for info in self._view.sources():
            stream = self._sources[info.name]
            assert isinstance(stream, Stream)
            self._streams.add(stream, info.next_offsets, self._now_ms())
        self.state = "live"
        self.recovered.set_result(None)

    def _live(self) -> None:
        while not self._stop_asked.is_set():
            jobs = self._at_work = self._next_jobs()
            self._questions.answer(self._engine)
            outgoing = Outgoing()
            began_s = time.perf_counter()
            for job in jobs:
                self._carry_out(job, outgoing)
            if not self._saving.full:
                self._ingest(outgoing, wait=not jobs)
                self._bring_back(outgoing)
            self._beat(outgoing)
            if outgoing.last is not None:
                STEP_SECONDS.labels(str(self.number)).observe(time.perf_counter() - began_s)
                self._commit(outgoing)
                self.counts.transactions += 1
                self._view = self._engine.view()
                self._listener.committed(self.number, self._view, outgoing.results, outgoing.touched)
            for job in jobs:
                assert job.outcomes is not None
                job.future.set_result(job.outcomes)
            self._at_work = []
            self._revise_if_due()
            self._saving.save_if_due(self._engine)
        self._saving.save(self._engine, final=True)

    def _next_jobs(self) -> list[_Job]:
        with self._wake:
            if not self._jobs and not self._questions and not self._streams.reading():
                self._wake.wait(self._settings.heartbeat_ms / 1_000)
            jobs, self._jobs = list(self._jobs), deque()
        return jobs

    # --- steps ------------------------------------------------------------------------------------

    def _now_ms(self) -> int:
        return max(self._clock_ms, time.time_ns() // 1_000_000)

    def _step(self, body: Body, outgoing: Outgoing, read: Sequence[Range] | HistoryNamed = ()) -> StepResult:
        self._clock_ms = self._now_ms()
        last = self._engine.position
        step = Step(Position(self.epoch, last.sequence + 1), self._clock_ms, body)
        self._engine.enqueue(step)
        (result,) = self._engine.run()
        names = self._settings.names
        key, value = encode_step(step, result, read)
        outgoing.letters.append(Letter(names.steps, value, key, self.number))
        outgoing.last = step.position
        outgoing.results.append(result)
        if isinstance(body, Register):
            outgoing.touched.update(one.query_id for one in body.registrations)
        elif isinstance(body, Unregister):
            outgoing.touched.update(body.query_ids)
        self.counts.steps += 1
        self._emit(body, result, outgoing)
        return result

    def _emit(self, body: Body, result: StepResult, outgoing: Outgoing) -> None:
        """Add what the queries that emit tell of a step; those that cannot go, by a step of their own."""
        self._emission.stepped(body, result, self._engine)
        while True:
            try:
                records, broken = self._emission.records(body, result)
                break
            except AWAITED as away:
                self._wait("output", away)
        self._tell("output", None)
        outgoing.records += records
        self._let_go(broken, outgoing)

    def _let_go(self, broken: tuple[str, ...], outgoing: Outgoing) -> None:
        """Queries whose changes cannot be told go, by a step of their own."""
        if broken:
            log.error("changes_broken", shard=self.number, queries=sorted(broken))
            self._step(Unregister(broken), outgoing)
            for name in broken:
                self._queries.pop(name, None)

    def _commit(self, outgoing: Outgoing) -> None:
        """Write it; what result topics refuse is left out, and whose output it is goes."""
        while True:
            try:
                return self._outbox.commit(outgoing)
            except Unwritable as refused:
                outgoing.records = [one for one in outgoing.records if one.topic not in refused.topics]
                self._let_go(self._emission.refused(refused.topics), outgoing)

    def _carry_out(self, job: _Job, outgoing: Outgoing) -> None:
        """Make the steps of some commands; those that change nothing make none."""
        self._saving.changed()
        outcomes: list[Outcome] = [{"state": "RUNNING", "error": None, "position": None}] * len(job.commands)
        for made in step_bodies(job.commands, self._queries, self._sources):
            failed: dict[str, Any] = {}
            if made.body is not None:
                result = self._step(made.body, outgoing)
                failed = dict(result.failed)
                if isinstance(made.body, Unregister):
                    for name in made.body.query_ids:
                        self._queries.pop(name, None)
            for place in made.places:
                command = job.commands[place]
                error = failed.get(command.name)
                outcomes[place] = command.outcome(self._engine.position, error)
                if error is None and made.body is not None:
                    self._follow(command)
        job.outcomes = outcomes

    def _follow(self, command: ShardCommand) -> None:
        """Keep the shard's own books after a command was applied."""
        match command.kind:
            case "register":
                if command.name not in self._emission.broken:
                    self._queries[command.name] = command.standing
            case "create":
                assert command.source is not None
                self._sources[command.name] = command.source
                if isinstance(command.source, Stream):
                    self._streams.add(command.source, {}, self._now_ms())
            case "drop":
                if isinstance(self._sources.pop(command.name), Stream):
                    self._streams.drop(command.name)

    def _ingest(self, outgoing: Outgoing, wait: bool) -> None:
        """Take up what the streams have, up to a transaction's worth of rows."""
        self._streams.look_after()
        reading = self._streams.reading()
        if self._streams.is_away():
            if "read" not in self._troubles:
                self._tell("read", KafkaUnavailable("Kafka does not answer; streams wait for it").as_dict())
        else:
            self._tell("read", None)
        if not reading:
            return
        joined = [names for names in self._engine.source_sets if len(names) > 1]
        if joined:
            nows = {info.name: info.now_ms for info in self._view.sources()}
            reading = self._streams.in_step(nows, joined)
        timeout_s = self._settings.poll_ms / 1_000 / len(reading) if wait else 0.0
        share = max(self._settings.step_rows_max, self._settings.transaction_rows_max // len(reading))
        for stream in reading:
            taken_rows = 0
            while taken_rows < share and stream.intake is not None:
                if outgoing.told >= self._settings.transaction_records_max:
                    return
                taken = self._streams.poll(stream, self._step_size.rows, timeout_s)
                if taken is None:
                    break
                taken_rows += len(taken.messages)
                self._records(stream, taken, outgoing)
                if not taken.body.lagging:
                    break

    def _records(self, stream: ReadStream, taken: Taken, outgoing: Outgoing) -> None:
        name = stream.stream.name
        told = outgoing.told
        result = self._step(taken.body, outgoing, taken.ranges)
        self._step_size.stepped(len(taken.messages), outgoing.told - told)
        stream.pace.stepped(self._clock_ms, taken.body.batch.partitions(), taken.body.lagging)
        self._saving.changed(len(taken.messages))
        if shard_of([name], self._settings.shards) != self.number:
            return  # a guest: its home writes what was refused, and counts
        names = self._settings.names
        for place, reason in taken.bad:
            outgoing.letters.append(_letter(names.dead_letters, taken.messages[place], reason))
        for refusal in result.rejected:
            message = taken.messages[taken.rows[refusal.row]]
            outgoing.letters.append(_letter(names.dead_letters, message, refusal.reason))
        for row in result.late:
            outgoing.letters.append(_letter(names.late, taken.messages[taken.rows[row]], "late"))
        counts = self.counts
        counts.records[name] += len(taken.messages)
        counts.bytes[name] += taken.size
        counts.entered[name] += result.entered
        counts.late[name] += len(result.late)
        counts.dead_letters[name] += len(taken.bad) + len(result.rejected)

    def _bring_back(self, outgoing: Outgoing) -> None:
        """Take up history that was read from the archive."""
        if self._backfills is None:
            return
        for body, named in self._backfills.ready(self._engine):
            self.history.put(body.source, self._engine.position.sequence + 1)
            result = self._step(body, outgoing, named)
            for refused in result.failed.values():
                log.warning("backfill_refused", shard=self.number, stream=body.source, reason=str(refused))
            self._saving.changed(len(body.batch))

    def _beat(self, outgoing: Outgoing) -> None:
        clock_ms = self._now_ms()
        for stream in self._streams.reading():
            assert stream.intake is not None
            name, lagging = stream.stream.name, stream.intake.lagging
            self._streams.lagging[name] = lagging
            if stream.pace.is_due(clock_ms, lagging):
                result = self._step(Heartbeat(stream.stream.name, lagging), outgoing)
                stream.pace.stepped(self._clock_ms, (), lagging)
                if shard_of([name], self._settings.shards) == self.number:
                    self.counts.entered[name] += result.entered
                if result.entered:
                    self._saving.changed()

    def _revise_if_due(self) -> None:
        """Let the engine choose maintenance again, by how often answers were asked for; no answer changes."""
        turned = self.asked.turn()
        if turned is None:
            return
        revised = self._engine.revise(*turned)
        if revised:
            self.counts.revised += revised
            self._view = self._engine.view()

    def _next_offsets(self, name: str) -> dict[int, int]:
        return next(info.next_offsets for info in self._engine.view().sources() if info.name == name)

    # --- waiting ----------------------------------------------------------------------------------

    def _woken(self) -> None:
        with self._wake:
            self._wake.notify()

    def _is_stopping(self) -> bool:
        return self._stop_asked.is_set()

    def _tell(self, what: str, trouble: dict[str, Any] | None) -> None:
        if trouble is not None:
            if what not in self._troubles:
                log.warning("shard_waits", shard=self.number, code=trouble["code"], reason=trouble["message"])
            self._troubles = self._troubles | {what: trouble}
        elif what in self._troubles:
            self._troubles = {name: told for name, told in self._troubles.items() if name != what}
            log.info("shard_goes_on", shard=self.number, after=what)

    def _wait(self, what: str, error: TureenError) -> None:
        self._tell(what, error.as_dict())
        if self._stop_asked.wait(self._settings.retry_ms / 1_000):
            raise Interrupted


def _letter(topic: str, message: Any, reason: str) -> Letter:
    value, key, headers = forwarded(message, reason)
    return Letter(topic, value, key, headers=headers)

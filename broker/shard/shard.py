"""A shard: one engine with its store, its journal and its streams, in one thread.

The loop makes steps of what came (commands, records, history, the clock), journals them, shows them, saves:

    poll, commands -> step -> engine.run -> transaction {steps, late rows, dead letters} -> view -> save

The engine runs ahead of the transaction, since late rows are known only then, but its view is published after
it, and the store is written after it. So what is shown and what is saved is always journalled.

Here stand the order of these and the shard's life. Each part has its own module, used by the shard's thread:
what others want (:mod:`.inbox`), what commands do (:mod:`.execution`), what is taken up
(:mod:`.ingestion`), how a step is made and written (:mod:`.steps`, :mod:`.outbox`), when the store is
written (:mod:`.saving`).

While Kafka is away, or the disk is full, the shard tries on, answers from the last view, and says in
``stall`` what it waits for (:mod:`.stalls`). Rows are then taken up where they were left. A defect or a
store that cannot be read ends this shard alone (``failed``).
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, Literal

from broker.archive.backfill import Backfills
from broker.archive.notes import HistoryNotes
from broker.base import logs
from broker.base.counts import STEP_SECONDS, Counts
from broker.base.internal import Outcome
from broker.memory.levels import Level
from broker.runtime.compiling import COMPILATIONS
from broker.runtime.liveness import Pulse
from broker.shard.comeback import Comeback
from broker.shard.context import ShardContext
from broker.shard.doing import ANSWERING, SAVING
from broker.shard.eager_attempts import EagerAttempts
from broker.shard.emission import Emission
from broker.shard.execution import Execution
from broker.shard.grants import Grants
from broker.shard.inbox import Inbox, Job
from broker.shard.ingestion import Ingestion
from broker.shard.ordering import Ordering
from broker.shard.outbox import Outbox, Outgoing
from broker.shard.preparations import Preparations
from broker.shard.questions import Asked, Found
from broker.shard.saving import Saving
from broker.shard.setup import ShardSetup
from broker.shard.shard_command import ShardCommand
from broker.shard.shard_state import ShardState
from broker.shard.stalls import Interrupted, Stall, Stalls
from broker.shard.steps import Steps
from broker.shard.streams import Streams
from broker.shard.trials import Trials
from broker.shard.upkeep import Upkeep
from broker.shard.work_attributes import limit_work, work_attributes
from engine.engine import Engine
from engine.model.attributes import Attribute, AttributeValue, edits
from engine.model.source import Derived, SourceName, Stream
from engine.model.step import Position
from engine.model.summary import SummaryName
from engine.queries.summaries import NamedSummary
from engine.views.view import View
from storage.store import Store
from tureen.errors import (
    BrokerUnavailable,
    Fenced,
    ShardHeld,
    TureenError,
)

State = Literal["recovering", "held", "live", "failed", "fenced", "stopped"]

MODULE = "shard"
"""Name of a shard as an entity, behind the shard's number."""
log = logs.get()


class Shard(threading.Thread):
    """Public attributes may be read from any thread; :meth:`submit`, :meth:`stop`, :meth:`view` called."""

    def __init__(
        self,
        number: int,
        setup: ShardSetup,
        pulse: Pulse,
        held: ShardHeld | None,
    ) -> None:
        """pulse: the thread's signs of life. held: why it does not come back by itself."""
        super().__init__(name=f"shard-{number}", daemon=True)
        self._setup = setup = replace(setup, engines=replace(setup.engines, timer=pulse.timer))
        settings, archive, memory = setup.settings, setup.archive, setup.memory
        self.number = number
        self._life: State = "recovering"
        self.counts = Counts()
        self.grants = Grants.of(settings, time.perf_counter_ns())
        """What steps may work for queries with a preference."""
        self.asked = Asked(settings.revise_interval_ms / 1_000)
        self.recovered: Future[None] = Future()
        self.life = ""
        """What tells its journal from others, as change positions have it; once recovered."""
        self.history = HistoryNotes(settings.data_dir / "shards" / f"{number}.history.json")
        self._settings = settings
        self._memory = memory
        self.pulse = pulse
        """The signs of life of its thread."""
        self._store: Store | None = None
        self.lost_history: Mapping[str, dict[str, Any]] = {}
        """Streams that came back without rows which the archive had given them, and why."""
        self._lost_output: Mapping[str, TureenError] = {}
        self._inbox = Inbox(number)
        self._stalls = Stalls(number, settings.retry_ms, pulse)
        self._state = ShardState()
        context = ShardContext(number, settings, self._stalls, self.counts, pulse, memory)
        self.upkeep = Upkeep(context, self.asked)
        self._saving = Saving(context)
        self.emission = Emission(settings.names, setup.outputs, self.counts, settings.changes_max)
        self._outbox = Outbox(number, settings, setup.kafka, self._stalls, setup.outputs.look, pulse)
        self._steps = Steps(context, setup.engines.fresh(), self.emission, self._outbox, self._state.forget)
        topic_ids = {} if archive is None else archive.topic_ids
        self._streams = Streams(context, setup.reading, self._inbox, self._steps.next_offsets, topic_ids)
        streams, steps = self._streams, self._steps
        noted = settings.data_dir / "shards" / f"{number}.trials.json"
        trials = Trials(noted, number, lambda: memory.look() >= Level.REFUSE)
        self.preparations = Preparations(number, settings, trials, self._state, pulse, self._inbox.wake)
        """Commands that are worked out before their step: what may be read of them."""
        self._comeback = Comeback(context, setup, held, trials, self._inbox, self._stands)
        self._attempts = EagerAttempts(number, self._inbox.wake)
        self._ordering = Ordering(number, self._inbox.wake)
        self._execution = Execution(
            self._state, steps, streams, self.emission, self._saving, self.preparations, self.counts
        )
        self.backfills = None if archive is None else Backfills(number, settings, archive, self._inbox.wake)
        """How streams get their history; None without an archive."""
        self.ingestion = Ingestion(
            context, streams, steps, self._saving, self.backfills, self.history, self.grants
        )
        self._view = self._steps.engine.view()

    # --- for other threads ------------------------------------------------------------------------

    def view(self) -> View:
        """The answers after the last journalled step."""
        return self._view

    @property
    def state(self) -> State:
        """How far it is in its life."""
        waits = self._life == "recovering" and self._comeback.held is not None and self.recovered.done()
        return "held" if waits else self._life

    @property
    def held(self) -> ShardHeld | None:
        """Why it does not come back by itself, while that is so."""
        return self._comeback.held

    @property
    def epoch(self) -> int:
        """Which owner of the shard this is; 0 until it has recovered."""
        return self._steps.epoch

    @property
    def saved_position(self) -> Position | None:
        """Position of the last step that is in the store."""
        return self._saving.position

    @property
    def stall(self) -> Stall | None:
        """What keeps the shard from going on; None while nothing does."""
        stall = self._stalls.first
        if stall is None and self.state == "recovering":
            return {"code": "recovering", "message": "store and journal are being read"}
        return stall

    def lagging(self, name: str) -> frozenset[int]:
        """Partitions of a stream with unread records, as of the last poll."""
        return self._streams.lagging.get(SourceName(name), frozenset())

    def told(self, view: View) -> View:
        """The engine's view between two steps, which says how far sources are; in the shard's own thread."""
        return self._streams.catch_ups.told(view)

    def waiting(self, query_id: str | None = None) -> int:
        """How many changes of a query, or of all, are still to be written to result topics."""
        return self._steps.pending.untold(query_id)

    @property
    def stream_errors(self) -> Mapping[SourceName, dict[str, Any]]:
        """Streams that read no more, and why."""
        return self._streams.errors

    def streams(self) -> dict[str, tuple[Stream, str]]:
        """Streams and their statements; once recovered, before commands are submitted."""
        statements = {info.name: info.sql for info in self._view.sources()}
        sources = self._state.sources
        return {name: (one, statements[name]) for name, one in sources.items() if isinstance(one, Stream)}

    def derived(self) -> list[Derived]:
        """Views; as :meth:`streams`."""
        return [one for one in self._state.sources.values() if isinstance(one, Derived)]

    def summaries(self) -> Mapping[SummaryName, NamedSummary]:
        """Summaries and their statements; as :meth:`streams`."""
        return self._state.summaries

    def submit(self, commands: Sequence[ShardCommand]) -> Future[list[Outcome]]:
        """Carry out in order; the future has one outcome each, once they are journalled."""
        return self._inbox.submit(commands)

    def ask(self, work: Callable[[Engine], Found]) -> Future[Found]:
        """What ``work`` finds in the engine between two steps, in the shard's own thread."""
        return self._inbox.ask(work)

    def retry(self) -> None:
        """Where it is held: try to come back."""
        self._comeback.retry()

    def stop(self) -> None:
        """Finish the step at hand, save, end."""
        self._stalls.stop()
        self._inbox.wake()

    # --- attributes -------------------------------------------------------------------------------

    def attributes(self) -> tuple[Attribute, ...]:
        """What the shard tells of itself besides its engine; from any thread."""
        return (
            Attribute("state", self.state, "whether it makes progress"),
            Attribute("steps", self.counts.steps, "steps that it made"),
            Attribute("transactions", self.counts.transactions, "transactions that they were written in"),
            *work_attributes(self.grants),
        )

    def edit(self, values: Mapping[str, AttributeValue], version: int | None) -> None:
        """Set attributes, all or none; in the shard's own thread. Raises AttributeRefused, EditConflict."""
        for value in edits(f"{self.number}/{MODULE}", self.attributes(), values, version).values():
            limit_work(self.grants, value, time.perf_counter_ns())

    # --- life -------------------------------------------------------------------------------------

    def run(self) -> None:
        COMPILATIONS.watch(self.pulse)
        try:
            self._come_back()
            self._live()
            self._end("stopped", None)
        except Interrupted:
            self._end("stopped", None)
        except Fenced as fenced:
            log.error("shard_fenced", shard=self.number, reason=fenced.message)
            self._end("fenced", fenced)
            self._setup.on_fenced(self.number)
        except TureenError as refused:
            log.error("shard_failed", shard=self.number, code=refused.code, reason=str(refused))
            self._end("failed", refused)
        except BaseException as defect:  # a thread that died without a word would be live for ever
            log.error("shard_failed", shard=self.number, error=repr(defect), exc_info=defect)
            self._end(
                "failed", TureenError(f"shard {self.number} failed: {defect!r}", hint="see the broker's log")
            )

    def _end(self, state: State, error: TureenError | None) -> None:
        if error is not None:
            self._stalls.end(error)
        self._life = state
        self.pulse.end()
        self._memory.counted(self.number, None)
        stopped = BrokerUnavailable(f"shard {self.number} has stopped")
        refusal = self._stalls.first or stopped.as_dict()
        jobs = self._inbox.close(error or stopped, refusal)
        self.preparations.end()
        self._setup.listener.ended(self.number, error if state == "failed" else None)
        if state in ("stopped", "fenced"):
            self.preparations.stop()
        self._streams.close()
        if self.backfills is not None:
            self.backfills.close()
        self._outbox.close()
        if self._store is not None:
            self._store.close()
        self._known()
        # Commands that were not carried out are said again to the next owner.
        if state != "stopped":
            for job in jobs:
                job.refuse(refusal)

    def _come_back(self) -> None:
        self.pulse.toil()
        self._store, claimed = self._comeback.open(self._outbox)
        self.life, back = self._comeback.recovered(self._store, claimed)
        self.lost_history = back.lost_history
        for name, sequence in back.history.items():
            self.history.put(name, sequence)
        self._saving.begin(self._store, replayed=bool(back.replayed))
        self._steps.begin(back.engine, claimed.epoch, back.pending)
        self._lost_output = back.lost_output
        view = back.engine.view()
        self._state.begin(view, back.engine)
        self.emission.came(view, ((one.query_id, one.registration.sql) for one in view.standing.values()))
        sources = [(self._state.sources[info.name], info.next_offsets) for info in view.sources()]
        streams = [(one, offsets) for one, offsets in sources if isinstance(one, Stream)]
        self._streams.add(streams, self._steps.now_ms())
        self.preparations.apart.set_apart(self._steps)
        self._show()
        self._remove_at_last()
        self._comeback.over()
        self._life = "live"
        self._known()

    def _stands(self, engine: Engine) -> ShardState:
        """It is held, with what stands in this engine."""
        self._view = engine.view()
        self._state.begin(self._view, engine)
        self._known()
        return self._state

    def _known(self) -> None:
        if not self.recovered.done():
            self.recovered.set_result(None)

    def _show(self) -> None:
        """Let readers see what the last step left."""
        self._view = self.told(self._steps.engine.view())

    def _remove_at_last(self) -> None:
        """Make steps of what was removed while the shard was held; the engine came back without."""
        removals = self._comeback.removals
        if not removals:
            return
        self._state.queries |= dict.fromkeys(removals.queries, ("", {}))
        commands = [ShardCommand.unregister(name) for name in sorted(removals.queries)]
        commands += [ShardCommand.drop(name) for name in removals.sources]
        outgoing = Outgoing()
        outcomes = self._execution.carry_out(commands, outgoing)
        self._steps.commit(outgoing)
        self._show()
        removals.made_at = self._steps.engine.position
        refused = [outcome["error"] for outcome in outcomes if outcome["state"] == "ERROR"]
        log.info("removals_made", shard=self.number, removed=len(commands), refused=refused)

    def _live(self) -> None:
        if self._lost_output:
            outgoing = Outgoing()
            self._steps.give_up(self._lost_output, outgoing)
            self._steps.commit(outgoing)
            self._show()
        self.ingestion.worked(alone=False)
        busy, has_room = False, True
        while not self._stalls.stopping:
            waiting = self._ordering.look(self._steps.pending)
            linger_s = 0.0 if waiting else self.ingestion.linger_s()
            may_work = has_room and not (waiting or busy)
            work_s = self.ingestion.work_wait_s(linger_s) if may_work else math.inf
            lingers = work_s < linger_s  # records wait meanwhile
            rest_s = 0.0 if waiting or busy or lingers else self.ingestion.rest_s()
            jobs = self._rest(min(work_s, max(rest_s, linger_s)), linger_s)
            self.pulse.beat(ANSWERING)
            self._inbox.answer(self._steps.engine)
            outgoing = Outgoing()
            began_s = time.perf_counter()
            self.ingestion.wake(
                {name for job in jobs for one in job.commands for name in one.reads}, outgoing
            )
            if self._execution.carry_out_all(jobs, outgoing):
                self.ingestion.commanded()
            has_room = not (self._saving.full or self._steps.is_flooded) and self._memory.look() < Level.HOLD
            if has_room:
                if not lingers:
                    self.ingestion.take_up(self._view, outgoing)
                self.ingestion.bring_back(outgoing)
            self.ingestion.beat(outgoing)
            works = has_room and may_work and outgoing.last is None
            if works:
                self.ingestion.work(linger_s, outgoing)
            if waiting:  # a step that has just caused them took its time: it is shown first
                self._steps.write_later(outgoing)
            self._evaluate(outgoing)
            if outgoing.last is not None:
                STEP_SECONDS.labels(str(self.number)).observe(time.perf_counter() - began_s)
                self._steps.commit(outgoing)
                self._show()
                self._setup.listener.committed(self.number, self._view, outgoing.results, outgoing.touched)
                self.ingestion.worked(alone=works)
            self._inbox.done()
            self.preparations.journalled()
            busy = (works or outgoing.last is None) and self._steps.engine.idle()
            busy |= self.preparations.some(has_room)
            busy |= self._attempts.some(self._steps.engine)
            if busy:
                self._show()
            else:  # what was heard of topics may have changed
                self._view = self.told(self._view)
            if self.upkeep.revise_if_due(self._steps.engine):
                self._show()
            self.pulse.beat(SAVING)
            self._saving.save_if_due(self._steps.engine, self._steps.pending)
            self._comeback.removals.forget_if_saved(self._saving.position)
            self.upkeep.count_if_due(self._steps.engine)
        self.pulse.beat()
        self._saving.save_last(self._steps.engine, self._steps.pending)

    def _evaluate(self, outgoing: Outgoing) -> None:
        """Work out what the view after the steps so far shows; queries for which that fails go. Raises
        Interrupted.
        """
        self._steps.engine.view()
        while self._steps.engine.defects:
            self._steps.end_failed(outgoing)
            self._steps.engine.view()

    def _rest(self, wait_s: float, linger_s: float) -> Sequence[Job]:
        """Wait for something to do, as :meth:`broker.shard.inbox.Inbox.take` has it."""
        if self._steps.is_full:
            return []
        began_ns = time.perf_counter_ns()
        self.pulse.rest(wait_s)
        jobs = self._inbox.take(wait_s, linger_s)
        self.pulse.beat()
        self.grants.rested(time.perf_counter_ns() - began_ns)
        return jobs

"""What a live shard does, turn after turn, and in which order.

    wait -> answer -> commands, records, history, clock, work, changes that waited -> evaluate
         -> transaction -> view -> outcomes -> what is done beside steps -> store

A turn writes one transaction at most. The engine runs ahead of it, since late rows are known only then, but
its view is shown after it, and the store is written after it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from broker.base.counts import STEP_SECONDS
from broker.memory.levels import Level
from broker.shard.current_view import CurrentView
from broker.shard.doing import ANSWERING, SAVING
from broker.shard.eager_attempts import EagerAttempts
from broker.shard.held import Removals
from broker.shard.inbox import Job
from broker.shard.ordering import Ordering
from broker.shard.outbox import Outgoing
from broker.shard.parts import ShardParts
from broker.shard.setup import ShardSetup
from broker.shard.upkeep import Upkeep


@dataclass(frozen=True, slots=True)
class _Pause:
    """How a turn waits for something to do."""

    wait_s: float
    linger_s: float
    """How long records that come wait for others."""
    lingers: bool
    """There is time for work for queries with a preference while records wait: none are taken up yet."""
    may_work: bool
    """Nothing else is to be done, so that such work may be."""


class Serving:
    """Used by the shard's thread alone."""

    def __init__(self, parts: ShardParts, current: CurrentView, upkeep: Upkeep, setup: ShardSetup) -> None:
        """current: is shown what a turn left. setup: whose listener is told what it committed."""
        self._parts = parts
        self._current = current
        self._upkeep = upkeep
        self._listener = setup.listener
        self._small_turns = setup.small_turns
        number, wake = parts.context.number, parts.inbox.wake
        self._ordering = Ordering(number, wake)
        self._attempts = EagerAttempts(number, wake)
        self._busy = False
        """The last turn left something to do beside steps."""
        self._has_room = True
        """Store, changes that wait and memory had room for more rows at the last turn."""

    def serve(self, removals: Removals) -> None:
        """Make turns until the shard is told to stop, then save. removals: are forgotten once the store has
        no word of them. Raises Fenced, Interrupted, and what ends a shard.
        """
        parts = self._parts
        parts.ingestion.worked(alone=False)
        while not parts.context.stalls.stopping:
            self._turn(removals)
        parts.context.pulse.beat()
        parts.saving.save_last(parts.steps.engine, parts.steps.pending)

    def _turn(self, removals: Removals) -> None:
        parts, steps = self._parts, self._parts.steps
        waiting = self._ordering.look(steps.pending)
        pause = self._pause(waiting)
        jobs = self._rest(pause)
        parts.context.pulse.beat(ANSWERING)
        parts.inbox.answer(steps.engine)
        outgoing = Outgoing()
        began_s = time.perf_counter()
        with self._small_turns.one_at_a_time(parts.ingestion.has_few and not (jobs or waiting)):
            works = self._make_steps(jobs, pause, outgoing)
            if waiting:  # a step that has just caused them took its time: it is shown first
                steps.write_later(outgoing)
            self._evaluate(outgoing)
        if outgoing.last is not None:
            STEP_SECONDS.labels(str(parts.context.number)).observe(time.perf_counter() - began_s)
            self._commit(outgoing, works)
        parts.inbox.done()
        parts.preparations.journalled()
        self._work_beside(works or outgoing.last is None)
        parts.context.pulse.beat(SAVING)
        parts.saving.save_if_due(steps.engine, steps.pending)
        removals.forget_if_saved(parts.saving.position)
        self._upkeep.count_if_due(steps.engine)

    def _pause(self, waiting: bool) -> _Pause:
        """How long there is nothing to do. waiting: changes wait that can be written now."""
        ingestion = self._parts.ingestion
        linger_s = 0.0 if waiting else ingestion.linger_s()
        may_work = self._has_room and not (waiting or self._busy)
        work_s = ingestion.work_wait_s(linger_s) if may_work else math.inf
        lingers = work_s < linger_s
        rest_s = 0.0 if waiting or self._busy or lingers else ingestion.rest_s()
        return _Pause(min(work_s, max(rest_s, linger_s)), linger_s, lingers, may_work)

    def _rest(self, pause: _Pause) -> Sequence[Job]:
        """Wait for something to do, as :meth:`broker.shard.inbox.Inbox.take` has it."""
        parts = self._parts
        if parts.steps.is_full:
            return []
        began_ns = time.perf_counter_ns()
        parts.context.pulse.rest(pause.wait_s)
        jobs = parts.inbox.take(pause.wait_s, pause.linger_s)
        parts.context.pulse.beat()
        parts.ingestion.grants.rested(time.perf_counter_ns() - began_ns)
        return jobs

    def _make_steps(self, jobs: Sequence[Job], pause: _Pause, outgoing: Outgoing) -> bool:
        """Make steps of what came. Returns whether there was nothing but work for queries with a preference.
        Raises Interrupted.
        """
        parts, ingestion = self._parts, self._parts.ingestion
        ingestion.wake({name for job in jobs for one in job.commands for name in one.reads}, outgoing)
        if parts.execution.carry_out_all(jobs, outgoing):
            ingestion.commanded()
        is_full = parts.saving.full or parts.steps.is_flooded
        self._has_room = not is_full and parts.context.memory.look() < Level.HOLD
        if self._has_room:
            if not pause.lingers:
                ingestion.take_up(self._current.view, outgoing)
            ingestion.bring_back(outgoing)
        ingestion.beat(outgoing)
        works = self._has_room and pause.may_work and outgoing.last is None
        if works:
            ingestion.work(pause.linger_s, outgoing)
        return works

    def _evaluate(self, outgoing: Outgoing) -> None:
        """Work out what the view after the steps so far shows; queries for which that fails go. Raises
        Interrupted.
        """
        steps = self._parts.steps
        steps.engine.view()
        while steps.engine.defects:
            steps.end_failed(outgoing)
            steps.engine.view()

    def _commit(self, outgoing: Outgoing, works: bool) -> None:
        """Write the steps so far, then show them. Raises Fenced, Interrupted."""
        parts = self._parts
        parts.steps.commit(outgoing)
        self._current.show()
        self._listener.committed(parts.context.number, self._current.view, outgoing.results, outgoing.touched)
        parts.ingestion.worked(alone=works)

    def _work_beside(self, is_idle: bool) -> None:
        """Do some of what needs no step. is_idle: no rows and no commands came."""
        engine, preparations = self._parts.steps.engine, self._parts.preparations
        self._busy = is_idle and engine.idle()
        self._busy |= preparations.some(self._has_room)
        self._busy |= self._attempts.some(engine)
        self._busy |= self._upkeep.swapper.out_if_due(engine)
        self._busy |= self._upkeep.make_room(engine)
        if self._busy:
            self._current.show()
        else:
            self._current.hear()
        if self._upkeep.revise_if_due(engine):
            self._current.show()

"""The engine: takes steps, one after another, and keeps every answer warm.

    engine.enqueue(step)        put a step in the queue
    engine.run(budget)          apply whole steps until the budget is spent
    engine.view()               what readers see: immutable, as of the last step applied
    engine.save(sink)           what changed since the last save, with the position
    Engine.restore(source)      back from a store; later steps are replayed by the caller

Deterministic: no clock, no randomness, no thread is reached for. A step is atomic; whether rows come in one
step or in several changes no answer, only when it is seen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from engine.dataflow.buffers.settings import StateSettings
from engine.eddy.eddy import Timer
from engine.embedding import Embedding
from engine.inspection import Inspection
from engine.language.bind.environment import Summaries
from engine.language.functions import BUILT_IN, FunctionCatalogue
from engine.language.query import Statement
from engine.language.templates import Read
from engine.lifecycle import Lifecycle
from engine.model.limits import Limits
from engine.model.maintenance import Costs
from engine.model.persistence import StateSource
from engine.model.source import Derived, Stream
from engine.model.step import (
    BEGINNING,
    Position,
    Records,
    Registration,
    Step,
    StepResult,
)
from engine.model.summary import SummaryName
from engine.model.usage import Clock
from engine.overload.scheduler import Scheduler
from engine.parts import Parts
from engine.persistence import Persistence, restore
from engine.preparing import Preparing
from engine.queries.attempts import Attempt
from engine.queries.summaries import NamedSummary
from engine.revisions import Revisions
from engine.source_needs import SourceNeeds
from engine.sources.source import Source
from engine.standing.query import set_key
from engine.step_bodies import StepBodies
from engine.step_run import StepRun
from engine.swapping import Swapping
from engine.views.view import View
from tureen.errors import StepOutOfOrder


class Engine(Embedding, Inspection, Persistence):
    """One engine, one owner: not thread-safe but for the views it gives out."""

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        functions: FunctionCatalogue = BUILT_IN,
        costs: Costs | None = None,
        timer: Timer | None = None,
        clock: Clock | None = None,
        state: StateSettings | None = None,
    ) -> None:
        """functions: what texts may call. costs: measured times, for the choice of maintenance; without them
        every open choice is lazy. timer: measures what visits of the eddy's modules take; without one
        they tell what work they are. clock: computing time of the thread, divided among entities; without one
        they took none. state: what
        state is made with, of other engines too perhaps.
        """
        parts = self._parts = Parts(
            limits or Limits(), functions, costs, timer, clock, state or StateSettings()
        )
        self._sources = parts.sources
        self._queries = parts.queries
        self._following = parts.following
        self._lifecycle = Lifecycle(parts)
        self._bodies = StepBodies(parts, self._lifecycle)
        self.preparing = Preparing(parts, timer)
        """What queries need before the steps that bring or alter them."""
        self.needs = SourceNeeds(parts)
        """What standing queries need of their sources."""
        self.revisions = Revisions(parts, timer)
        """Choices that queries leave open, made again."""
        self._restored = False
        """Whether no step was applied since: sources may hold rows for queries that did not come back."""
        self._queue: deque[Step] = deque()
        self._enqueued = BEGINNING

    @classmethod
    def restore(
        cls,
        store: StateSource,
        limits: Limits | None = None,
        *,
        functions: FunctionCatalogue = BUILT_IN,
        costs: Costs | None = None,
        timer: Timer | None = None,
        clock: Clock | None = None,
        state: StateSettings | None = None,
    ) -> Engine:
        """An engine as of the store's position; empty where the store is. Matches are computed again.

        Raises the refusal of a stored statement that this version does not accept any more.
        """
        engine = cls(limits, functions=functions, costs=costs, timer=timer, clock=clock, state=state)
        position = store.position()
        if position is not None:
            restore(engine._parts, store, position)
            engine._enqueued = position
            engine._restored = True
        return engine

    @property
    def limits(self) -> Limits:
        """The limits of texts, queries and answers."""
        return self._parts.settings.limits

    @property
    def position(self) -> Position:
        """The last step applied."""
        return self._parts.progress.position

    @property
    def tells(self) -> bool:
        """Whether steps tell what changed in answers; replays do not, since it was told."""
        return self._parts.progress.tells

    @tells.setter
    def tells(self, tells: bool) -> None:
        self._parts.progress.tells = tells

    @property
    def scheduler(self) -> Scheduler:
        """Decides for whoever makes steps which source's batch is the next; no answer depends on it."""
        return self._parts.scheduler

    @property
    def swapping(self) -> Swapping:
        """Queries that only the store has."""
        return self._lifecycle.swapping

    @property
    def _clock_ms(self) -> int:
        return self._parts.progress.clock_ms

    # --- statements -------------------------------------------------------------------------------

    @property
    def catalogue(self) -> Mapping[str, Stream | Derived]:
        """Streams and views by name."""
        return self._parts.catalogue.definitions

    @property
    def work_ns(self) -> float:
        """How long the units of all grants took, by the engine's timer; 0 without one."""
        return self._bodies.work_ns

    def prepare(self, sql: str) -> Statement:
        """What a text means against the streams there are. Raises QueryError or LimitExceeded."""
        return self._parts.catalogue.templates.statement(sql)

    @property
    def summaries(self) -> Mapping[SummaryName, NamedSummary]:
        """The summaries that stand, by name; a new mapping."""
        return dict(self._parts.catalogue.summaries.standing)

    def learn(self, texts: Iterable[tuple[Read, Mapping[str, Stream | Derived], Summaries]]) -> None:
        """Take over what the texts of the next steps mean, so that these need not bind them; what was taken
        over before is forgotten.

        Each comes with the catalogue, and its summaries, that it was bound against. Where what the query
        reads or uses is defined in another way here, it is passed over. O(texts).
        """
        self._parts.catalogue.learn(texts)

    def attempt(self) -> Attempt[Any] | None:
        """An eager answer that may take a step too long, to be made beside (:mod:`engine.queries.attempts`):
        it is to be run once, in any thread. None: there is none for now. O(answers that are put off).
        """
        return self._parts.sets.put_offs.next()

    def take_attempts(self) -> bool:
        """Views to come look at the attempts that are over. Returns whether there are any."""
        return self._parts.take_attempts()

    def continues(self, registration: Registration) -> bool:
        """:meth:`engine.lifecycle.Lifecycle.continues`."""
        return self._lifecycle.continues(registration)

    # --- steps ------------------------------------------------------------------------------------

    def enqueue(self, step: Step) -> None:
        """Put a step behind the others. Raises StepOutOfOrder unless it follows the last one."""
        position, last = step.position, self._enqueued
        if position.sequence != last.sequence + 1 or position.epoch < last.epoch:
            raise StepOutOfOrder(f"step {position} does not follow {last}")
        self._queue.append(step)
        self._enqueued = position

    def run(self) -> list[StepResult]:
        """Apply the queued steps."""
        results: list[StepResult] = []
        brought_rows = False
        while self._queue:
            step = self._queue.popleft()
            with self._parts.settings.watch.on(self._parts.settings.usage):
                results.append(self._apply(step))
            brought_rows |= isinstance(step.body, Records)
        if brought_rows:
            self.catch_up_some()
        return results

    def catch_up_some(self) -> bool:
        """Make some of the matches that queries which came lack over old rows, for a millisecond or so.

        No answer changes: what is lacking is worked out from the rows. Returns whether there were any.
        """
        some = None
        if self._parts.progress.may_owe:
            sources = self._sources.values()
            some = next((one.stream.name for one in sources if one.matches.catch_up_some()), None)
            self._parts.progress.may_owe = some is not None
        if some is not None:
            self._parts.outdate(self._parts.sets.touched(some))
        return some is not None

    def idle(self) -> bool:
        """While there is nothing else to do: work that can wait, for a millisecond or so. No answer changes.

        :meth:`catch_up_some`; then bits of sealed segments become row lists where those are smaller, and
        memory is got for rows to come. Returns whether there was anything to do.
        """
        return self.catch_up_some() or any(source.rows.packing.idle() for source in self._sources.values())

    def make_room(self) -> bool:
        """While memory is short: have sealed rows of the largest source on disk, some at a time. No answer
        changes. Returns whether any left memory.
        """
        space = self._parts.settings.state.capacities.spill
        if space is None or not space.wanted():
            return False
        largest = sorted(self._sources.values(), key=lambda one: -one.rows.nbytes()[0])
        some = next((one for one in largest if one.rows.make_room()), None)
        if some is None:
            return False
        some.outdate()
        self._parts.outdate(self._parts.sets.touched(some.stream.name))
        return True

    def _apply(self, step: Step) -> StepResult:
        run = StepRun(self._parts, self._bodies, step, any_source=self._restored)
        self._restored = False
        result = run.apply()
        if run.touched is None:
            self.needs.outdate()
        return result

    def _source(self, name: str) -> Source:
        return self._parts.source(name)

    def _queued(self) -> int:
        return len(self._queue)

    # --- followers --------------------------------------------------------------------------------

    def follow(self, query_id: str) -> None:
        """From the next step on changes of its answer are told, as often as asked; no answer changes.

        Raises UnknownQuery.
        """
        self.swapping.back([query_id])
        self._following.follow(self._parts.query(query_id))

    def unfollow(self, query_id: str) -> None:
        """Once for each :meth:`follow`. Queries that are gone are passed over."""
        query = self._queries.get(query_id)
        if query is not None:
            self._following.unfollow(query)

    # --- readers ----------------------------------------------------------------------------------

    def view(self) -> View:
        """All answers at the last step applied; the same object until the next."""
        return self._parts.view()

    def _check(self) -> None:
        """Every invariant of every part."""
        for source in self._sources.values():
            source._check()
        for over in self._parts.sets:
            assert over.standing or set_key(tuple(over.sources)) in self._parts.sets.swapped
            over._check()
        self._parts.sets._check(settled=not self._restored)
        self._following.graphs._check()
        view = self._parts.view()
        assert view._sources.keys() == self._sources.keys()
        assert all(view._sources[name] is source.view() for name, source in self._sources.items())
        assert view._sets.keys() == set(self._parts.sets.keys())
        assert all(view._sets[key] is over for key, over in self._parts.sets.views().items())
        assert self._parts.progress.may_owe or not any(
            source.matches.catch_up_some() for source in self._sources.values()
        )
        there = {query_id for over in self._parts.sets for query_id in over.standing}
        assert there == self._queries.keys()

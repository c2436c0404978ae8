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
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
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
from engine.model.constraint import ManyOne, References
from engine.model.limits import Limits
from engine.model.maintenance import Costs
from engine.model.persistence import StateSource
from engine.model.source import Derived, SourceName, Stream
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
from engine.preparing import Preparation, Preparing
from engine.queries.allowance import Allowance
from engine.queries.attempts import Attempt
from engine.queries.candidates import ConstraintCandidates
from engine.queries.demand import Demand, demand_of
from engine.queries.planner import is_left_open
from engine.queries.shed_readers import NOTHING_TO_SHED, Sheddable
from engine.queries.summaries import NamedSummary
from engine.sources.backfill import Wanted, wanted
from engine.sources.retention import needed
from engine.sources.source import Source
from engine.standing.query import SetKey, StandingQuery
from engine.step_bodies import StepBodies
from engine.step_run import StepRun
from engine.views.view import View
from tureen.errors import StepOutOfOrder

REVISED_MAX = 256


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
        self._sets = parts.sets
        self._catalogue = parts.catalogue
        self._following = parts.following
        self._lifecycle = Lifecycle(parts)
        self._bodies = StepBodies(parts, self._lifecycle)
        self._preparing = Preparing(parts, timer)
        self._timer = timer
        self._restored = False
        """Whether no step was applied since: sources may hold rows for queries that did not come back."""
        self._queue: deque[Step] = deque()
        self._enqueued = BEGINNING
        self._preferring: tuple[SourceName, ...] | None = None
        self._to_revise: list[str] = []
        self._candidates = ConstraintCandidates(parts.sources)
        self._demands: dict[SourceName, Demand] = {}
        self._sheddable: dict[SourceName, Sheddable] = {}

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
        return self._parts.limits

    @property
    def position(self) -> Position:
        """The last step applied."""
        return self._parts.position

    @property
    def tells(self) -> bool:
        """Whether steps tell what changed in answers; replays do not, since it was told."""
        return self._parts.tells

    @tells.setter
    def tells(self, tells: bool) -> None:
        self._parts.tells = tells

    @property
    def scheduler(self) -> Scheduler:
        """Decides for whoever makes steps which source's batch is the next; no answer depends on it."""
        return self._parts.scheduler

    @property
    def _clock_ms(self) -> int:
        return self._parts.clock_ms

    # --- statements -------------------------------------------------------------------------------

    @property
    def catalogue(self) -> Mapping[str, Stream | Derived]:
        """Streams and views by name."""
        return self._catalogue.definitions

    def raised_by(self, source: SourceName, below: Mapping[int, int]) -> frozenset[int]:
        """The partitions of a stream whose watermark a heartbeat would raise; as the step has ``below``."""
        return self._parts.source(source).clock.raised_by(below)

    def joined_with(self, source: SourceName) -> Iterable[SetKey]:
        """The sets of several sources, this among them, that queries stand over. O(sets that have it)."""
        return [key for key in self._sets.reading(source) if len(key) > 1]

    def needs_clock(self, source: SourceName) -> bool:
        """Whether an answer over this source may change as NOW moves on, and no record comes: rows wait for
        it, or windows move with it. O(sets of sources that have it).
        """
        return bool(len(self._parts.source(source).pending)) or self._sets.follow_now(source)

    def demand(self, source: str) -> Demand:
        """What the queries over a source ask of the order of work. O(these queries) after a registration,
        else O(1). Raises StepOutOfOrder.
        """
        name = self._parts.source(source).stream.name
        demand = self._demands.get(name)
        if demand is None:
            sets = [self._sets.seen(key) for key in self._sets.reading(name)]
            demand = self._demands[name] = demand_of(
                query for over in sets for query in over.standing.values()
            )
        return demand

    def sheddable(self, source: str) -> Sheddable:
        """What may be shed of a source. O(queries that allow it) after a registration, else O(1).

        Raises StepOutOfOrder.
        """
        of = self._parts.source(source)
        if of.sheds.is_full:
            return NOTHING_TO_SHED
        name = of.stream.name
        found = self._sheddable.get(name)
        if found is None:
            queries = sum(len(self._sets.seen(key).standing) for key in self._sets.reading(name))
            found = self._parts.shed.sheddable(name, queries)
            if self._is_counted(of.stream):
                found = replace(found, is_seen=True)
            self._sheddable[name] = found
        return found

    def _is_counted(self, stream: Stream) -> bool:
        """Whether a promise speaks of rows of a stream: only all of them tell if it holds."""
        return bool(stream.constraints) or any(
            isinstance(one, ManyOne | References) and one.target == stream.name
            for other in self._sources.values()
            for one in other.stream.constraints
        )

    def preference_work(self) -> int:
        """Units of work that grants would be of use for: at least so many can be spent at once, and with 0
        nothing is left to do. O(groups of queries with a preference).
        """
        return self._parts.grants.work() if self.preferring() else 0

    def preferring(self) -> Collection[SourceName]:
        """The streams that running queries with a preference read: steps that carry grants are of one of
        them. O(sets of sources) after a registration, else O(1).
        """
        if self._preferring is None:
            sets = self._sets.preferring()
            self._preferring = tuple(dict.fromkeys(name for over in sets for name in over.sources))
        return self._preferring

    @property
    def work_ns(self) -> float:
        """How long the units of all grants took, by the engine's timer; 0 without one."""
        return self._bodies.work_ns

    def prepare(self, sql: str) -> Statement:
        """What a text means against the streams there are. Raises QueryError or LimitExceeded."""
        return self._catalogue.templates.statement(sql)

    @property
    def summaries(self) -> Mapping[SummaryName, NamedSummary]:
        """The summaries that stand, by name; a new mapping."""
        return dict(self._catalogue.summaries.standing)

    def learn(self, texts: Iterable[tuple[Read, Mapping[str, Stream | Derived], Summaries]]) -> None:
        """Take over what the texts of the next steps mean, so that these need not bind them; what was taken
        over before is forgotten.

        Each comes with the catalogue, and its summaries, that it was bound against. Where what the query
        reads or uses is defined in another way here, it is passed over. O(texts).
        """
        self._catalogue.learn(texts)

    def preparations(self, registrations: Iterable[Registration]) -> dict[str, Preparation]:
        """The preparations of queries that are to come together, by id: what has to be made in slices before
        their step, since it would take too long in it (:mod:`engine.preparing`); also of queries that stand,
        and are to be altered or paused. Without a timer there are none.
        """
        found = self._preparing.of(registrations)
        self._parts.may_owe |= bool(found)
        return found

    def removals(self, query_ids: Iterable[str]) -> dict[str, Preparation]:
        """As :meth:`preparations`, of queries that are to be removed: what would take the step too long."""
        return self._preparing.of_removals(query_ids)

    def dear_followed(self) -> tuple[str, ...]:
        """The followed queries that are to be set apart after a restore: by the rule of :meth:`preparations`
        a step takes too long to make their state. See :class:`engine.model.step.SetApart`.
        """
        return () if self._timer is None else self._preparing.of_followed()

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
            with self._parts.watch.on(self._parts.usage):
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
        if self._parts.may_owe:
            sources = self._sources.values()
            some = next((one.stream.name for one in sources if one.matches.catch_up_some()), None)
            self._parts.may_owe = some is not None
        if some is not None:
            self._parts.outdate(self._sets.touched(some))
        return some is not None

    def idle(self) -> bool:
        """While there is nothing else to do: work that can wait, for a millisecond or so. No answer changes.

        :meth:`catch_up_some`; then bits of sealed segments become row lists where those are smaller, and
        memory is got for rows to come. Returns whether there was anything to do.
        """
        return self.catch_up_some() or any(source.rows.packing.idle() for source in self._sources.values())

    def _apply(self, step: Step) -> StepResult:
        run = StepRun(self._parts, self._bodies, step, any_source=self._restored)
        self._restored = False
        result = run.apply()
        if run.touched is None:
            self._demands.clear()
            self._sheddable.clear()
            self._preferring = None
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
        self._following.follow(self._parts.query(query_id))

    def unfollow(self, query_id: str) -> None:
        """Once for each :meth:`follow`. Queries that are gone are passed over."""
        query = self._queries.get(query_id)
        if query is not None:
            self._following.unfollow(query)

    # --- history ----------------------------------------------------------------------------------

    def wanted(self, source: str) -> Wanted | None:
        """What standing queries would like of a stream's history; None where it takes none. O(sets of
        sources that read it). Raises StepOutOfOrder.
        """
        of = self._parts.source(source)
        return wanted(of.boundary_ms, of.rows.rows(), self._sets.holds(of.stream.name))

    def needed(self, source: str) -> tuple[int, int] | None:
        """What retention and standing queries need of a stream's rows: (those from this instant on, and so
        many of the last); None: all there are. O(sets of sources that read it). Raises StepOutOfOrder.
        """
        of = self._parts.source(source)
        return needed(self._sets.holds(of.stream.name), of.clock.now_ms, of.stream.retain_ms)

    # --- readers ----------------------------------------------------------------------------------

    def view(self) -> View:
        """All answers at the last step applied; the same object until the next."""
        return self._parts.view()

    def revise(self, answers: Mapping[str, int], seconds: float) -> int:
        """Choose maintenance and strategy again where queries leave them open; returns how many changed. No
        answer does. Columns by which they join and group are observed from then on.

        answers: how often each query was asked in these seconds; those that were not are left out.
        At most :data:`REVISED_MAX` queries a call, in turn, so that a call is short.
        """
        changed = 0
        allowance = Allowance(self._timer)
        for _ in range(min(REVISED_MAX, len(self._queries))):
            if not self._to_revise:
                self._to_revise = list(self._queries)
            query = self._queries.get(self._to_revise.pop())
            if query is None or query.query_id in self._parts.defects:
                continue
            with self._parts.defects.of(query.query_id):
                answers_per_s = answers.get(query.query_id, 0) / seconds
                changed += self._revised(query, answers_per_s, allowance)
        if not self._to_revise:
            self._candidates.all_seen()
        return changed

    def _revised(self, query: StandingQuery, answers_per_s: float, allowance: Allowance) -> int:
        """Choose again for one query; how many choices changed."""
        self._candidates.look_at(query)
        changed = int(self._following.revise(query))
        if not is_left_open(query):
            return changed
        followed = query.query_id in self._following
        after = self._sets.of(query).revise(query, answers_per_s, allowance, followed=followed)
        if after is query:
            return changed
        self._queries[query.query_id] = after
        self._following.changed(after)
        self._parts.outdate(after.sources)
        self._parts.may_owe = True
        return changed + 1

    def _check(self) -> None:
        """Every invariant of every part."""
        for source in self._sources.values():
            source._check()
        for over in self._sets:
            assert over.standing
            over._check()
        self._sets._check(settled=not self._restored)
        view = self._parts.view()
        assert view._sources.keys() == self._sources.keys()
        assert all(view._sources[name] is source.view() for name, source in self._sources.items())
        assert view._sets.keys() == set(self._sets.keys())
        assert all(view._sets[key] is over for key, over in self._sets.views().items())
        assert self._parts.may_owe or not any(
            source.matches.catch_up_some() for source in self._sources.values()
        )
        there = {query_id for over in self._sets for query_id in over.standing}
        assert there == self._queries.keys()

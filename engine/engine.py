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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from engine.changes.output import continues
from engine.dataflow.buffers import settings as buffers
from engine.eddy.eddy import Timer
from engine.embedding import Embedding
from engine.language.functions import BUILT_IN, FunctionCatalogue
from engine.language.parameters import text_of
from engine.language.query import Query, Statement
from engine.language.templates import Read
from engine.model.allotment import NOTHING_LESS, Allotment
from engine.model.approximation import Approximation
from engine.model.attributes import Attribute, AttributeValue, version_of
from engine.model.constraint import ManyOne, References
from engine.model.last_answer import LastAnswer
from engine.model.limits import Limits
from engine.model.maintenance import Costs, QueryOptions
from engine.model.persistence import QueryState, StateSink, StateSource
from engine.model.source import Derived, SourceName, Stream
from engine.model.step import (
    BEGINNING,
    Allocate,
    Alter,
    Backfill,
    Body,
    Claim,
    CreateDerived,
    CreateSource,
    DropSource,
    Heartbeat,
    Position,
    Records,
    Register,
    Registration,
    Step,
    StepResult,
    Unregister,
    Written,
)
from engine.model.usage import Clock, Stopwatch, Usage
from engine.overload.proposals.proposal import Proposal
from engine.overload.scheduler import Scheduler
from engine.overload.tolerated import levels_of
from engine.queries.allocating import EngineProblem, engine_problem
from engine.queries.allotting import allotted, given_less, require_tolerated, tolerates
from engine.queries.allowance import Allowance
from engine.queries.approximations import Approximations, allotments, declared_samples
from engine.queries.candidates import Candidates
from engine.queries.catalogue import Catalogue
from engine.queries.coming import Coming
from engine.queries.demand import Demand, demand_of
from engine.queries.entities import Report, report
from engine.queries.explain import Plan
from engine.queries.footprint import Footprint, Heavy, footprint, heaviest
from engine.queries.planner import Planner, is_left_open
from engine.queries.registrations import bound, sort_out, sort_out_altered
from engine.queries.shed_readers import NOTHING_TO_SHED, Sheddable, ShedReaders
from engine.queries.source_sets import SourceSets
from engine.queries.subscriptions import PendingOutput, Subscriptions
from engine.results.source_view import SourceView
from engine.results.view import SetView, View
from engine.sources.backfill import Wanted, wanted
from engine.sources.references import ReferenceChecks
from engine.sources.source import Source
from engine.standing.queries import StandingQueries
from engine.standing.query import SetKey, StandingQuery, set_key
from tureen.errors import (
    AttributeRefused,
    BackfillRefused,
    EditConflict,
    NotSupported,
    StepOutOfOrder,
    TureenError,
    UnknownEntity,
    UnknownQuery,
)

SCHEDULER = "scheduler"
REVISED_MAX = 256
RESTORED_MAX = 4_096
"""Queries that come back together: what is known of a text for that is let go of before the next come."""


class Engine(Embedding):
    """One engine, one owner: not thread-safe but for the views it gives out."""

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        functions: FunctionCatalogue = BUILT_IN,
        costs: Costs | None = None,
        timer: Timer | None = None,
        clock: Clock | None = None,
    ) -> None:
        """functions: what texts may call. costs: measured times, for the choice of maintenance; without them
        every open choice is lazy. timer: measures what visits of the eddy's modules take; without one
        they tell what work they are. clock: computing time of the thread, divided among entities; without one
        they took none.
        """
        self._watch = Stopwatch(clock)
        self._usage = Usage()
        """Of steps, besides what their parts use."""
        self.limits = limits or Limits()
        self.tells = True
        """Whether steps tell what changed in answers; replays do not, since it was told."""
        self._planner = Planner(costs)
        self.position = BEGINNING
        self._restored = False
        """Whether no step was applied since: sources may hold rows for queries that did not come back."""
        self._clock_ms = 0
        self._queue: deque[Step] = deque()
        self._enqueued = BEGINNING
        self._catalogue = Catalogue(self.limits, functions, timer, self._watch)
        self._sources = self._catalogue.sources
        self._references = ReferenceChecks(self._sources)
        self._candidates = Candidates(self._sources)
        self._sets = SourceSets(self._sources, self.limits, self._planner, timer, self._watch)
        self._timer = timer
        units = None if costs is None else costs.units
        self._following = Subscriptions(self._sources, self.limits, units, self._watch)
        self._queries = StandingQueries()
        self._shed = ShedReaders(self._sources)
        self._approximations = Approximations(
            (declared_samples, allotments, self._broken_promises, self._shed.tags)
        )
        """What of answers is not exact."""
        self._to_revise: list[str] = []
        self.scheduler = Scheduler()
        """Decides for whoever makes steps which source's batch is the next; no answer depends on it."""
        self._demands: dict[SourceName, Demand] = {}
        self._sheddable: dict[SourceName, Sheddable] = {}
        self._view: View | None = None
        self._shown: dict[str, SourceView] = {}
        self._shown_sets: dict[SetKey, SetView] = {}
        self._unshown: set[SourceName] | None = None
        """Sources that moved since these two were taken; None: any may have, and there may be others."""
        self._may_owe = True
        """Whether matches over old rows may be owed to queries."""
        self._unsaved: set[SourceName] | None = None
        """Sources that moved since the last save; None: any may have, and there may be others."""
        self._unsaved_queries: set[str] = set()
        self._dropped_queries: set[str] = set()
        """Of the store's queries, those that are gone: one that came after the last save was never there."""
        self._saved_position = BEGINNING
        self._saved_errors: dict[str, tuple[int, ...]] = {}
        self._saved_held: set[tuple[SetKey, SourceName]] = set()
        """Of which streams, for queries over which, the store has rows that joins hold."""

    # --- statements -------------------------------------------------------------------------------

    @property
    def catalogue(self) -> Mapping[str, Stream | Derived]:
        """Streams and views by name."""
        return self._catalogue.definitions

    def raised_by(self, source: SourceName, below: Mapping[int, int]) -> frozenset[int]:
        """The partitions of a stream whose watermark a heartbeat would raise; as the step has ``below``."""
        return self._source(source).clock.raised_by(below)

    def joined_with(self, source: SourceName) -> Iterable[SetKey]:
        """The sets of several sources, this among them, that queries stand over. O(sets that have it)."""
        return [key for key in self._sets.reading(source) if len(key) > 1]

    def needs_clock(self, source: SourceName) -> bool:
        """Whether an answer over this source may change as NOW moves on, and no record comes: rows wait for
        it, or windows move with it. O(sets of sources that have it).
        """
        return bool(len(self._source(source).pending)) or self._sets.follow_now(source)

    def demand(self, source: str) -> Demand:
        """What the queries over a source ask of the order of work. O(these queries) after a registration,
        else O(1). Raises StepOutOfOrder.
        """
        name = self._source(source).stream.name
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
        of = self._source(source)
        if of.sheds.is_full:
            return NOTHING_TO_SHED
        name = of.stream.name
        found = self._sheddable.get(name)
        if found is None:
            queries = sum(len(self._sets.seen(key).standing) for key in self._sets.reading(name))
            found = self._shed.sheddable(name, queries)
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

    def prepare(self, sql: str) -> Statement:
        """What a text means against the streams there are. Raises QueryError or LimitExceeded."""
        return self._catalogue.templates.statement(sql)

    def learn(self, texts: Iterable[tuple[Read, Mapping[str, Stream | Derived]]]) -> None:
        """Take over what the texts of the next steps mean, so that these need not bind them; what was taken
        over before is forgotten.

        Each comes with the catalogue that it was bound against. Where what the query reads is defined in
        another way here, it is passed over. O(texts).
        """
        self._catalogue.learn(texts)

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
            with self._watch.on(self._usage):
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
        if self._may_owe:
            some = next((one.stream.name for one in self._sources.values() if one.catch_up_some()), None)
            self._may_owe = some is not None
        if some is not None:
            self._outdate(self._sets.touched(some))
        return some is not None

    def idle(self) -> bool:
        """While there is nothing else to do: work that can wait, for a millisecond or so. No answer changes.

        :meth:`catch_up_some`; then bits of sealed segments become row lists where those are smaller, and
        memory is got for rows to come. Returns whether there was anything to do.
        """
        return self.catch_up_some() or any(source.idle() for source in self._sources.values())

    def _apply(self, step: Step) -> StepResult:
        self._clock_ms = max(self._clock_ms, step.clock_ms)
        self._following.step = step.position.sequence
        if isinstance(step.body, Backfill):
            return self._backfill(step.body, step.position)
        told = PendingOutput()
        touched = None if self._restored else self._touched(step.body)
        self._restored = False
        self._outdate(touched)
        if touched is None:
            self._demands.clear()
            self._sheddable.clear()
            self._unsaved, self._may_owe = None, True
        elif self._unsaved is not None:
            self._unsaved.update(touched)
        marks = self._following.marks(self._sets, touched) if self.tells else {}
        match step.body:
            case Records(source=name) as body:
                source = self._source(name)
                with self._watch.on(source.usage):
                    result = source.records(body, step.position, self._clock_ms)
                self._sets.advance(name)
                result = self._judged(name, result)
                self._tag_again(name)
            case Heartbeat(source=name) as body:
                source = self._source(name)
                with self._watch.on(source.usage):
                    result = source.heartbeat(body, step.position, self._clock_ms)
                self._sets.advance(name)
                result = self._judged(name, result)
                self._tag_again(name)
            case Register() as body:
                result = self._register(body, step.position, told)
            case Alter(registrations):
                result = self._alter(registrations, step.position, told)
                if self.tells:  # sets that came with it; where the others stood before the step
                    marks = {**self._following.marks(self._sets, None), **marks}
            case Allocate(allotments):
                result = self._allocate(allotments, step.position, told)
                if self.tells:
                    marks = {**self._following.marks(self._sets, None), **marks}
            case Unregister(query_ids):
                self._tell_end(query_ids, told)
                for query_id in query_ids:
                    self._unregister(query_id)
                result = StepResult(step.position, gone=query_ids)
            case CreateSource() | CreateDerived() | DropSource() as body:
                result = StepResult(step.position, failed=self._define(body))
            case Claim() | Written():
                result = StepResult(step.position)
        self.position = step.position
        if not self._sources:  # the clock is saved with them
            self._clock_ms = 0
        rows = self._following.rows(self._sets, marks)
        before = self._following.before_retention(touched)
        self._sets.retain(touched)
        self._following.tell(marks, rows, self._sets, told)
        self._following.hold(before)
        if told.began:
            self._following.tell_whole(told.began, self.view(), "snapshot", told)
        if told.resumed:
            self._following.tell_resumed(told.resumed, self.view(), told)
        for query_id in told.broken:
            self._following.gone(self._queries[query_id])
        for name in {one.source for one in result.violations}:
            self._look_at_readers(name)
        changes = self._approximations.put_on(told.changes)
        return replace(result, changes=changes, broken=told.broken)

    def _judged(self, name: SourceName, result: StepResult) -> StepResult:
        """With the rows of which it is known now that they lack the row that they refer to."""
        lacking = self._references.advance(name, result.position)
        return replace(result, violations=(*result.violations, *lacking)) if lacking else result

    def _tag(self, standing: StandingQuery) -> None:
        """A query stands, or is another now: say what of its answer is not exact."""
        self._shed.came(standing)
        self._approximations.look(standing)

    def _tag_again(self, name: SourceName) -> None:
        """The same of queries that lack more or less of a source by what was shed."""
        for query_id in self._shed.moved(name):
            self._approximations.look(self._queries[query_id])

    def _broken_promises(self, standing: StandingQuery) -> Iterator[Approximation]:
        """A tag for each source of which rows broke a promise, since then."""
        for name in standing.sources:
            source = self._sources.get(name)
            if source is not None and source.promises is not None:
                yield from source.promises.tags(standing.sources)

    def _look_at_readers(self, name: SourceName) -> None:
        """Rows of a source broke a promise: its queries get tags, or tags with another amount. O(these
        queries), unless the amount is about what it was.
        """
        promises = self._sources[name].promises
        if promises is None or not promises.is_to_tell():
            return
        for over in self._sets.over([name]):
            for standing in over.standing.values():
                self._approximations.look(standing)

    def _touched(self, body: Body) -> Collection[SourceName] | None:
        """The sources that a step may move, or let go of rows; None: any, and there may be others then."""
        match body:
            case Records(source=name) | Heartbeat(source=name):
                return {*self._sets.touched(name), *self._references.touched(name)}
            case Claim() | Written() | CreateDerived():
                return ()
            case _:
                return None

    def _outdate(self, touched: Iterable[SourceName] | None = None) -> None:
        """What was seen is no more as it was; touched: as :meth:`_touched` has it."""
        self._view = None
        if touched is None:
            self._unshown = None
        elif self._unshown is not None:
            self._unshown.update(touched)

    def _backfill(self, body: Backfill, position: Position) -> StepResult:
        """History comes back to a source. All that is kept of its rows is made anew, and followed queries are
        told of the difference of two answers: O(retained rows) a step, which is why history comes in large
        ones.
        """
        name = body.source
        source = self._source(name)
        told = PendingOutput()
        before = self._following.answers(name, self._sets, self.view()) if self.tells else {}
        self._outdate()
        self._unsaved, self._may_owe = None, True
        self.position = position
        try:
            result = source.backfill(body, position)
        except BackfillRefused as refusal:
            return StepResult(position, failed={name: refusal})
        self._sets.retain(None)
        for query in self._sets.renumbered(name):
            self._queries[query.query_id] = query
        self._following.tell_history(name, body.complete_from_ms, before, self.view(), told)
        for query_id in told.broken:
            self._following.gone(self._queries[query_id])
        changes = self._approximations.put_on(told.changes)
        return replace(result, changes=changes, broken=told.broken)

    def _source(self, name: str) -> Source:
        source = self._sources.get(name)
        if source is None:
            raise StepOutOfOrder(f"a step names the stream {name!r}, which was not created")
        return source

    def _define(self, body: CreateSource | CreateDerived | DropSource) -> Mapping[str, Exception]:
        """Change the catalogue; what refused it, by name."""
        standing = self._queries.values()
        try:
            match body:
                case CreateSource(stream, sql):
                    name = stream.name
                    self._catalogue.create(stream, sql, self._clock_ms)
                    self._references.changed()
                case CreateDerived(derived):
                    name = derived.name
                    self._catalogue.derive(derived, standing)
                case DropSource(name):
                    self._catalogue.drop(name, standing)
                    self._references.changed()
                    self.scheduler.remove(f"source/{name}")
        except TureenError as refusal:
            return {name: refusal}
        return {}

    def _tell_end(self, query_ids: Iterable[str], told: PendingOutput) -> None:
        """Answers of followed queries go."""
        ending = [self._queries[name] for name in query_ids if name in self._following]
        if ending and self.tells:
            self._following.tell_whole(ending, self.view(), "end", told)
            self._outdate()

    def _register(self, body: Register, position: Position, told: PendingOutput) -> StepResult:
        asked = sort_out(body.registrations, position, self._queries, self._catalogue, self.limits)
        pausing = [one.query_id for one in asked.changed if self._is_to_pause(one)]
        if pausing and body.takes_back:
            self._tell_end(pausing, told)
        elif pausing:
            view = self.view()
            self._outdate()  # the step is not over
            for query_id in pausing:
                self._following.pauses(self._queries[query_id], view)
        for registration in asked.changed:
            try:
                self._change(registration, told)
            except TureenError as refusal:
                asked.failed[registration.query_id] = refusal
        self._give_all([one.query_id for one in asked.changed], position, told)
        for standing, one in self._come(asked.coming):
            if one.meaning.emits:
                self._following.came(standing, one.query)
                if self.tells and not standing.paused:
                    told.began.append(standing)
        return StepResult(position, failed=asked.failed)

    def _come(self, coming: Sequence[Coming]) -> list[tuple[StandingQuery, Coming]]:
        """Put queries in their sets."""
        by_set: dict[SetKey, list[Coming]] = {}
        for one in coming:
            by_set.setdefault(set_key(one.meaning.sources), []).append(one)
        came: list[tuple[StandingQuery, Coming]] = []
        for key, queries in by_set.items():
            registered = self._sets.joined(key).register(queries)
            for standing, one in zip(registered, queries, strict=True):
                self._stands(standing)
                came.append((standing, one))
        self._outdate()
        return came

    def continues(self, registration: Registration) -> bool:
        """Whether changes of a query continue if its text becomes this one; see
        :func:`engine.changes.output.continues`. False for paused queries. True also for a text that is
        refused: altering the query to it changes nothing.
        """
        standing = self._queries.get(registration.query_id)
        if standing is None:
            return False
        try:
            paused = QueryOptions.of(registration.options).paused
            query = bound(registration, self._catalogue).query
        except TureenError:
            return True
        if standing.paused or paused:
            return False
        before = standing.query
        streams = {name: self._sources[name].stream for name in (*before.sources, *query.sources)}
        return continues(before, query, streams)

    def _alter(
        self, registrations: tuple[Registration, ...], position: Position, told: PendingOutput
    ) -> StepResult:
        """Give queries other texts; one whose answer cannot be told stays as it was."""
        asked = sort_out_altered(registrations, position, self._queries, self._catalogue)
        names = [one.query_id for one in asked.coming]
        continued = self._exchange(asked.coming, self._come_instead, asked.failed, told)
        stayed = {*continued, *asked.failed}
        gone = tuple(name for name in names if name not in stayed)
        return StepResult(position, failed=asked.failed, continued=continued, gone=gone)

    def _allocate(
        self, allotments: Iterable[tuple[str, Allotment]], position: Position, told: PendingOutput
    ) -> StepResult:
        """Give queries other shares of what they ask for; one whose answer cannot be told stays as it was."""
        coming: list[Coming] = []
        failed: dict[str, Exception] = {}
        for query_id, allotment in allotments:
            try:
                standing = self._queries.get(query_id)
                if standing is None:
                    raise UnknownQuery()
                coming.append(allotted(standing, allotment, position, self._catalogue))
            except TureenError as refusal:
                failed[query_id] = refusal
        return StepResult(position, failed=failed, continued=self._replace(coming, failed, told))

    def _give_all(self, query_ids: Iterable[str], position: Position, told: PendingOutput) -> None:
        """Those whose options do not allow any more what they are given, or let other rows be shed, are given
        all that they ask for.
        """
        coming = [
            allotted(self._queries[name], NOTHING_LESS, position, self._catalogue)
            for name in query_ids
            if not tolerates(self._queries[name], self._catalogue)
            or self._sheds_otherwise(self._queries[name])
        ]
        if coming:
            self._replace(coming, {}, told)

    def _replace(
        self, coming: Sequence[Coming], failed: dict[str, Exception], told: PendingOutput
    ) -> tuple[str, ...]:
        """Have queries answered by others over the same sources; as :meth:`_exchange`."""
        talking: list[Coming] = []
        for one in coming:
            standing = self._queries[one.query_id]
            if self._following.is_silent(standing):
                self._following.replace_silently(
                    standing,
                    one.query,
                    lambda: self._stand_in([one])[0][0],  # noqa: B023
                )
            else:
                talking.append(one)
        return self._exchange(talking, self._stand_in, failed, told)

    def _exchange(
        self,
        coming: Sequence[Coming],
        put: Callable[[Sequence[Coming]], list[tuple[StandingQuery, Coming]]],
        failed: dict[str, Exception],
        told: PendingOutput,
    ) -> tuple[str, ...]:
        """Have queries that stand answered by others, which ``put`` puts in their places. failed: takes those
        that stay as they were. Returns those that are followed on, with the difference of both answers.
        """
        old = {name: self._queries[name] for one in coming if (name := one.query_id)}
        view = self.view() if self.tells and any(name in self._following for name in old) else None
        followed = {
            name: before
            for name, query in old.items()
            if view is not None and (before := self._following.before(query, view)) is not None
        }
        came = put(coming)
        if view is not None:
            view = self.view()
            self._outdate()  # the step is not over
        continued: list[str] = []
        for standing, one in came:
            name, query = standing.query_id, one.query
            if name not in followed:
                if self._following.came(standing, query) and self.tells and not standing.paused:
                    told.began.append(standing)
                continue
            assert view is not None
            try:
                if self._following.altered(followed[name], standing, query, view, told):
                    continued.append(name)
            except TureenError as refusal:
                failed[name] = refusal
                put([Coming.again(old[name])])
                self._following.back(followed[name], self._queries[name])
        return tuple(continued)

    def _come_instead(self, coming: Sequence[Coming]) -> list[tuple[StandingQuery, Coming]]:
        """Queries in the places of those with their ids, over other sources perhaps."""
        for one in coming:
            self._unregister(one.query_id)
        return self._come(coming)

    def _stand_in(self, coming: Sequence[Coming]) -> list[tuple[StandingQuery, Coming]]:
        """The same queries over the same sources, with other shares of them."""
        by_set: dict[SetKey, list[Coming]] = {}
        for one in coming:
            standing = self._queries[one.query_id]
            self._following.gone(standing)
            by_set.setdefault(standing.set_key, []).append(one)
        came: list[tuple[StandingQuery, Coming]] = []
        for key, queries in by_set.items():
            exchanged = self._sets.seen(key).exchange(queries)
            for standing, one in zip(exchanged, queries, strict=True):
                self._stands(standing)
                came.append((standing, one))
        self._outdate()
        return came

    def _stands(self, standing: StandingQuery) -> None:
        """A query stands so from now on."""
        self._queries[standing.query_id] = standing
        self._unsaved_queries.add(standing.query_id)
        self._tag(standing)

    def _is_to_pause(self, registration: Registration) -> bool:
        """Whether a followed query runs and is to be paused by its new options."""
        query_id = registration.query_id
        if query_id not in self._following or self._queries[query_id].paused:
            return False
        return QueryOptions.of(registration.options).paused

    def _sheds_otherwise(self, standing: StandingQuery) -> bool:
        """Whether the options of a query let other rows be shed than it does not see."""
        meant = bound(standing.registration, self._catalogue).query
        streams = {name: self._sources[name].stream for name in meant.sources}
        return levels_of(standing.query, streams) != levels_of(meant, streams)

    def _change(self, registration: Registration, told: PendingOutput) -> None:
        before = self._queries[registration.query_id]
        after = self._sets.of(before).change(registration)
        self._queries[registration.query_id] = after
        self._tag(after)
        self._following.changed(after)
        if before.paused and not after.paused:
            if self.tells:
                told.resumed.append(after)
            else:
                self._following.resumes_silently(after.query_id)
        self._unsaved_queries.add(registration.query_id)

    def _unregister(self, query_id: str) -> None:
        query = self._queries.pop(query_id, None)
        if query is not None:
            self._following.gone(query)
            self._shed.gone(query_id)
            self._approximations.gone(query_id)
            self._sets.unregister(query)
            self._unsaved_queries.discard(query_id)
            if query.born <= self._saved_position:
                self._dropped_queries.add(query_id)
        elif self._saved_position != BEGINNING:
            self._dropped_queries.add(query_id)  # it was left out when this was restored

    # --- followers --------------------------------------------------------------------------------

    def follow(self, query_id: str) -> None:
        """From the next step on changes of its answer are told, as often as asked; no answer changes.

        Raises UnknownQuery.
        """
        query = self._queries.get(query_id)
        if query is None:
            raise UnknownQuery()
        self._following.follow(query)

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
        of = self._source(source)
        return wanted(of.seam_ms, of.rows.rows(), self._sets.holds(of.stream.name))

    def needed(self, source: str) -> tuple[int, int] | None:
        """What retention and standing queries need of a stream's rows: (those from this instant on, and so
        many of the last); None: all there are. O(sets of sources that read it). Raises StepOutOfOrder.
        """
        of = self._source(source)
        return of.needs(self._sets.holds(of.stream.name))

    # --- readers ----------------------------------------------------------------------------------

    def view(self) -> View:
        """All answers at the last step applied; the same object until the next. O(sources that moved, and
        their segments), and a copy of what is known of all others.
        """
        if self._view is None:
            if self._unshown is None:
                self._shown = {name: source.view() for name, source in self._sources.items()}
                self._shown_sets = self._sets.views()
            else:
                self._shown |= {name: self._sources[name].view() for name in self._unshown}
                self._shown_sets |= self._sets.views_over(self._unshown)
            self._unshown = set()
            sources, sets = self._shown.copy(), self._shown_sets.copy()
            queries, strategy_of = self._queries.shown(), self._following.strategy_of
            tags = self._approximations.shown()
            self._view = View(self.position, self.limits, sources, sets, queries, strategy_of, tags)
        return self._view

    def modules(self) -> dict[str, tuple[Attribute, ...]]:
        """Every module with its attributes as they stand."""
        modules: dict[str, tuple[Attribute, ...]] = {
            "engine": (
                Attribute("position", str(self.position), "the last step applied"),
                Attribute("queued_steps", len(self._queue), "steps that wait"),
                Attribute("queries", len(self._queries), "standing queries"),
                Attribute("sources", len(self._sources), "streams"),
            ),
            buffers.MODULE: buffers.attributes(),
            SCHEDULER: self.scheduler.attributes(),
        }
        for name, source in self._sources.items():
            modules[f"source/{name}"] = source.attributes()
            modules[f"data-stem/{name}"] = source.rows.attributes()
            modules[f"query-stem/{name}"] = source.queries.attributes()
            if not source.stream.is_table:
                modules[f"monitor/{name}"] = source.monitor.attributes()
            modules |= source.constraints()
            modules[f"queue/pending/{name}"] = source.pending.attributes(source.clock.clock_ms)
        now_ns = 0 if self._timer is None else self._timer()
        for module in self.scheduler:
            modules[f"queue/{module.name}"] = self.scheduler.attributes_of(module, now_ns)
        for over in self._sets:
            modules[f"queries/{'+'.join(over.sources)}"] = over.attributes()
        for name, group in self._sets.groups().items():
            modules[f"join/{name}"] = group.attributes()
        return modules

    def entities(self) -> Report:
        """Every entity with what it uses, and what queries pay of it (:mod:`engine.queries.entities`).

        O(entities but for queries), and O(1) a query that shares a join or is followed.
        """
        graphs = {key: graph.entities("+".join(key)) for key, graph in self._following.graphs()}
        return report(
            str(self.position),
            self.modules(),
            self._usage,
            len(self._queries),
            self._sources,
            list(self._sets),
            list(self._sets.indexes()),
            graphs,
        )

    def stats(self) -> dict[str, dict[str, AttributeValue]]:
        """The values alone, by module and attribute."""
        return {
            module: {attribute.name: attribute.value for attribute in attributes}
            for module, attributes in self.modules().items()
        }

    def footprint(self) -> Footprint:
        """The bytes that the state takes, by structure. O(segments * columns + queries' indexes)."""
        following = self._following
        return footprint(
            self._sources.values(),
            self._sets,
            self._sets.index_bytes,
            following.nbytes,
            following.by_strategy(),
        )

    def heaviest(self) -> Heavy | None:
        """The query that pausing would free most memory of; None: of none anything. O(queries)."""
        return heaviest(self._sets)

    def explain(
        self, *, query_id: str | None = None, sql: str | None = None, timer: Timer | None = None
    ) -> Plan:
        """The plan of a standing query, or of a SELECT that is not registered.

        timer: evaluate it too and time each stage (ANALYZE). Raises UnknownQuery, QueryError, LimitExceeded.
        """
        standing = None
        if query_id is not None:
            standing = self._queries.get(query_id)
            if standing is None:
                raise UnknownQuery()
            query = standing.query
        else:
            query = self._selected(sql or "")
        graph = self._following.explain(query, standing)
        followed = query_id is not None and query_id in self._following
        return self._sets.seen(set_key(query.sources)).explain(
            query,
            standing,
            timer,
            graph,
            {name: self._sets.readers(name) for name in query.sources},
            followed=followed,
        )

    def proposals(self, *, query_id: str | None = None, sql: str | None = None) -> tuple[Proposal, ...]:
        """Texts that use fewer resources than that of a standing query, or of a SELECT that is not
        registered, with what each saves and costs; nothing changes (STREAM, section 5.1).

        Raises UnknownQuery, QueryError, LimitExceeded.
        """
        standing = None
        if query_id is not None:
            standing = self._queries.get(query_id)
            if standing is None:
                raise UnknownQuery()
            sql = text_of(standing.registration)
        query = self._selected(sql or "")
        return self._sets.seen(set_key(query.sources)).proposals(
            query,
            query.sql,
            self.catalogue,
            self._selected,
            query.tolerance if standing is None else standing.tolerance,
        )

    def expecting(self, query_id: str, allotment: Allotment) -> Allotment:
        """The same allotment of a standing query, with the precision that its answer may then expect; nothing
        changes. Raises UnknownQuery, AllotmentRefused.
        """
        standing = self._queries.get(query_id)
        if standing is None:
            raise UnknownQuery()
        if not allotment:
            return allotment
        coming = allotted(standing, allotment, self.position, self._catalogue)
        expected = self._sets.of(standing).expected(standing.asked, coming.query)
        require_tolerated(standing.tolerance, expected)
        return replace(allotment, expected=expected)

    def allocation_problem(self) -> EngineProblem | None:
        """What standing queries would hold and may be given less; None: nobody tolerates that."""
        at = {name: seen for over in self._sets for name, seen in over.stands().items()}
        return engine_problem(self._queries.values(), self._sources, at, self._state_bytes)

    def _state_bytes(self) -> dict[SourceName, float]:
        """By source, what is kept for windows over it besides its rows; that of several in equal parts."""
        found: dict[SourceName, float] = {}
        graphs = dict(self._following.graphs())
        for over in self._sets:
            key = tuple(over.sources)
            nbytes = over.kept_bytes() + sum(group.nbytes for _, group in over.groups())
            nbytes += graphs[key].nbytes if key in graphs else 0
            for name in key:
                found[name] = found.get(name, 0.0) + nbytes / len(key)
        return found

    def _selected(self, sql: str) -> Query:
        """What a SELECT means."""
        statement = self.prepare(sql)
        if not isinstance(statement, Query):
            raise NotSupported("only a SELECT has a plan", hint="EXPLAIN SELECT ...", line=1, column=1)
        return statement

    def edit(self, module: str, values: Mapping[str, AttributeValue], version: int | None = None) -> None:
        """Set attributes of a module, all or none; no answer changes. version: that they must still have
        (:func:`engine.model.attributes.version_of`); None: whatever they are.

        Raises UnknownEntity, AttributeRefused, EditConflict.
        """
        attributes = self._attributes_of(module)
        if attributes is None:
            raise UnknownEntity(module)
        now = version_of(attributes)
        if version is not None and version != now:
            raise EditConflict(module, now)
        known = {attribute.name: attribute for attribute in attributes}
        settable = [one.name for one in attributes if one.settable]
        read: dict[str, AttributeValue] = {}
        for name, value in values.items():
            attribute = known.get(name)
            if attribute is None:
                raise AttributeRefused(module, name, value, settable)
            read[name] = attribute.read(value)
            refusal = attribute.refusal(read[name])
            if refusal is not None:
                raise AttributeRefused(module, name, value, settable, refusal)
        for name, value in read.items():
            self._set(module, name, value)

    def set_attribute(self, module: str, name: str, value: AttributeValue) -> None:
        """As :meth:`edit`, of one attribute."""
        self.edit(module, {name: value})

    def _set(self, module: str, name: str, value: AttributeValue) -> None:
        kind, _, of = module.partition("/")
        match kind:
            case buffers.MODULE:
                buffers.change(name, value)
                self._following.forget()
            case "scheduler":
                self.scheduler.set_policy(str(value))
            case "query-stem":
                self._sources[of].queries.eddy.set_attribute(name, str(value))
            case "monitor":
                self._sources[of].monitor.set_mode(str(value))
            case "join":
                self._sets.groups()[of].set_attribute(name, str(value))
            case _:
                raise AssertionError(f"{module}.{name} says that it can be set")

    def _attributes_of(self, module: str) -> tuple[Attribute, ...] | None:
        """Of one module; None where there is none. O(1) of those of a source."""
        kind, _, of = module.partition("/")
        source = self._sources.get(of)
        match kind:
            case buffers.MODULE:
                return buffers.attributes()
            case "scheduler":
                return self.scheduler.attributes()
            case "query-stem" if source is not None:
                return source.queries.attributes()
            case "monitor" if source is not None:
                return source.monitor.attributes()
        return self.modules().get(module)

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
            if query is None:
                continue
            self._candidates.look_at(query)
            changed += self._following.revise(query)
            if not is_left_open(query):
                continue
            answers_per_s = answers.get(query.query_id, 0) / seconds
            followed = query.query_id in self._following
            after = self._sets.of(query).revise(query, answers_per_s, allowance, followed=followed)
            if after is not query:
                self._queries[query.query_id] = after
                self._following.changed(after)
                self._outdate(after.sources)
                self._may_owe = True
                changed += 1
        if not self._to_revise:
            self._candidates.all_seen()
        return changed

    # --- the store's side -------------------------------------------------------------------------

    def save(self, sink: StateSink) -> None:
        """Hand over what changed since the last save and commit it with the position.

        Where commit raises, the same changes come again with the next save. O(what changed).
        """
        self._catalogue.save(sink)
        names = [source.stream.name for source in self._sources.values()]
        if self._unsaved is not None:
            names = list(self._unsaved) or names[:1]  # the clock is saved with a source
        saved = {name: self._sources[name].save(sink, self._clock_ms) for name in names}
        for query_id in self._dropped_queries:
            sink.drop_query(query_id)
        erring = self._erring(saved)
        for query_id in self._unsaved_queries | erring.keys():
            sink.put_query(self._state_of(self._queries[query_id]))
        held = self._following.held_streams()
        for over, source_name in self._saved_held - held:
            sink.drop_held(over, source_name)
        for state in self._following.held(set(names)):
            sink.put_held(state)
        sink.commit(self.position)
        self._saved_held = held
        for name, done in saved.items():
            self._sources[name].saved(done)
        for query_id in self._dropped_queries:
            self._saved_errors.pop(query_id, None)
        self._saved_errors.update(erring)
        self._saved_position = self.position
        self._unsaved = set()
        self._catalogue.saved()
        self._dropped_queries.clear()
        self._unsaved_queries.clear()

    def copy(self, sink: StateSink) -> None:
        """Hand over all there is, to a sink that has nothing, and commit it. Later saves know nothing of it.

        O(retained rows + queries).
        """
        for derived in self._catalogue.derived.values():
            sink.put_derived(derived)
        for source in self._sources.values():
            source.copy(sink, self._clock_ms)
        for query in self._queries.values():
            sink.put_query(self._state_of(query))
        for state in self._following.held({source.stream.name for source in self._sources.values()}):
            sink.put_held(state)
        sink.commit(self.position)

    def _state_of(self, query: StandingQuery) -> QueryState:
        """What is stored of a query."""
        given, counts = query.allotted, self._sets.of(query).errors_of(query)
        last = self._following.last_of(query.query_id)
        state = QueryState(query.registration, query.born, counts, last)
        if given is None:
            return state
        return replace(state, allotment=given.allotment, allotted_at=given.since)

    def _erring(self, names: Iterable[SourceName]) -> dict[str, tuple[int, ...]]:
        """Queries over these sources whose counts of predicate errors are not the saved ones."""
        return {
            query_id: counts
            for over in self._sets.over(names)
            for query_id, counts in over.erring()
            if counts != self._saved_errors.get(query_id)
        }

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
    ) -> Engine:
        """An engine as of the store's position; empty where the store is. Matches are computed again.

        Raises the refusal of a stored statement that this version does not accept any more.
        """
        engine = cls(limits, functions=functions, costs=costs, timer=timer, clock=clock)
        position = store.position()
        if position is None:
            return engine
        engine.position = engine._enqueued = engine._saved_position = position
        engine._restored = True
        states = list(store.sources())
        for state in states:
            source = Source(state.stream, state.sql, engine.limits, state.base, timer, engine._watch)
            source.restore_state(state)
            engine._sources[state.stream.name] = source
            engine._clock_ms = max(engine._clock_ms, state.clock_ms)
        engine._catalogue.derived.update({derived.name: derived for derived in store.derived()})
        engine._catalogue.changed()
        emitting: list[Coming] = []
        told_last: dict[str, LastAnswer] = {}
        stood = sorted(store.queries(), key=lambda q: (q.born.epoch, q.born.sequence))
        for first in range(0, len(stood), RESTORED_MAX):
            by_set: dict[SetKey, list[Coming]] = {}
            for stored in stood[first : first + RESTORED_MAX]:
                read = bound(stored.registration, engine._catalogue)
                coming = Coming.of(stored.registration, read, stored.born)
                if stored.allotment is not None and stored.allotted_at is not None:
                    coming = given_less(
                        coming, read.query, stored.allotment, stored.allotted_at, engine._catalogue
                    )
                by_set.setdefault(set_key(coming.meaning.sources), []).append(coming)
                if coming.meaning.emits:
                    emitting.append(coming)
                if stored.last is not None:
                    told_last[stored.registration.query_id] = stored.last
                if any(stored.predicate_errors):
                    engine._saved_errors[stored.registration.query_id] = stored.predicate_errors
            for key, queries in by_set.items():
                engine._sets.joined(key).register(queries, apply=False)
        for state in states:
            name = state.stream.name
            engine._sources[name].restore(store.rows(name), store.pending(name), state.end, state.promises)
        engine._references.changed()
        for over in engine._sets:
            erring = engine._saved_errors
            over.restored({query_id: erring[query_id] for query_id in erring if query_id in over.standing})
            engine._queries.update(over.standing)
            for standing in over.standing.values():
                engine._tag(standing)
        for coming in emitting:
            engine._following.came(engine._queries[coming.registration.query_id], coming.query)
        for query_id, last in told_last.items():
            engine._following.paused_with(query_id, last)
        held = list(store.held())
        engine._saved_held = {(state.over, state.source) for state in held}
        engine._following.restore_held(held)
        return engine

    def _check(self) -> None:
        """Every invariant of every part."""
        for source in self._sources.values():
            source._check()
        for over in self._sets:
            assert over.standing
            over._check()
        self._sets._check(settled=not self._restored)
        view = self.view()
        assert view._sources.keys() == self._sources.keys()
        assert all(view._sources[name] is source.view() for name, source in self._sources.items())
        assert view._sets.keys() == set(self._sets.keys())
        assert all(view._sets[key] is over for key, over in self._sets.views().items())
        assert self._may_owe or not any(source.catch_up_some() for source in self._sources.values())
        there = {query_id for over in self._sets for query_id in over.standing}
        assert there == self._queries.keys()

"""The standing queries over a set of sources: their NOW, and what is kept for their answers.

Matches of their predicates are kept by each source's Query SteM, shared with all queries that read it. Kept
here are the answers of eager queries (:mod:`engine.queries.eager_answers`), and the
combinations of rows that queries which join by the same keys have in common (:mod:`engine.joins`). For
queries with a preference only what their groups found is kept (:mod:`engine.queries.promising`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace

from sortedcontainers import SortedList

from engine.changes.marks import Mark
from engine.changes.transition import SourceTransition, Transition
from engine.eddy.eddy import Timer
from engine.joins.group import JoinGroup
from engine.joins.joins import Joins, JoinViews
from engine.joins.key_index import KeyIndexes
from engine.joins.shape import Shape
from engine.language.query import Query
from engine.model.approximation import Expected
from engine.model.attributes import Attribute
from engine.model.capacities import USUAL, Capacities
from engine.model.defects import Defects
from engine.model.expressions import Expression
from engine.model.limits import Limits
from engine.model.maintenance import Maintenance, QueryOptions
from engine.model.source import SourceName
from engine.model.step import Registration
from engine.model.usage import Stopwatch, Usage
from engine.operators.scan import ScanAt
from engine.queries.admitted_query import AdmittedQuery, needs_matches
from engine.queries.allowance import Allowance
from engine.queries.copies import copies_by
from engine.queries.eager_answers import EagerAnswers
from engine.queries.measuring import measured
from engine.queries.plan_inputs import HeldPredicate, PlanInputs, SourcesAt
from engine.queries.plan_preference import PlanPreference, plan_preference
from engine.queries.planner import Planner, Setting
from engine.queries.promising import GroupNumbers, Numbered, SetGroups, member_of
from engine.queries.put_off import PutOffs
from engine.queries.statistics import statistics_of
from engine.queries.strategist import StrategyInputs
from engine.sources.source import Source
from engine.sources.source_view import SourceView, now_of, sources_at, timeless
from engine.standing.query import StandingQuery
from engine.stems.factors import Factors
from engine.stems.match_place import Place, slot_at
from engine.views.estimated_aggregates import unscaled_calls
from engine.views.found_answers import NOTHING_YET
from engine.views.row_counts import RowCounts
from engine.views.view import SetView
from engine.windows.clauses import RowWindow
from engine.windows.retention import Hold, reach_ms

Predicates = tuple[tuple[SourceName, Expression | Factors], ...]
"""The predicates of a query, each with its source."""


NOTHING_SHED: Mapping[SourceName, float] = {}


@dataclass(frozen=True, slots=True)
class SeenSources:
    """The sources, NOW of the queries, and how the sources are seen at it."""

    sources: Mapping[SourceName, SourceView]
    now_ms: int | None
    at: Mapping[SourceName, ScanAt]


class SourceSet:
    """One owner, as the engine."""

    def __init__(
        self,
        sources: Sequence[Source],
        limits: Limits,
        planner: Planner,
        indexes: KeyIndexes,
        timer: Timer | None,
        watch: Stopwatch,
        numbers: GroupNumbers,
        put_offs: PutOffs,
        defects: Defects,
        capacities: Capacities = USUAL,
    ) -> None:
        """indexes: by keys of joins, those of the engine. timer: see :mod:`engine.queries.allowance`. watch,
        put_offs, defects: the engine's. numbers: of the engine's promising groups.
        """
        self._defects = defects
        self.usage = Usage()
        self._watch = watch
        self._shapes: dict[str, Shape] = {}
        """The shape of the join that a query shares, by query id."""
        self.sources = {source.stream.name: source for source in sources}
        self.standing: dict[str, StandingQuery] = {}
        self._paused: set[str] = set()
        self._limits = limits
        self._planner = planner
        self._timer = timer
        self._unaffordable: set[str] = set()
        self._lone = sources[0] if len(sources) == 1 and not sources[0].stream.is_table else None
        self.eager = EagerAnswers(sources, self._as_seen, self.mark, put_offs, defects, self.standing)
        self._counts = None if self._lone is None else RowCounts()
        self._joins = Joins(
            indexes,
            {source.stream.name: len(source.stream.schema) for source in sources},
            timeless([source.stream for source in sources]),
            limits.composites_max,
            watch,
            self._join_failed,
            capacities,
        )
        self.promising = SetGroups(self.sources, limits, numbers, defects)
        self._reaches: dict[SourceName, SortedList] = {name: SortedList() for name in self.sources}
        self._row_counts: dict[SourceName, SortedList] = {name: SortedList() for name in self.sources}
        self._earlier_counts: dict[SourceName, SortedList] = {
            name: SortedList(key=str) for name in self.sources
        }
        self._following_now = 0
        """Scans of standing queries with windows that move with NOW, and queries with streams of
        subqueries.
        """
        self._last_seen: SeenSources | None = None
        self._view: SetView | None = None

    # --- queries ----------------------------------------------------------------------------------

    def register(self, coming: Sequence[AdmittedQuery], *, apply: bool = True) -> list[StandingQuery]:
        """Queries come: their predicates are put in, then applied to all retained rows, in one pass a source
        for all. apply: False where the rows are about to come.
        """
        setting = self._setting()
        allowance = Allowance(self._timer if apply else None)
        wanted = [one.predicates() for one in coming]
        modes = self._modes(coming, wanted, setting, allowance)
        needed: list[Predicates] = [
            () if mode == "none" or paused else each
            for each, (mode, paused) in zip(wanted, modes, strict=True)
        ]
        standing = [
            StandingQuery(one.registration, one.meaning, one.born, mode, paused, slots, allotted=one.allotted)
            for one, (mode, paused), slots in zip(coming, modes, self._keep(needed, apply=apply), strict=True)
        ]
        for one, kept in zip(coming, standing, strict=True):
            if kept.holds_rows:
                self._count_windows(one.like, 1)
        put = self._put(standing, coming)
        shared = [
            self._join(kept.query_id, one.like)
            for one, kept in zip(coming, put, strict=True)
            if kept.keeps_matches
        ]
        if apply and any(shared):
            self._advance_joins()
        if apply:
            self._prefer(put)
        return put

    def _modes(
        self,
        coming: Sequence[AdmittedQuery],
        wanted: Sequence[Predicates],
        setting: Setting,
        allowance: Allowance,
    ) -> list[tuple[Maintenance, bool]]:
        """How each is maintained, and whether it is paused. wanted: its predicates."""
        chosen: dict[int, Maintenance] = {}
        modes: list[tuple[Maintenance, bool]] = []
        for one, predicates in zip(coming, wanted, strict=True):
            options = QueryOptions.of(one.registration.options)
            mode = options.maintenance
            if mode == "auto" and one.prefers:
                mode = "lazy"
            elif mode == "auto":
                like = one.like
                mode = "none"
                with self._defects.of(one.registration.query_id):
                    mode = chosen.get(id(like)) or self._planner.first(like, setting).maintenance
                    chosen[id(like)] = mode
            query_id = one.registration.query_id
            self._unaffordable.discard(query_id)
            is_free = (
                one.prefers
                or needs_matches(one)
                or all(isinstance(predicate, Factors) for _, predicate in predicates)
            )
            if not (mode == "none" or options.paused or is_free or allowance.takes(one.query, self.sources)):
                mode = "none"
                self._unaffordable.add(query_id)
            modes.append((mode, options.paused))
        return modes

    def _put(self, standing: Sequence[StandingQuery], coming: Sequence[AdmittedQuery]) -> list[StandingQuery]:
        self._view = None
        self._catch_up([one for one in standing if one.keeps_answer or one.meaning.emits])
        put = self.eager.put(standing, coming)
        for query in put:
            query_id = query.query_id
            self.standing[query_id] = query
            if query.paused:
                self._paused.add(query_id)
            else:
                self._paused.discard(query_id)
        return put

    def _prefer(self, standing: Iterable[StandingQuery]) -> None:
        """Queries with a preference come, or have other options."""
        for one in standing:
            if one.prefers:
                seen = self._seen()
                with self._defects.of(one.query_id):
                    self.promising.put(one, seen.at, seen.now_ms)

    def _catch_up(self, standing: Sequence[StandingQuery]) -> None:
        """All matches of these are needed at once."""
        slots: dict[SourceName, list[int]] = {}
        for one in standing:
            for name, (slot, _) in one.places():
                slots.setdefault(name, []).append(slot)
        for name, mine in slots.items():
            self.sources[name].catch_up(mine)

    def _keep(self, wanted: Sequence[Predicates], *, apply: bool) -> list[tuple[Place, ...]]:
        """Where the matches of each predicate are kept, for each query."""
        places = {
            name: iter(source.keep([p for each in wanted for of, p in each if of == name], apply=apply))
            for name, source in self.sources.items()
        }
        return [tuple([next(places[of]) for of, _ in each]) for each in wanted]

    def exchange(self, coming: Sequence[AdmittedQuery]) -> list[StandingQuery]:
        """Queries that stand over these sources are answered by others from now on. Matches are kept of
        predicates that they have before and after.
        """
        kept = [one.predicates() if self.standing[one.query_id].slots else () for one in coming]
        held = self._keep(kept, apply=True)
        for one in coming:
            self.unregister(one.query_id)
        after = self.register(coming)
        for predicates, places in zip(kept, held, strict=True):
            for (name, _), place in zip(predicates, places, strict=True):
                self.sources[name].release([slot_at(place)])
        return after

    def change(self, registration: Registration) -> StandingQuery:
        """A standing query gets other options. Raises OptionRefused, and then nothing changed."""
        before = self.standing[registration.query_id]
        coming = AdmittedQuery.again(before, registration)
        predicates = () if before.keeps_matches else coming.predicates()  # those are kept, and cost nothing
        ((mode, paused),) = self._modes([coming], [predicates], self._setting(), Allowance(self._timer))
        after = replace(before, registration=registration, maintenance=mode, paused=paused)
        return self._replace(before, after, coming)

    def revise(
        self, before: StandingQuery, answers_per_s: float, allowance: Allowance, *, followed: bool
    ) -> StandingQuery:
        """Let the planner choose again for a query that leaves it open."""
        if before.prefers:
            return before
        choice = self._planner.again(before, self._setting(), answers_per_s, followed=followed)
        if choice.maintenance == before.maintenance:
            return before
        if choice.maintenance == "eager" and before.put_off is not None:
            return before
        if not before.keeps_matches and not allowance.takes(before.query, self.sources):
            return before
        self._unaffordable.discard(before.query_id)
        coming = AdmittedQuery.again(before)
        return self._replace(before, replace(before, maintenance=choice.maintenance), coming)

    def _replace(self, before: StandingQuery, after: StandingQuery, coming: AdmittedQuery) -> StandingQuery:
        after = replace(after, slots=(), partials=None, put_off=None)
        if after.holds_rows != before.holds_rows:
            self._count_windows(coming.query, 1 if after.holds_rows else -1)
        if not after.keeps_answer:
            self.eager.fell(before.query_id)
        if after.keeps_matches and before.keeps_matches:
            after = replace(after, slots=before.slots)
        elif after.keeps_matches:
            (slots,) = self._keep([coming.predicates()], apply=True)
            after = replace(after, slots=slots)
        else:
            self._release(before)
        if after.keeps_matches and not before.keeps_matches:
            self._join(before.query_id, coming.query)
            self._advance_joins()
        elif before.keeps_matches and not after.keeps_matches:
            self._part(before.query_id, coming.query)
        (after,) = self._put([after], [coming])
        self._prefer([after])
        return after

    def unregister(self, query_id: str) -> None:
        """A query goes."""
        query = self.standing.pop(query_id)
        self._paused.discard(query_id)
        self._unaffordable.discard(query_id)
        self._view = None
        self.promising.remove(query_id)
        self.eager.fell(query_id)
        if self._counts is not None:
            self._counts.forget(query_id)
        bound = query.query
        if query.keeps_matches:
            self._part(query_id, bound)
        self._release(query)
        if query.holds_rows:
            self._count_windows(bound, -1)

    def _join(self, query_id: str, query: Query) -> Shape | None:
        """A query shares a join from now on, if it has one."""
        shape = None
        with self._defects.of(query_id):
            shape = self._joins.add(query)
        if shape is not None:
            self._shapes[query_id] = shape
        return shape

    def _join_failed(self, shape: Shape, defect: Exception) -> None:
        """The queries that share a join end with it."""
        self._defects.note([name for name, shared in self._shapes.items() if shared == shape], defect)

    def _part(self, query_id: str, query: Query) -> None:
        if self._shapes.pop(query_id, None) is not None:
            self._joins.remove(query)

    def _release(self, query: StandingQuery) -> None:
        for name, (slot, _) in query.places():
            self.sources[name].release([slot])

    # --- what steps do ----------------------------------------------------------------------------

    def advance(self) -> None:
        """One of the sources took a step."""
        self._view = None
        with self._watch.on(self.usage):
            self.eager.advance()
        if len(self._joins):
            self._advance_joins()
        if len(self.promising):
            seen = self._seen()
            self.promising.arrive(seen.at, seen.now_ms)

    def replanted(self) -> list[StandingQuery]:
        """Queries that are answered from other partial results than they were, since the last time."""
        return self.eager.replanted()

    def follow_summaries(self) -> None:
        """A summary went on, in a step of a source that is none of these: groups let go of what it has no
        more.
        """
        if len(self.promising):
            self._view = None
            seen = self._seen()
            self.promising.arrive(seen.at, seen.now_ms)

    def prefer_restored(self) -> None:
        """The groups that the store had are back: queries with a preference that are in none come to one."""
        self._prefer(one for one in self.standing.values() if one.query_id not in self.promising)

    def spent(self, group: Numbered) -> None:
        """A group of this set has used units of a grant."""
        self._view = None
        self.promising.spent(group)

    def prefer_anew(self) -> None:
        """Summaries came or went that groups of this set use: these begin anew."""
        self._view = None
        seen = self._seen()
        self.promising.begin_anew(seen.at, seen.now_ms)

    def _advance_joins(self) -> None:
        seen = self._seen()
        rows = {name: source.rows for name, source in seen.sources.items()}
        self._joins.advance(rows, {name: at.end for name, at in seen.at.items()}, seen.now_ms)

    def dropped(self, name: SourceName) -> None:
        """One of the sources let go of rows."""
        self._view = None
        self.eager.dropped()
        self._joins.drop_below(name, self.sources[name].rows.base)
        self.promising.drop_below(name)
        if self.sources[name].stream.is_table and len(self._joins):
            self._advance_joins()  # rows that stayed have other ordinals now

    def renumbered(self, name: SourceName) -> list[StandingQuery]:
        """The rows of one of the sources have other ordinals now or begin elsewhere, and the shared indexes
        know nothing of them: all that is kept is made anew. Returns the queries whose partial results are.

        O(retained rows), as when the queries came.
        """
        self._view = None
        self._joins.forget(name)
        if self._lone is not None:
            self._counts = RowCounts()
        anew = self.eager.renumbered()
        if len(self.promising):
            self.prefer_anew()
        self.advance()
        return [self.standing[query.query_id] for query in anew]

    @property
    def follows_now(self) -> bool:
        """Whether an answer may change as NOW moves on, and no row enters a source."""
        return len(self.sources) > 1 or self._following_now > 0

    def _count_windows(self, query: Query, change: int) -> None:
        """Windows of standing queries decide what is retained, and whether time alone changes answers."""
        self._following_now += change * query.has_streams
        for scan, behind_ms in query.scans_behind():
            if scan.assignment is not None or scan.window.follows_now:
                self._following_now += change
            kept: list[tuple[SortedList, object]] = []
            width_ms = reach_ms(scan.window, scan.assignment)
            if width_ms is not None or behind_ms:
                kept.append((self._reaches[scan.source], (width_ms or 0) + (behind_ms or 0)))
            if isinstance(scan.window, RowWindow) and scan.window.plain and scan.assignment is None:
                if behind_ms != 0:
                    kept.append((self._earlier_counts[scan.source], (behind_ms, scan.window.rows)))
                else:
                    kept.append((self._row_counts[scan.source], scan.window.rows))
            for held, reach in kept:
                if change > 0:
                    held.add(reach)
                else:
                    held.remove(reach)

    def hold(self, name: SourceName) -> Hold:
        """What the queries need of one of the sources."""
        reaches, counts = self._reaches[name], self._row_counts[name]
        if self._lone is not None:
            seen_ms = self._lone.clock.now_ms
        else:
            seen_ms = self._seen().at[name].now_ms
        earlier = tuple(sorted(set(self._earlier_counts[name]), key=str))
        return Hold(seen_ms, reaches[-1] if reaches else 0, counts[-1] if counts else 0, earlier)

    def reaches_ms(self, name: SourceName) -> list[int]:
        """How far the two windows over a source reach that reach furthest."""
        return list(self._reaches[name][-2:])

    # --- readers ----------------------------------------------------------------------------------

    def _seen(self) -> SeenSources:
        """The sources as they stand now; the same object until one of them changes."""
        sources = {name: source.view() for name, source in self.sources.items()}
        known = self._last_seen
        if known is None or any(known.sources[name] is not source for name, source in sources.items()):
            now_ms = now_of(sources.values())
            known = self._last_seen = SeenSources(sources, now_ms, sources_at(sources, now_ms))
        return known

    @property
    def now_ms(self) -> int | None:
        """NOW of the queries."""
        return self._seen().now_ms

    def mark(self) -> Mark:
        """Where the sources stand."""
        seen = self._seen()
        return Mark(
            seen.now_ms,
            {name: at.now_ms for name, at in seen.at.items()},
            {name: source.retained_from_ms for name, source in seen.sources.items()},
        )

    def at_rest(self) -> Transition | None:
        """A transition of no time at NOW; None where there is no NOW."""
        seen = self._seen()
        if seen.now_ms is None:
            return None
        by_source = {
            name: SourceTransition(at, moves=not self.sources[name].stream.is_table)
            for name, at in seen.at.items()
        }
        return Transition(seen.now_ms, seen.now_ms, by_source)

    def views(self) -> Mapping[SourceName, SourceView]:
        """The sources as they stand."""
        return self._seen().sources

    def view(self) -> SetView:
        """The queries as they stand; the same object until something changes."""
        seen = self._seen()
        if self._view is None or self._view.sources is not seen.sources:
            found = self.promising.found()
            with self._watch.on(self.usage):
                kept = self.eager.refresh()
            joins, asked = self._composites(), self.promising.on_demand()
            self._view = SetView(seen.sources, seen.now_ms, seen.at, joins, kept, self._counts, found, asked)
        return self._view

    def look_again(self) -> None:
        """What was made beside can be taken over."""
        self._view = None

    def _composites(self) -> JoinViews | None:
        return self._joins.view() if len(self._joins) else None

    def _as_seen(self) -> tuple[Mapping[SourceName, ScanAt], JoinViews | None, Limits]:
        return self._seen().at, self._composites(), self._limits

    def stands(self) -> Mapping[SourceName, ScanAt]:
        """How the sources are seen at NOW of the queries."""
        return self._seen().at

    def _setting(self) -> Setting:
        return Setting({name: source.meter for name, source in self.sources.items()}, self._seen().at)

    def sources_at(self, shed: Mapping[SourceName, float] = NOTHING_SHED) -> SourcesAt:
        """The sources as they stand, to estimate by. shed: the share of rows due, missed as late rows
        are. O(sources).
        """
        seen = self._seen()
        late = {
            name: 1.0 - (1.0 - source.late_share) * (1.0 - shed.get(name, 0.0))
            for name, source in self.sources.items()
        }
        tables = [name for name, source in self.sources.items() if source.stream.is_table]
        known = statistics_of(self.sources)
        return SourcesAt(seen.sources, seen.at, late, self._limits, copies_by(lambda: known, tables))

    def measured(self, standing: StandingQuery, shed: Mapping[SourceName, float]) -> Expected:
        """How precise an answer is by the rows that are there. shed: of sources, the share of rows due."""
        return measured(standing, self.sources, self.sources_at().rows_of, shed)

    def plan_inputs(
        self,
        query: Query,
        standing: StandingQuery | None,
        strategy: StrategyInputs,
        readers: Mapping[SourceName, int],
        *,
        followed: bool,
    ) -> PlanInputs:
        """What the plan of a query over these sources is made of. readers: how many queries read each source.
        followed: it is. O(sources + size of the query).
        """
        setting = self._setting()
        group = self._joins.group_of(query)
        modules = {f"query-stem/{name}": self.sources[name].queries.statistics() for name in query.sources}
        if group is not None:
            modules[f"join/{self._name(group)}"] = group.statistics()
        return PlanInputs(
            query,
            standing,
            {name: source.stream for name, source in self.sources.items()},
            self.sources_at(),
            Setting({name: copy(meter) for name, meter in setting.meters.items()}, setting.at),
            self._planner,
            standing is not None and standing.query_id in self._unaffordable,
            tuple(self._held_predicates(query, standing)),
            modules,
            tuple(
                name
                for name, source in self._seen().sources.items()
                if source.now_ms is None and not source.stream.is_table
            ),
            readers,
            self._plan_preference(query, standing),
            NOTHING_YET if standing is None else self.promising.found().get(standing.query_id, NOTHING_YET),
            followed,
            strategy,
        )

    def _held_predicates(self, query: Query, standing: StandingQuery | None) -> Iterator[HeldPredicate]:
        for source, predicate in query.predicates():
            stem = self.sources[source].queries
            slot = None if standing is None else standing.slot_of(source, predicate)
            if slot is None:
                yield HeldPredicate(source, predicate, {}, None)
            else:
                others = int(stem.holders[slot]) - 1
                yield HeldPredicate(source, predicate, stem.explain(slot), others)

    def _plan_preference(self, query: Query, standing: StandingQuery | None) -> PlanPreference | None:
        """Where the rows of a query with a preference come from."""
        if query.preference is None:
            return None
        query_id, preference, numbered = None, query.preference, None
        if standing is not None:
            query_id, member = standing.query_id, member_of(standing)
            preference, numbered = member.preference, self.promising.group_of(query_id)
        kind = self.promising.key_of(query).kind
        unscaled = unscaled_calls(query)
        return plan_preference(query_id, preference, kind, numbered, self.sources, unscaled)

    def attributes(self) -> tuple[Attribute, ...]:
        """What can be read of this module."""
        return (
            Attribute("queries", len(self.standing), "standing queries over exactly these sources"),
            Attribute(
                "now_ms", now_of([s.view() for s in self.sources.values()]), "their NOW, ms since 1970"
            ),
            *self.eager.attributes(),
        )

    # --- the store's side -------------------------------------------------------------------------

    def erring(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Queries whose predicates met errors, and how many each."""
        if any(source.queries.errors.any() for source in self.sources.values()):
            for query_id, query in self.standing.items():
                counts = self.errors_of(query)
                if any(counts):
                    yield query_id, counts

    def errors_of(self, query: StandingQuery) -> tuple[int, ...]:
        """How many errors each of its predicates met, while matches were kept."""
        return tuple(int(self.sources[name].queries.errors[slot]) for name, (slot, _) in query.places())

    def restored(self, errors: Mapping[str, Sequence[int]]) -> None:
        """The rows came back. errors: of each query's predicates, as saved."""
        self.advance()
        by_slot: dict[SourceName, dict[int, int]] = {name: {} for name in self.sources}
        for query_id, counts in errors.items():
            places = list(self.standing[query_id].places())
            if len(places) == len(counts):
                for (name, (slot, _)), count in zip(places, counts, strict=True):
                    by_slot[name][slot] = count
        for name, found in by_slot.items():
            self.sources[name].restore_errors(found)

    def kept_bytes(self) -> int:
        """Bytes of what is kept of answers. O(eager queries)."""
        return self.eager.nbytes

    @property
    def running(self) -> int:
        """How many of the standing queries are not paused. O(1)."""
        return len(self.standing) - len(self._paused)

    def own_bytes(self) -> dict[str, int]:
        """Bytes that queries keep for themselves alone, of those that do. O(these)."""
        kept = {query_id: self.answer_bytes(query_id) for query_id in self.eager}
        return {query_id: held for query_id, held in kept.items() if held}

    def answer_bytes(self, query_id: str) -> int:
        """Bytes of what is kept of one query's answer."""
        return self.eager.bytes_of(query_id)

    def group_of(self, query: StandingQuery) -> JoinGroup | None:
        """The join that a query shares, if there is one."""
        return self._joins.group_of(query.query)

    def group_names(self) -> dict[str, str]:
        """Returns the name of the join that a query shares, by query id. O(queries that share a join)."""
        names = {shape: self._name(group) for shape, group in self._joins.groups.items()}
        return {query_id: names[shape] for query_id, shape in self._shapes.items()}

    def groups(self) -> Iterator[tuple[str, JoinGroup]]:
        """The joins, each by what it joins."""
        for group in self._joins:
            yield self._name(group), group

    def _name(self, group: JoinGroup) -> str:
        return f"{'+'.join(self.sources)}/{group.shape}"

    def _check(self) -> None:
        for group in self._joins:
            group._check()
        self.eager._check()
        self.promising._check()
        assert self._paused == {name for name, query in self.standing.items() if query.paused}
        for query in self.standing.values():
            for name, (slot, generation) in query.places():
                assert self.sources[name].queries.generations[slot] == generation

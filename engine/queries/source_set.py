"""The standing queries over a set of sources, and what is kept for their answers.

Matches of their predicates are kept by each source's Query SteM, shared with all queries that read it. Kept
here are the answers of eager queries (:mod:`engine.queries.eager_answers`), and the
combinations of rows that queries which join by the same keys have in common (:mod:`engine.joins`). For
queries with a preference only what their groups found is kept (:mod:`engine.queries.promising`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from engine.eddy.eddy import Timer
from engine.joins.joins import Joins, JoinViews
from engine.joins.key_index import KeyIndexes
from engine.joins.waiting_conditions import PostponingSource
from engine.model.attributes import Attribute
from engine.model.capacities import Capacities
from engine.model.defects import Defects
from engine.model.limits import Limits
from engine.model.source import SourceName
from engine.model.step import Registration
from engine.model.usage import Stopwatch, Usage
from engine.queries.admitted_query import AdmittedQuery
from engine.queries.allowance import Allowance
from engine.queries.eager_answers import EagerAnswers
from engine.queries.maintenance_modes import MaintenanceModes, Predicates
from engine.queries.planner import Planner
from engine.queries.predicate_matches import PredicateMatches
from engine.queries.promising import GroupNumbers, Numbered, SetGroups
from engine.queries.put_off import PutOffs
from engine.queries.sources_now import SourcesNow
from engine.queries.window_needs import WindowNeeds
from engine.sources.source import Source
from engine.sources.source_view import timeless
from engine.standing.query import StandingQuery
from engine.views.row_counts import RowCounts
from engine.views.set_view import SetView
from engine.windows.retention import Hold


@dataclass(frozen=True, slots=True)
class SharedBySets:
    """What the sets of an engine have in common."""

    limits: Limits
    planner: Planner
    # What measures that queries which come cost the rows that are there; see engine.queries.allowance.
    timer: Timer | None
    watch: Stopwatch
    defects: Defects
    capacities: Capacities
    # Of rows by keys of joins.
    indexes: KeyIndexes
    # Of promising groups.
    numbers: GroupNumbers
    put_offs: PutOffs


# One field for each thing that is kept of its queries.
class SourceSet:
    """One owner, as the engine."""

    def __init__(self, sources: Sequence[Source], shared: SharedBySets) -> None:
        self._shared = shared
        self.usage = Usage()
        self.sources = {source.stream.name: source for source in sources}
        self.standing: dict[str, StandingQuery] = {}
        self.now = SourcesNow(self.sources, shared.limits)
        self.windows = WindowNeeds(self.sources)
        self.matches = PredicateMatches(self.sources)
        self.modes = MaintenanceModes(self.sources, self.now, shared.planner, shared.defects)
        self.eager = EagerAnswers(
            sources,
            lambda: (self.now.at, self._composites(), shared.limits),
            self.now.mark,
            shared.put_offs,
            shared.defects,
            self.standing,
        )
        is_lone_stream = len(sources) == 1 and not sources[0].stream.is_table
        self._counts = RowCounts() if is_lone_stream else None
        self.joins = Joins(
            shared.indexes,
            {source.stream.name: len(source.stream.schema) for source in sources},
            timeless([source.stream for source in sources]),
            shared.limits.composites_max,
            shared.watch,
            shared.defects.note,
            shared.capacities,
            {
                source.stream.name: PostponingSource(source.queries.postponing, source.rows.owed.postponed)
                for source in sources
                if not source.stream.is_table
            },
        )
        self.promising = SetGroups(self.sources, shared.limits, shared.numbers, shared.defects)
        self._view: SetView | None = None

    # --- queries ----------------------------------------------------------------------------------

    def register(self, coming: Sequence[AdmittedQuery], *, apply: bool = True) -> list[StandingQuery]:
        """Queries come: their predicates are put in, then applied to all retained rows, in one pass a source
        for all. apply: False where the rows are about to come.
        """
        wanted = [one.predicates() for one in coming]
        modes = self.modes.choose(coming, wanted, Allowance(self._shared.timer if apply else None))
        needed: list[Predicates] = [
            () if mode == "none" or paused else each
            for each, (mode, paused) in zip(wanted, modes, strict=True)
        ]
        places = self.matches.keep(needed, apply=apply)
        standing = [
            StandingQuery(
                one.registration, one.template, one.born, mode, paused, slots, allotted=one.allotted
            )
            for one, (mode, paused), slots in zip(coming, modes, places, strict=True)
        ]
        for one, kept in zip(coming, standing, strict=True):
            if kept.holds_rows:
                self.windows.count(one.like, 1)
        put = self._put(standing, coming)
        is_shared = False
        for one, kept in zip(coming, put, strict=True):
            if kept.keeps_matches:
                with self._shared.defects.of(kept.query_id):
                    is_shared |= self.joins.add(kept.query_id, one.like, kept.slots)
                    self.joins.postpone(kept.query_id, one.like, waits=kept.is_only_asked)
        if apply and is_shared:
            self._advance_joins()
        if apply:
            self._prefer(put)
        return put

    def _put(self, standing: Sequence[StandingQuery], coming: Sequence[AdmittedQuery]) -> list[StandingQuery]:
        self._view = None
        self.matches.catch_up(one for one in standing if one.keeps_answer or one.template.emits)
        put = self.eager.put(standing, coming)
        self.standing.update((query.query_id, query) for query in put)
        return put

    def _prefer(self, standing: Iterable[StandingQuery]) -> None:
        """Queries with a preference come, or have other options."""
        for one in standing:
            if one.prefers:
                seen = self.now.seen()
                with self._shared.defects.of(one.query_id):
                    self.promising.put(one, seen.at, seen.now_ms)

    def exchange(self, coming: Sequence[AdmittedQuery]) -> list[StandingQuery]:
        """Queries that stand over these sources are answered by others from now on. Matches are kept of
        predicates that they have before and after.
        """
        kept = [one.predicates() if self.standing[one.query_id].slots else () for one in coming]
        held = self.matches.keep(kept, apply=True)
        for one in coming:
            self.unregister(one.query_id)
        after = self.register(coming)
        for predicates, places in zip(kept, held, strict=True):
            self.matches.release_kept(predicates, places)
        return after

    def change(self, registration: Registration) -> StandingQuery:
        """A standing query gets other options. Raises OptionRefused, and then nothing changed."""
        before = self.standing[registration.query_id]
        coming = AdmittedQuery.again(before, registration)
        predicates = () if before.keeps_matches else coming.predicates()  # those are kept, and cost nothing
        ((mode, paused),) = self.modes.choose([coming], [predicates], Allowance(self._shared.timer))
        after = replace(before, registration=registration, maintenance=mode, paused=paused)
        return self._replace(before, after, coming)

    def revise(
        self, before: StandingQuery, answers_per_s: float, allowance: Allowance, *, followed: bool
    ) -> StandingQuery:
        """Let the planner choose again for a query that leaves it open."""
        mode = self.modes.again(before, answers_per_s, allowance, followed=followed)
        if mode == before.maintenance:
            return before
        return self._replace(before, replace(before, maintenance=mode), AdmittedQuery.again(before))

    def _replace(self, before: StandingQuery, after: StandingQuery, coming: AdmittedQuery) -> StandingQuery:
        after = replace(after, slots=(), partials=None, put_off=None)
        if after.holds_rows != before.holds_rows:
            self.windows.count(coming.query, 1 if after.holds_rows else -1)
        if not after.keeps_answer:
            self.eager.fell(before.query_id)
        if after.keeps_matches and before.keeps_matches:
            after = replace(after, slots=before.slots)
        elif after.keeps_matches:
            (slots,) = self.matches.keep([coming.predicates()], apply=True)
            after = replace(after, slots=slots)
        else:
            self.matches.release(before)
        if after.keeps_matches and not before.keeps_matches:
            with self._shared.defects.of(before.query_id):
                self.joins.add(before.query_id, coming.query, after.slots)
            self._advance_joins()
        elif before.keeps_matches and not after.keeps_matches:
            self.joins.remove(before.query_id, coming.query)
        (after,) = self._put([after], [coming])
        if after.keeps_matches:
            self.joins.postpone(after.query_id, coming.query, waits=after.is_only_asked)
        self._prefer([after])
        return after

    def unregister(self, query_id: str) -> None:
        """A query goes."""
        query = self.standing.pop(query_id)
        self._view = None
        self.modes.gone(query_id)
        self.promising.remove(query_id)
        self.eager.fell(query_id)
        if self._counts is not None:
            self._counts.forget(query_id)
        if query.keeps_matches:
            self.joins.remove(query_id, query.query)
        self.matches.release(query)
        if query.holds_rows:
            self.windows.count(query.like, -1)

    # --- what steps do ----------------------------------------------------------------------------

    def advance(self) -> None:
        """One of the sources took a step."""
        self._view = None
        with self._shared.watch.on(self.usage):
            self.eager.advance()
        if len(self.joins):
            self._advance_joins()
        self.follow_summaries()

    def follow_summaries(self) -> None:
        """Groups find what came, and let go of what a summary has no more that went on, also in a step of a
        source that is none of these.
        """
        if len(self.promising):
            self._view = None
            seen = self.now.seen()
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
        seen = self.now.seen()
        self.promising.begin_anew(seen.at, seen.now_ms)

    def _advance_joins(self) -> None:
        for name, slots in self.joins.awaited().items():
            self.sources[name].rows.owed.catch_up(slots)
        seen = self.now.seen()
        rows = {name: source.rows for name, source in seen.sources.items()}
        self.joins.advance(rows, {name: at.end for name, at in seen.at.items()}, seen.now_ms)

    def dropped(self, name: SourceName) -> None:
        """One of the sources let go of rows."""
        self._view = None
        self.eager.dropped()
        self.joins.drop_below(name, self.sources[name].rows.base)
        self.promising.drop_below(name)
        if self.sources[name].stream.is_table and len(self.joins):
            self._advance_joins()  # rows that stayed have other ordinals now

    def renumbered(self, name: SourceName) -> list[StandingQuery]:
        """The rows of one of the sources have other ordinals now or begin elsewhere, and the shared indexes
        know nothing of them: all that is kept is made anew. Returns the queries whose partial results are.

        O(retained rows), as when the queries came.
        """
        self._view = None
        self.joins.forget(name)
        if self._counts is not None:
            self._counts = RowCounts()
        anew = self.eager.renumbered()
        if len(self.promising):
            self.prefer_anew()
        self.advance()
        return [self.standing[query.query_id] for query in anew]

    def hold(self, name: SourceName) -> Hold:
        """What the queries need of one of the sources."""
        is_lone_stream = self._counts is not None
        seen_ms = self.sources[name].clock.now_ms if is_lone_stream else self.now.at[name].now_ms
        return self.windows.hold(name, seen_ms)

    def restored(self, errors: Mapping[str, Sequence[int]]) -> None:
        """The rows came back. errors: of each query's predicates, as saved."""
        self.advance()
        self.matches.restore_errors(self.standing, errors)

    # --- readers ----------------------------------------------------------------------------------

    def view(self) -> SetView:
        """The queries as they stand; the same object until something changes."""
        seen = self.now.seen()
        if self._view is None or self._view.sources is not seen.sources:
            found = self.promising.found()
            with self._shared.watch.on(self.usage):
                kept = self.eager.refresh()
            joins, asked = self._composites(), self.promising.on_demand.frozen()
            self._view = SetView(seen.sources, seen.now_ms, seen.at, joins, kept, self._counts, found, asked)
        return self._view

    def look_again(self) -> None:
        """What was made beside can be taken over."""
        self._view = None

    def _composites(self) -> JoinViews | None:
        return self.joins.view() if len(self.joins) else None

    @property
    def running(self) -> int:
        """How many of the standing queries are not paused. O(1)."""
        return len(self.standing) - len(self.modes.paused)

    def attributes(self) -> tuple[Attribute, ...]:
        """What can be read of this module."""
        return (
            Attribute("queries", len(self.standing), "standing queries over exactly these sources"),
            Attribute("now_ms", self.now.ms, "their NOW, ms since 1970"),
            *self.eager.attributes(),
        )

    def _check(self) -> None:
        seen = {name: source.rows for name, source in self.now.seen().sources.items()}
        self.joins._check(seen)
        self.eager._check()
        self.promising._check()
        assert self.modes.paused == {name for name, query in self.standing.items() if query.paused}
        self.matches._check(self.standing.values())

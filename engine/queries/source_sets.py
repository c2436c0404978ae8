"""All sets of sources that queries stand over: made with the first query of each, gone with the last."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from engine.eddy.eddy import Timer
from engine.joins.group import JoinGroup
from engine.joins.key_index import KeyIndex, KeyIndexes
from engine.language.query import Query
from engine.model.approximation import Approximation
from engine.model.capacities import USUAL, Capacities
from engine.model.defects import Defects
from engine.model.limits import Limits
from engine.model.source import SourceName
from engine.model.state_tree import Tree
from engine.model.step import Registration
from engine.model.summary import SummaryName
from engine.model.usage import Stopwatch
from engine.queries.planner import Planner
from engine.queries.promising import GroupNumbers
from engine.queries.put_off import PutOffs
from engine.queries.sets_by_source import SetsBySource
from engine.queries.source_set import SharedBySets, SourceSet
from engine.queries.swapped_set import SwappedSet, needs_rows
from engine.queries.upkeep import Upkeep
from engine.sources.source import Source
from engine.standing.query import SetKey, StandingQuery, set_key
from engine.views.set_view import SetView


class SourceSets:
    """``sources``: all there are, as they come and go. Sets share indexes of rows by the keys of joins."""

    def __init__(
        self,
        sources: Mapping[str, Source],
        limits: Limits,
        planner: Planner,
        timer: Timer | None,
        watch: Stopwatch | None = None,
        defects: Defects | None = None,
        capacities: Capacities = USUAL,
    ) -> None:
        """timer: measures what queries that come cost the rows that are there. watch, defects: those of the
        engine.
        """
        self._sources = sources
        self._indexes = KeyIndexes(capacities)
        self.group_numbers = GroupNumbers()
        self.put_offs = PutOffs(Upkeep(timer))
        self._shared = SharedBySets(
            limits,
            planner,
            timer,
            watch or Stopwatch(),
            Defects() if defects is None else defects,
            capacities,
            self._indexes,
            self.group_numbers,
            self.put_offs,
        )
        self._sets: dict[SetKey, SourceSet] = {}
        self.by_source = SetsBySource()
        self.swapped: dict[SetKey, SwappedSet] = {}
        """The sets that have queries which are swapped out."""

    def __iter__(self) -> Iterator[SourceSet]:
        return iter(self._sets.values())

    def preferring(self) -> list[SourceSet]:
        """Those with a query that has a preference and is not paused. O(these)."""
        return [self._sets[key] for key in self.group_numbers.over]

    def prefer_anew(self, summary: str) -> None:
        """A summary came, or went: groups that use it begin anew, or wait for it."""
        for over in self.preferring():
            if summary in over.promising.summaries():
                over.prefer_anew()

    def unfinished(self, standing: StandingQuery) -> Iterator[Approximation]:
        """A tag for a query with a preference of which something is left to be found, or was cut."""
        if standing.prefers:
            yield from self._sets[standing.set_key].promising.tags(standing)

    def keys(self) -> tuple[SetKey, ...]:
        """Returns the keys of the sets that there are."""
        return tuple(self._sets)

    def of(self, query: StandingQuery) -> SourceSet:
        """The set that a standing query is in."""
        return self._sets[query.set_key]

    def joined(self, key: SetKey) -> SourceSet:
        """The set over these sources, to register with."""
        over = self._sets.get(key)
        if over is None:
            over = self._sets[key] = self._new(key)
            self.by_source.add(key, over)
        return over

    def seen(self, key: SetKey) -> SourceSet:
        """The set over these sources, to look at: an empty one of nobody where there is none."""
        return self._sets.get(key) or self._new(key)

    def _new(self, key: SetKey) -> SourceSet:
        return SourceSet([self._sources[name] for name in key], self._shared)

    def unregister(self, query: StandingQuery) -> None:
        """A query goes, and its set with the last."""
        self._sets[query.set_key].unregister(query.query_id)
        self._forget_empty(query.set_key)

    def _forget_empty(self, key: SetKey) -> None:
        if not self._sets[key].standing and key not in self.swapped:
            del self._sets[key]
            self.by_source.remove(key)

    def swap(self, query: Query, registration: Registration, change: int) -> None:
        """A query that is standing, or about to stand, is swapped out, 1, or no more, -1: what its windows
        need is counted on. query: it, or one like it in everything but constants. O(its size).
        """
        key = set_key(query.sources)
        over, swapped = self.joined(key), self.swapped.get(key)
        if swapped is None:
            swapped = self.swapped[key] = SwappedSet(key)
        swapped.add(query, registration, change)
        if needs_rows(registration):
            over.windows.count(query, change)
        if not swapped.count:
            del self.swapped[key]
            self._forget_empty(key)

    def restore_swapped(self, key: SetKey, tree: Tree) -> None:
        """Queries over these sources were swapped out when the store was written. tree: of their
        :class:`engine.queries.swapped_set.SwappedSet`.
        """
        swapped = self.swapped[key] = SwappedSet(key)
        swapped.restore(tree)
        self.joined(key).windows.add(swapped.windows)

    def swapped_count(self) -> int:
        """How many queries are swapped out. O(sets that have some)."""
        return sum(one.count for one in self.swapped.values())

    def readers(self, name: SourceName) -> int:
        """How many queries read a source, also of those that are swapped out. O(sets that read it)."""
        swapped = (self.swapped[key].count for key in self.by_source.keys(name) if key in self.swapped)
        return self.by_source.queries(name) + sum(swapped)

    def swapped_readers(self, name: str) -> int:
        """How many queries that are swapped out read a source or a view. O(sets that have some)."""
        return sum(one.count if name in key else one.uses[name] for key, one in self.swapped.items())

    def advance(self, name: SourceName) -> None:
        """A source took a step."""
        reading = self.by_source.of(name)
        beside: dict[SetKey, SourceSet] = {}
        for touched in sorted({name, *(other for over in reading for other in over.sources)}):
            source = self._sources[touched]
            if source.summarised.at_work and self._advance_summaries(source):
                beside.update(
                    (key, self._sets[key]) for key in self.by_source.keys(touched) if name not in key
                )
        for over in reading:
            over.advance()
        for over in beside.values():
            over.follow_summaries()

    def _advance_summaries(self, source: Source) -> bool:
        """Summaries follow NOW of their source, but none passes NOW of a query that uses it. Returns whether
        one went on.
        """
        held_ms: dict[SummaryName, int | None] = {}
        for over in self.by_source.of(source.stream.name):
            for name in over.promising.summaries():
                held, now_ms = held_ms.get(name, source.clock.now_ms), over.now.ms
                held_ms[name] = None if held is None or now_ms is None else min(held, now_ms)
        return source.advance_summaries(held_ms)

    def replanted(self) -> Iterator[StandingQuery]:
        """Queries that are answered from other partial results than they were. O(sets)."""
        for over in self:
            yield from over.eager.replanted()

    def touched(self, name: SourceName) -> Collection[SourceName]:
        """The sources whose rows a step of one may be the last to have needed: it, and those it is joined
        with. O(sets that read it).
        """
        return {name, *(other for key in self.by_source.keys(name) for other in key)}

    def retain(self, names: Iterable[SourceName] | None) -> None:
        """At the end of a step that touched these, or any of all: they let go of rows that nobody needs.
        O(these, and sets that read them).
        """
        sources = self._sources.values() if names is None else [self._sources[name] for name in names]
        for source in sources:
            name = source.stream.name
            if source.retain(self.by_source.holds(name)):
                for over in self.by_source.of(name):
                    over.dropped(name)

    def renumbered(self, name: SourceName) -> list[StandingQuery]:
        """The rows of a source have other ordinals now, or begin elsewhere. Returns the queries that are
        answered from other partial results than before.
        """
        self._indexes.restart(name, self._sources[name].rows.base)
        return [query for over in self.by_source.of(name) for query in over.renumbered(name)]

    def views(self) -> dict[SetKey, SetView]:
        """Returns the views of all sets, by key."""
        return {key: over.view() for key, over in self._sets.items()}

    def views_over(self, names: Iterable[SourceName]) -> dict[SetKey, SetView]:
        """Returns the views of the sets that read one of these sources, by key."""
        return {key: over.view() for key, over in self.by_source.of_any(names).items()}

    def over(self, names: Iterable[SourceName]) -> Iterable[SourceSet]:
        """The sets that read one of these."""
        return self.by_source.of_any(names).values()

    def indexes(self) -> Iterator[KeyIndex]:
        """Those of rows by keys of joins."""
        return iter(self._indexes)

    @property
    def index_bytes(self) -> int:
        """Bytes of the indexes of rows by keys of joins."""
        return self._indexes.nbytes

    def groups(self) -> dict[str, JoinGroup]:
        """The joins of all sets, by what they join."""
        return {name: group for over in self for name, group in over.joins.named()}

    def _check(self, *, settled: bool) -> None:
        """settled: no source holds rows that nobody needs."""
        self.by_source._check(self._sets)
        for source in self._sources.values() if settled else ():
            before = source.view()
            assert not source.retain(self.by_source.holds(source.stream.name))
            assert source.view() is before

"""What of answers is not exact, kept up as rows are shed, break promises or are found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from engine.model.approximation import Approximation
from engine.model.defects import Defects
from engine.model.source import SourceName
from engine.model.step import Violations
from engine.queries.approximations import Approximations, allotments, declared_samples, sketches
from engine.queries.shed_readers import ShedReaders
from engine.queries.source_sets import SourceSets
from engine.queries.touched import relying, touched_by
from engine.sources.enforcement import Enforcement
from engine.sources.source import Source
from engine.standing.queries import StandingQueries
from engine.standing.query import StandingQuery


class Tags:
    """``approximations``: by query. ``shed``: which queries lack rows that were shed."""

    def __init__(
        self,
        sources: Mapping[str, Source],
        sets: SourceSets,
        queries: StandingQueries,
        defects: Defects,
    ) -> None:
        """The engine's."""
        self._sources = sources
        self._sets = sets
        self._queries = queries
        self._defects = defects
        self.shed = ShedReaders(sources)
        tellers = (
            declared_samples,
            sketches,
            allotments,
            self._broken_promises,
            self.shed.tags,
            sets.unfinished,
        )
        self.approximations = Approximations(tellers)

    def tag(self, standing: StandingQuery) -> None:
        """A query stands, or is another now: say what of its answer is not exact."""
        self.shed.came(standing)
        with self._defects.of(standing.query_id):
            self.approximations.look(standing)

    def tag_again(self, name: SourceName) -> None:
        """Renew the tags of queries that lack more or less of a source by what was shed."""
        for query_id in self.shed.moved(name):
            with self._defects.of(query_id):
                self.approximations.look(self._queries[query_id])

    def tag_finds(self) -> None:
        """Renew the tags of queries with a preference for which something was found, or is left, since the
        last time. O(queries of groups that moved).
        """
        for over in self._sets.preferring():
            if over.promising.moved:
                over.promising.moved = False
                for query_id, tags in over.promising.all_tags():
                    self.approximations.found(query_id, tags)

    def promises_of(self, standing: StandingQuery) -> Iterator[tuple[Enforcement, int | None]]:
        """The constraints of a query's sources, where a source has some, each with the instant from which the
        source retains its rows.
        """
        for name in standing.sources:
            source = self._sources.get(name)
            if source is not None and source.promises is not None:
                yield source.promises, source.retained_from_ms

    def _broken_promises(self, standing: StandingQuery) -> Iterator[Approximation]:
        """A tag for each source of which rows broke a promise, since then."""
        for promises, _ in self.promises_of(standing):
            yield from promises.violations.tags(standing.query_id, standing.sources)

    def look_at_readers(self, name: SourceName, violations: Iterable[Violations]) -> None:
        """Rows of a source broke a promise: queries that lack them get tags, or tags with another amount.
        O(queries over the source).
        """
        source = self._sources[name]
        assert source.promises is not None
        promises = source.promises.violations
        standing = [one for over in self._sets.over([name]) for one in over.standing.values()]
        is_to_tell, before = promises.is_to_tell(), promises.touched.copy()
        for broken in violations:
            if broken.withheld or broken.again:
                concerned = standing if broken.withheld else relying(standing, name)
                promises.touched.update(touched_by(concerned, name, source.matches.satisfied_by(broken.rows)))
        for one in standing:
            if is_to_tell or (one.query_id in promises.touched and one.query_id not in before):
                with self._defects.of(one.query_id):
                    self.approximations.look(one)

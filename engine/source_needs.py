"""What standing queries need of their sources, for whoever makes steps."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from engine.model.constraint import ManyOne, References
from engine.model.source import SourceName, Stream
from engine.parts import Parts
from engine.queries.demand import Demand, demand_of
from engine.queries.shed_readers import NOTHING_TO_SHED, Sheddable
from engine.sources.backfill import Wanted, wanted
from engine.sources.retention import needed
from engine.standing.query import SetKey


class SourceNeeds:
    """One owner, as the engine. Each raises StepOutOfOrder: there is no such source."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._sets = parts.sets
        self._preferring: tuple[SourceName, ...] | None = None
        self._demands: dict[SourceName, Demand] = {}
        self._sheddable: dict[SourceName, Sheddable] = {}

    def outdate(self) -> None:
        """There may be other queries now, or other sources."""
        self._demands.clear()
        self._sheddable.clear()
        self._preferring = None

    def raised_by(self, source: SourceName, below: Mapping[int, int]) -> frozenset[int]:
        """The partitions of a stream whose watermark a heartbeat would raise; as the step has ``below``."""
        return self._parts.source(source).clock.raised_by(below)

    def joined_with(self, source: SourceName) -> Iterable[SetKey]:
        """The sets of several sources, this among them, that queries stand over. O(sets that have it)."""
        return [key for key in self._sets.by_source.keys(source) if len(key) > 1]

    def clock(self, source: SourceName) -> bool:
        """Whether an answer over this source may change as NOW moves on, and no record comes: rows wait for
        it, or windows move with it. O(sets of sources that have it).
        """
        return bool(len(self._parts.source(source).pending)) or self._sets.by_source.follow_now(source)

    def demand(self, source: str) -> Demand:
        """What the queries over a source ask of the order of work. O(these queries) after a registration,
        else O(1).
        """
        name = self._parts.source(source).stream.name
        demand = self._demands.get(name)
        if demand is None:
            sets = [self._sets.seen(key) for key in self._sets.by_source.keys(name)]
            demand = self._demands[name] = demand_of(
                query for over in sets for query in over.standing.values()
            )
        return demand

    def sheddable(self, source: str) -> Sheddable:
        """What may be shed of a source. O(queries that allow it) after a registration, else O(1)."""
        of = self._parts.source(source)
        if of.sheds.is_full:
            return NOTHING_TO_SHED
        name = of.stream.name
        found = self._sheddable.get(name)
        if found is None:
            found = self._parts.tags.shed.sheddable(name, self._sets.readers(name))
            if self._is_counted(of.stream):
                found = replace(found, is_seen=True)
            self._sheddable[name] = found
        return found

    def _is_counted(self, stream: Stream) -> bool:
        """Whether a promise speaks of rows of a stream: only all of them tell if it holds."""
        return bool(stream.constraints) or any(
            isinstance(one, ManyOne | References) and one.target == stream.name
            for other in self._parts.sources.values()
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

    def history(self, source: str) -> Wanted | None:
        """What standing queries would like of a stream's history; None where it takes none. O(sets of
        sources that read it).
        """
        of = self._parts.source(source)
        return wanted(of.boundary_ms, of.rows.rows(), self._sets.by_source.holds(of.stream.name))

    def rows(self, source: str) -> tuple[int, int] | None:
        """What retention and standing queries need of a stream's rows: (those from this instant on, and so
        many of the last); None: all there are. O(sets of sources that read it).
        """
        of = self._parts.source(source)
        return needed(self._sets.by_source.holds(of.stream.name), of.clock.now_ms, of.stream.retain_ms)

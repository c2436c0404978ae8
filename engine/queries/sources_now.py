"""A set of sources at NOW of the queries over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.changes.marks import Mark
from engine.changes.transition import SourceTransition, Transition
from engine.model.limits import Limits
from engine.model.source import SourceName
from engine.operators.scan import ScanAt
from engine.queries.copies import copies_by
from engine.queries.plan_inputs import SourcesAt
from engine.queries.planner import Setting
from engine.queries.statistics import statistics_of
from engine.sources.source import Source
from engine.sources.source_view import SourceView, now_of, sources_at

NOTHING_SHED: Mapping[SourceName, float] = {}


@dataclass(frozen=True, slots=True)
class SeenSources:
    """The sources, NOW of the queries, and how the sources are seen at it."""

    sources: Mapping[SourceName, SourceView]
    now_ms: int | None
    at: Mapping[SourceName, ScanAt]


class SourcesNow:
    """One owner, as the engine."""

    def __init__(self, sources: Mapping[SourceName, Source], limits: Limits) -> None:
        self._sources = sources
        self._limits = limits
        self._last: SeenSources | None = None
        self._mark: Mark | None = None
        """Where they stood as they were seen last."""

    def seen(self) -> SeenSources:
        """The sources as they stand; the same object until one of them changes."""
        known = self._last
        if known is not None:
            seen = known.sources
            for name, source in self._sources.items():
                if source.view() is not seen[name]:
                    break
            else:
                return known
        sources = {name: source.view() for name, source in self._sources.items()}
        now_ms = now_of(sources.values())
        self._last, self._mark = SeenSources(sources, now_ms, sources_at(sources, now_ms)), None
        return self._last

    @property
    def ms(self) -> int | None:
        """NOW of the queries."""
        return self.seen().now_ms

    @property
    def at(self) -> Mapping[SourceName, ScanAt]:
        """How the sources are seen at NOW of the queries."""
        return self.seen().at

    def mark(self) -> Mark:
        """Where the sources stand; the same object until one of them changes."""
        seen = self.seen()
        if self._mark is None:
            self._mark = Mark(
                seen.now_ms,
                {name: at.now_ms for name, at in seen.at.items()},
                {name: source.retained_from_ms for name, source in seen.sources.items()},
            )
        return self._mark

    def at_rest(self) -> Transition | None:
        """A transition of no time at NOW; None where there is no NOW."""
        seen = self.seen()
        if seen.now_ms is None:
            return None
        by_source = {
            name: SourceTransition(at, moves=not self._sources[name].stream.is_table)
            for name, at in seen.at.items()
        }
        return Transition(seen.now_ms, seen.now_ms, by_source)

    def setting(self) -> Setting:
        """What the maintenance of queries is chosen by."""
        return Setting({name: source.meter for name, source in self._sources.items()}, self.at)

    def estimates(self, shed: Mapping[SourceName, float] = NOTHING_SHED) -> SourcesAt:
        """The sources as they stand, to estimate by. shed: the share of rows due, missed as late rows
        are. O(sources).
        """
        seen = self.seen()
        late = {
            name: 1.0 - (1.0 - source.late_share) * (1.0 - shed.get(name, 0.0))
            for name, source in self._sources.items()
        }
        tables = [name for name, source in self._sources.items() if source.stream.is_table]
        known = statistics_of(self._sources)
        return SourcesAt(seen.sources, seen.at, late, self._limits, copies_by(lambda: known, tables))

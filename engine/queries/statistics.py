"""What the cost model knows of sources: their meters, and a look at some of their rows.

Before a source's meter has a full period its rate is that of the rows it retains, by their timestamps; before
there are rows all sources are taken to be alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from engine.dataflow.cost.statistics import Statistics, ValueSample
from engine.language.query import Scan
from engine.model.source import SourceName
from engine.operators.gather import rows_at
from engine.operators.places import Places
from engine.operators.scan import is_range
from engine.operators.table_scan import scan_now
from engine.sources.source import Source
from engine.windows.clauses import RowWindow, TimeWindow

SAMPLED_ROWS = 4_096
"""So many rows of a window tell how many a predicate accepts, and of what values."""
ROWS_AT_FIRST_PER_S = 1_000.0
STEPS_AT_FIRST_PER_S = 10.0


def statistics_of(sources: Mapping[SourceName, Source]) -> Statistics:
    """Returns the statistics of these sources, as they stand. Each sample is taken once, on first use."""
    looks = {name: _Look(source) for name, source in sources.items()}
    return Statistics(
        rows_per_s={name: look.rows_per_s for name, look in looks.items()},
        steps_per_s={name: look.steps_per_s for name, look in looks.items()},
        widths={name: look.width for name, look in looks.items()},
        held=lambda scan: looks[scan.source].held(scan),
        window=lambda scan: looks[scan.source].window(scan),
        sample=lambda scan, places: looks[scan.source].sample(scan, places),
    )


class _Look:
    """At one source."""

    def __init__(self, source: Source) -> None:
        view = source.view()
        self._at = scan_now(view.rows, view.now_ms, view.retained_from_ms)
        self._samples: dict[tuple[Scan, tuple[int, ...]], ValueSample | None] = {}
        self._accepted: dict[Scan, float] = {}
        rows, meter = view.rows, source.meter
        self.width = len(source.stream.schema)
        self._is_empty = self._at.end <= rows.base
        if meter.known:
            self.rows_per_s, self.steps_per_s = meter.rows_per_s, meter.steps_per_s
        elif self._is_empty:
            self.rows_per_s, self.steps_per_s = ROWS_AT_FIRST_PER_S, STEPS_AT_FIRST_PER_S
        else:
            self.rows_per_s = self._by_timestamps()
            self.steps_per_s = min(STEPS_AT_FIRST_PER_S, self.rows_per_s)

    def _by_timestamps(self) -> float:
        """The rate of the last rows."""
        places = self._at.matching(None, max(self._at.rows.base, self._at.end - SAMPLED_ROWS), self._at.end)
        if not places or self._at.now_ms is None:
            return 0.0
        part, where = places[0]
        passed_ms = self._at.now_ms - int(part.timestamp[where[0]]) + 1
        return 1_000 * _count(places) / max(1, passed_ms)

    def window(self, scan: Scan) -> float:
        """How many rows its window holds."""
        if self._is_empty:
            return self._expected(scan)
        if is_range(scan):
            window = self._at.window(scan)
            return float(self._at.count(None, window.start, window.stop))
        return float(self._at.end - self._at.rows.base)

    def held(self, scan: Scan) -> float:
        """Those of them that its predicate accepts, by the share of those looked at that it does."""
        window = self.window(scan)
        if scan.predicate is None or self._is_empty:
            return window
        share = self._accepted.get(scan)
        if share is None:
            looked_at, accepted = self._looked_at(scan)
            share = self._accepted[scan] = _count(accepted) / max(1, looked_at)
        return window * share

    def _expected(self, scan: Scan) -> float:
        window = scan.window
        if isinstance(window, RowWindow):
            return float(window.rows)
        assert isinstance(window, TimeWindow)
        if window.begin is None or not window.begin.relative:
            return self.rows_per_s
        return self.rows_per_s * max(1, -window.begin.ms) / 1_000

    def sample(self, scan: Scan, places: tuple[int, ...]) -> ValueSample | None:
        """Values of some columns; None where there are no rows, or no such columns."""
        if (scan, places) not in self._samples:
            self._samples[scan, places] = self._sampled(scan, places)
        return self._samples[scan, places]

    def _sampled(self, scan: Scan, places: tuple[int, ...]) -> ValueSample | None:
        if self._is_empty or any(place >= self.width for place in places):
            return None
        relation = rows_at(self._at.rows.schema, self._looked_at(scan)[1])
        columns = [relation.columns[place].to_arrow().to_pylist() for place in places]
        counts = Counter(hash(values) for values in zip(*map(_hashable, columns), strict=True))
        return ValueSample(len(relation), counts)

    def _looked_at(self, scan: Scan) -> tuple[int, Places]:
        """How many rows of a window, evenly spread, were looked at, and those that the scan gives."""
        start, stop = self._at.rows.base, self._at.end
        if is_range(scan):
            window = self._at.window(scan)
            start, stop = window.start, window.stop
        every = max(1, -(-(stop - start) // SAMPLED_ROWS))
        spread = [
            (part, np.arange(first + (start - first - part.first) % every, last, every))
            for part, first, last in self._at.rows.ranges(start, stop)
        ]
        spread = [(part, where) for part, where in spread if len(where)]
        if scan.predicate is None:
            return _count(spread), spread
        return _count(spread), self._at.satisfying(scan.predicate, spread)


def _count(places: Places) -> int:
    return sum(len(where) for _, where in places)


def _hashable(values: list[object]) -> list[object]:
    return [tuple(value) if isinstance(value, list) else value for value in values]

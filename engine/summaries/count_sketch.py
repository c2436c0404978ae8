"""Count sketches: t rows of b counters, each value counted up or down in one counter of each row.

An estimate is the median of t numbers, each with variance at most F2 / b, where F2 is the sum of the squared
frequencies of the cell. Source: Charikar, Chen, Farach-Colton (ICALP 2002).
"""

from __future__ import annotations

import numpy as np

from engine.kernels import sketches
from engine.kernels.sketches import REFERENCE, ROWS
from engine.model.batch import Int32Array, Int64Array
from engine.summaries.summary_type import Cells, Places, Tally, ValueKeys

ROWS_MAX = 2**31 - 1
"""Of a zone: no counter of it is beyond its rows, so none overflows."""


class CountSketch:
    """The count sketch as a :class:`SummaryType`."""

    def __init__(self, depth: int, width: int) -> None:
        self.depth = depth
        self.size = depth * width
        self._width = width

    def places(self, keys: ValueKeys) -> Int32Array:
        found = np.empty((len(keys.hash), self.depth), np.int32)
        sketches.sketch_places(keys.hash, self._width, found)
        return found

    def summarize(
        self, cells: Cells, tally: Tally, places: Places, rows: slice, theta: float, rows_min: int
    ) -> int:
        if tally.progress[ROWS] + (rows.stop - rows.start) > ROWS_MAX:
            raise OverflowError("a zone has more rows than a counter counts")
        counters, counts = cells.counters[0], cells.rows[0]
        args = (places.counters, places.bucket, rows.start, rows.stop, theta, rows_min)
        return int(sketches.summarise(counters, counts, tally.squares, tally.progress, *args))

    def estimate(self, cells: Cells, places: Places, slots: Int64Array) -> Int32Array:
        found = np.empty((len(places.bucket), len(slots)), np.int32)
        sketches.estimates(
            cells.counters, cells.rows, places.counters, places.bucket, places.share, slots, found
        )
        return found

    def confidence(self, tally: Tally, rows_min: int) -> float:
        return confidence(tally, rows_min)

    def add(self, one: Cells, other: Cells) -> None:
        add(one, other)

    def subtract(self, one: Cells, other: Cells) -> None:
        subtract(one, other)


def confidence(tally: Tally, rows_min: int) -> float:
    """min(v / v0, v0 / v), as :func:`engine.kernels.sketches.summarise` goes by it."""
    rows, reference = float(tally.progress[ROWS]), float(tally.progress[REFERENCE])
    if reference < 0:
        return 1.0
    middle = np.sort(tally.squares)
    median = int(middle[(len(middle) - 1) // 2] + middle[len(middle) // 2]) // 2
    v = max((median - rows) / (rows * (rows - 1)), 1 / rows_min)
    return min(v / reference, reference / v)


def add(one: Cells, other: Cells) -> None:
    """Counters are sums over rows: those of both together are the sum."""
    if int((one.rows.astype(np.int64) + other.rows).max(initial=0)) > ROWS_MAX:
        raise OverflowError("a cell has more rows than a counter counts")
    np.add(one.counters, other.counters, out=one.counters)
    np.add(one.rows, other.rows, out=one.rows)


def subtract(one: Cells, other: Cells) -> None:
    """The inverse of :func:`add`."""
    np.subtract(one.counters, other.counters, out=one.counters)
    np.subtract(one.rows, other.rows, out=one.rows)

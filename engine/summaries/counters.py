"""Techniques whose cells are counters: Summarize, Estimate, Confidence, Add and Subtract over them.

Techniques differ in which counters a value meets, and whether it counts up or down there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from engine.kernels import descents, sketches
from engine.kernels.descents import STACK, CandidateRoom, DescentRoom, Forest
from engine.kernels.sketches import LIKENESS, REFERENCE, ROWS, ROWS_MAX, ZoneTally
from engine.model.batch import Int32Array, Int64Array
from engine.summaries.layouts import Layout
from engine.summaries.summary_type import Places, ValueKeys, ZoneCells

PIECE = 1_024
"""Rows that are compared with those of the zone before them."""


class Counters(ABC):
    """A :class:`SummaryType` whose estimates are medians over the counters that a value meets."""

    def __init__(self, depth: int, width: int) -> None:
        """depth: counters that a value meets, t; width: counters in a row, b."""
        self.depth = depth
        self.width = width

    @property
    def size(self) -> int:
        """Counters of a cell."""
        return self.depth * self.width

    @abstractmethod
    def places(self, keys: ValueKeys, bucket: Int32Array, layout: Layout) -> Places:
        """Where values are counted, whose buckets in the layout are these."""

    def summarize(
        self, cells: ZoneCells, tally: ZoneTally, places: Places, rows: slice, theta: float, rows_min: int
    ) -> int:
        """Enter rows one by one until the confidence falls below theta. O(t) a row."""
        _check_room(tally, rows)
        into = (cells.counters[0], cells.rows[0], tally)
        of_rows = (places.counters, places.bucket, (rows.start, rows.stop))
        scratch = np.empty(self.depth, np.int64)
        return int(sketches.summarise(*into, *of_rows, theta, rows_min, PIECE, scratch))

    def summarize_keys(
        self,
        cells: ZoneCells,
        tally: ZoneTally,
        keys: ValueKeys,
        layout: Layout,
        rows: slice,
        theta: float,
        rows_min: int,
    ) -> int:
        """Enter rows as :meth:`summarize` does, where nobody else needs the places of their values."""
        some = keys.part(rows)
        places = self.places(some, some.bucket, layout)
        ended = self.summarize(cells, tally, places, slice(0, len(some.hash)), theta, rows_min)
        return ended if ended < 0 else rows.start + ended

    def estimate(self, cells: ZoneCells, places: Places, slots: Int64Array) -> Int32Array:
        """int32[n, slots]. O(n slots t)."""
        found = np.empty((len(places.bucket), len(slots)), np.int32)
        sketches.estimates(*cells, *places, slots, np.empty(self.depth, np.int64), found)
        return found

    def search(self, cells: ZoneCells, places: Places, forest: Forest, out: CandidateRoom) -> int:
        """Estimates by way of upper cells."""
        scratch = DescentRoom(np.empty(self.depth, np.int64), np.empty(STACK, np.int64))
        return int(descents.descend(*cells, *places, forest, out, scratch))

    def confidence(self, tally: ZoneTally, rows_min: int) -> float:
        """The less of min(v / v0, v0 / v) and the likeness of the last piece, as
        :func:`engine.kernels.sketches.summarise` goes by them.
        """
        rows, reference = float(tally.progress[ROWS]), float(tally.progress[REFERENCE])
        if reference < 0:
            return 1.0
        middle: list[int] = sorted(tally.squares.tolist())
        median = (middle[(len(middle) - 1) // 2] + middle[len(middle) // 2]) // 2
        v = max((median - rows) / (rows * (rows - 1)), 1 / rows_min)
        return min(v / reference, reference / v, float(tally.progress[LIKENESS]))

    def add(self, one: ZoneCells, other: ZoneCells, shift: int = 0) -> None:
        """Counters are sums over rows: those of both together are the sum."""
        if not sketches.fold(one.counters[0], one.rows[0], other.counters[0], other.rows[0], shift, 1):
            raise OverflowError("cells have more rows than a counter counts")

    def subtract(self, one: ZoneCells, other: ZoneCells, shift: int = 0) -> None:
        """The inverse of add."""
        sketches.fold(one.counters[0], one.rows[0], other.counters[0], other.rows[0], shift, -1)


class CountSketch(Counters):
    """The count sketch: a value is counted up or down in one counter of each of t rows, by its hash.

    An estimate is the median of t numbers, each with variance at most F2 / b, where F2 is the sum of the
    squared frequencies of the cell. Source: Charikar, Chen, Farach-Colton (ICALP 2002).
    """

    def places(self, keys: ValueKeys, bucket: Int32Array, layout: Layout) -> Places:
        found = np.empty((len(keys.hash), self.depth), np.int32)
        sketches.sketch_places(keys.hash, self.width, found)
        return Places(found, bucket, np.ones(len(bucket), np.int32))

    def summarize_keys(
        self,
        cells: ZoneCells,
        tally: ZoneTally,
        keys: ValueKeys,
        layout: Layout,
        rows: slice,
        theta: float,
        rows_min: int,
    ) -> int:
        _check_room(tally, rows)
        into = (cells.counters[0], cells.rows[0], tally)
        of_rows = (keys.hash, keys.bucket, (rows.start, rows.stop))
        room = (np.empty((PIECE, self.depth), np.int32), np.empty(self.depth, np.int64))
        return int(sketches.summarise_hashes(*into, *of_rows, theta, rows_min, *room))


def _check_room(tally: ZoneTally, rows: slice) -> None:
    if tally.progress[ROWS] + (rows.stop - rows.start) > ROWS_MAX:
        raise OverflowError("a zone has more rows than a counter counts")


class Histogram(Counters):
    """The equi-width histogram: b intervals between the least and the largest value of the first T1 of rows.

    The rows of an interval are taken to be spread evenly over the distinct values that it had then; the
    estimate of a value is its share of them. So a histogram tells how many rows a range of values has, and of
    a single value only what it would be if all were as frequent. Before the range is known the intervals are
    of hashes. One row of counters in which nothing counts down: the confidence is told by the same formula.
    """

    def __init__(self, width: int) -> None:
        super().__init__(1, width)

    def places(self, keys: ValueKeys, bucket: Int32Array, layout: Layout) -> Places:
        interval = layout.interval_of(keys.hash, keys.position, self.width)
        share = np.ones(len(bucket), np.int32)
        if layout.distinct is not None:
            there = bucket < layout.buckets
            share[there] = np.maximum(layout.distinct[bucket[there], interval[there]], 1)
        return Places(2 * interval[:, None], bucket, share)

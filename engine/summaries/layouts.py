"""Layouts: which bucket a value is in, and which interval of a histogram.

By hash, a layout is the same for all summaries. One that follows the order of values is learned from the rows
of the first T1, up to the next multiple of T1, and then stays: cut points that part these rows evenly, and
for histograms the least and the largest value and how many distinct ones each interval had. Until then, and
for the zones of that time for good, the layout is by hash; cells of the two are never joined. Of more than
SAMPLE_MAX rows every second, fourth, eighth, ... is learned from, so what is learned is a function of rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.kernels import sketches
from engine.model.batch import BoolArray, Int32Array
from engine.summaries.summary_type import Float64Array, HashArray

SAMPLE_MAX = 65_536

_NO_NUMBERS: Float64Array = np.empty(0)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where values are counted."""

    buckets: int
    # float64[buckets - 1], ascending: a value is in bucket i where i of them are at or below it.
    # None: values are in buckets by hash.
    cuts: Float64Array | None = None
    # The least and the largest value of a histogram; None: intervals are by hash.
    range: tuple[float, float] | None = None
    # int32[buckets, intervals], distinct values of each; None: not known.
    distinct: Int32Array | None = None

    def bucket_of(self, hashes: HashArray, positions: Float64Array) -> Int32Array:
        """int32[n]."""
        if self.cuts is not None:
            return self.cuts.searchsorted(positions, side="right").astype(np.int32)
        found = np.empty(len(hashes), np.int32)
        sketches.hash_buckets(hashes, self.buckets, found)
        return found

    def interval_of(self, hashes: HashArray, positions: Float64Array, intervals: int) -> Int32Array:
        """int32[n]: of so many intervals of equal width; values beyond the range are in the first or last."""
        if self.range is None:
            # Another part of the hash than the one that gives the bucket.
            return ((hashes & np.uint64(0xFFFFFFFF)) * np.uint64(intervals) >> np.uint64(32)).astype(np.int32)
        low, high = self.range
        with np.errstate(invalid="ignore", over="ignore"):
            place = np.nan_to_num(
                (positions - low) / (high - low) * intervals if high > low else positions * 0
            )
        return np.clip(place, 0, intervals - 1).astype(np.int32)


class Learning:
    """The rows that a layout is learned from: state, and what comes of it."""

    def __init__(self, granularity_ms: int) -> None:
        self._t1 = granularity_ms
        # The first instant whose rows are not learned from; None before the first row.
        self.until_ms: int | None = None
        # Rows with a value that came.
        self.seen = 0
        self.stride = 1
        self.positions: Float64Array = _NO_NUMBERS
        self.hashes: HashArray = np.empty(0, np.uint64)

    def end_of(self, timestamp_ms: int) -> int:
        """``until_ms`` where the first row, or the first after a time without values, has this timestamp."""
        return -(-(timestamp_ms + self._t1) // self._t1) * self._t1

    def take(self, positions: Float64Array, hashes: HashArray, there: BoolArray) -> None:
        """Rows come; there: bool[n], which have a value. O(n)."""
        positions, hashes = positions[there], hashes[there]
        phase = -self.seen % self.stride
        self.seen += len(positions)
        self.positions = np.concatenate([self.positions, positions[phase :: self.stride]])
        self.hashes = np.concatenate([self.hashes, hashes[phase :: self.stride]])
        while len(self.positions) > SAMPLE_MAX:
            self.stride *= 2
            self.positions, self.hashes = self.positions[::2].copy(), self.hashes[::2].copy()

    def learned(self, buckets: int, *, is_range: bool, intervals: int) -> Layout:
        """The layout for the rows that follow. intervals: of a histogram; 0: none. Some row was seen."""
        values = np.sort(self.positions)
        n = len(values)
        cuts = values[np.arange(1, buckets) * n // buckets] if is_range else None
        if not intervals:
            return Layout(buckets, cuts)
        finite = values[np.isfinite(values)]
        range_ = (float(finite[0]), float(finite[-1])) if len(finite) else (0.0, 0.0)
        layout = Layout(buckets, cuts, range_)
        hashes, first = np.unique(self.hashes, return_index=True)
        positions = self.positions[first]
        bucket = layout.bucket_of(hashes, positions).astype(np.int64)
        interval = layout.interval_of(hashes, positions, intervals)
        counted = np.bincount(bucket * intervals + interval, minlength=buckets * intervals)
        distinct = counted.reshape(buckets, intervals).astype(np.int32)
        return Layout(buckets, cuts, range_, distinct)

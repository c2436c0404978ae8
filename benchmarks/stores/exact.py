"""The exact output of the join, counted: what there would be with time enough.

Each row meets the earlier rows of the other store with its item that are a window older at most. Counted in
O(1) a row, with numpy's or numba's arrays alone and nothing of the engine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.stores.sales import FloatArray, IntArray, Sales
from engine.kernels.compiled import kernel

EVER = 1 << 60
"""A window of all rows so far, ms."""


@dataclass(frozen=True, slots=True)
class Output:
    """An output of the join, as the measures want it.

    by_item: int64[items], pairs of each item. distance_s: of the two timestamps of a pair, on average.
    visits: rows that were looked at. rows: input rows. compared: pairs of rows in the window, equal or not;
    of the exact output alone.
    """

    by_item: IntArray
    distance_s: float
    visits: int
    rows: int
    compared: int = 0

    @property
    def pairs(self) -> int:
        """How many there are."""
        return int(self.by_item.sum())

    @property
    def per_row(self) -> float:
        """Output tuples per input tuple."""
        return self.pairs / max(1, self.rows)


def exact(sales: Sales, window_ms: int) -> Output:
    """Count the whole output."""
    by_item = np.zeros(sales.items, np.int64)
    distance, compared = _count(sales.timestamp, sales.store, sales.item, window_ms, by_item)
    pairs = int(by_item.sum())
    return Output(by_item, distance / max(1, pairs) / 1_000, pairs, len(sales), compared)


@kernel
def _count(
    ts: IntArray, store: IntArray, item: IntArray, window_ms: int, by_item: IntArray
) -> tuple[float, int]:
    counts = np.zeros((2, len(by_item)), np.int64)
    sums = np.zeros((2, len(by_item)), np.int64)
    there = np.zeros(2, np.int64)
    oldest = 0
    distance = 0.0
    compared = 0
    for row in range(len(ts)):
        while ts[oldest] < ts[row] - window_ms:
            counts[store[oldest], item[oldest]] -= 1
            sums[store[oldest], item[oldest]] -= ts[oldest]
            there[store[oldest]] -= 1
            oldest += 1
        other, what = 1 - store[row], item[row]
        met = counts[other, what]
        by_item[what] += met
        distance += met * ts[row] - sums[other, what]
        compared += there[other]
        counts[store[row], what] += 1
        sums[store[row], what] += ts[row]
        there[store[row]] += 1
    return distance, compared


def output_of(sales: Sales, first: IntArray, second: IntArray, visits: int) -> Output:
    """An output given as pairs: int64[pairs] each, places of rows in ``sales``. Raises RuntimeError for a
    pair that is none: other items, or one store.
    """
    if np.any(sales.item[first] != sales.item[second]) or np.any(sales.store[first] == sales.store[second]):
        raise RuntimeError("a pair that was found is no pair of the exact output")
    apart: FloatArray = np.abs(sales.timestamp[first] - sales.timestamp[second]) / 1_000
    by_item = np.bincount(sales.item[first], minlength=sales.items)
    return Output(by_item, float(apart.mean()) if len(apart) else 0.0, visits, len(sales))

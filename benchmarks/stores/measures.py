"""How good an output is, measured against the exact one.

Source: section 5.2 of the paper. Shares are told in percent, and the error of a histogram in squared
percent, since the paper's axis, 0 to 40, fits these.
"""

from __future__ import annotations

import numpy as np

from benchmarks.stores.exact import Output
from benchmarks.stores.sales import FloatArray, IntArray

INTERVALS = 100
RARE = 0.05


def pct_of_exact(found: Output, exact: Output) -> float:
    """How much of the exact output there is."""
    return 100 * found.pairs / max(1, exact.pairs)


def hist_mse(found: Output, exact: Output) -> float:
    """Hist-MSE: the sum over 100 intervals of item ids, equally wide, of the squared difference of shares."""
    return float(((_shares(exact) - _shares(found)) ** 2).sum())


def pct_outliers(found: Output, exact: Output) -> float:
    """The share of tuples found whose item is rare: its count in the exact output is within the lowest 5% of
    the exact output tuples.
    """
    return 100 * float(found.by_item[outliers(exact.by_item)].sum()) / max(1, found.pairs)


def outliers(by_item: IntArray) -> IntArray:
    """The items whose count is at most that of the tuple at the lowest 5%."""
    there = np.flatnonzero(by_item)
    if not len(there):
        return there
    order = there[np.argsort(by_item[there], kind="stable")]
    upto = np.cumsum(by_item[order])
    last = by_item[order[np.searchsorted(upto, RARE * upto[-1])]]
    rare: IntArray = there[by_item[there] <= last]
    return rare


def _shares(output: Output) -> FloatArray:
    """float64[INTERVALS]: the histogram of an output by item, in percent."""
    items = len(output.by_item)
    interval = np.arange(items) * INTERVALS // items
    heights = np.bincount(interval, output.by_item.astype(np.float64), INTERVALS)
    return 100 * heights / max(1, output.pairs)

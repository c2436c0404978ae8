"""Selections over one store, and SIMPLE selection, which feeds the stream to each query apart.

A selection is an interval of item ids that takes 5% to 10% of the rows, uniformly distributed. SIMPLE gives
the time to the queries in turn, an evaluation each: a query looks at its next row, and passes over those that
have waited for 10 s.

The aggregates of a query are over the rows of the last minute that it has seen, at each second.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.stores.costs import PAPER
from benchmarks.stores.sales import FloatArray, IntArray, Sales
from engine.kernels.compiled import kernel

SHARE = 0.05, 0.10
QUEUED = 10_000.0
"""Units for which a row waits for a query, as for PT, where it is the granularity."""
NEAR = 0.004
"""How far the share of an interval may be from the one that was drawn."""

BoolMatrix = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Intervals:
    """Queries: lo <= item < hi. lo, hi: int64[queries]."""

    lo: IntArray
    hi: IntArray

    def __len__(self) -> int:
        return len(self.lo)

    def wants(self, sales: Sales) -> BoolMatrix:
        """bool[queries, rows]: which rows are in the exact answers."""
        item = sales.item[None, :]
        wanted: BoolMatrix = (self.lo[:, None] <= item) & (item < self.hi[:, None])
        return wanted


def draw_intervals(seed: int, sales: Sales, queries: int) -> Intervals:
    """Intervals whose shares of these rows are uniform over 5% to 10%."""
    rng = np.random.default_rng((seed, queries))
    upto = np.concatenate([[0], np.cumsum(np.bincount(sales.item, minlength=sales.items))]) / len(sales)
    lo, hi = np.empty(queries, np.int64), np.empty(queries, np.int64)
    for query in range(queries):
        share, near = rng.uniform(*SHARE), NEAR
        while True:
            start = int(rng.integers(sales.items))
            end = int(np.searchsorted(upto, upto[start] + share))
            if end <= sales.items and abs(upto[end] - upto[start] - share) <= near:
                lo[query], hi[query] = start, end
                break
            near *= 1.01  # a few items have more than that
    return Intervals(lo, hi)


def simple(sales: Sales, queries: int, evaluation: float = PAPER.evaluation) -> BoolMatrix:
    """bool[queries, rows]: which rows each query gets to see."""
    seen = np.zeros((queries, len(sales)), np.bool_)
    _in_turn(sales.at, seen, evaluation, QUEUED)
    return seen


@kernel
def _in_turn(at: FloatArray, seen: BoolMatrix, evaluation: float, queued: float) -> None:
    queries = len(seen)
    ahead = np.zeros(queries, np.int64)  # the next row of each query
    oldest = 0
    turn = 0
    over = 0.0
    for row in range(len(at)):
        while at[oldest] < at[row] - queued:
            oldest += 1
        gap = at[row + 1] - at[row] if row + 1 < len(at) else 0.0
        left = over + gap
        without = 0  # so many queries in turn have seen all
        while left >= evaluation and without < queries:
            ahead[turn] = max(ahead[turn], oldest)
            if ahead[turn] <= row:
                seen[turn, ahead[turn]] = True
                ahead[turn] += 1
                left -= evaluation
                without = 0
            else:
                without += 1
            turn = (turn + 1) % queries
        over = 0.0 if without == queries else left


def pct_of_answers(found: BoolMatrix, wanted: BoolMatrix) -> float:
    """The share of its exact answer that a query has, in percent, the mean over the queries."""
    whole = wanted.sum(axis=1)
    return float(100 * ((found & wanted).sum(axis=1) / np.maximum(1, whole)).mean())


@dataclass(frozen=True, slots=True)
class Sums:
    """AVG and SUM of the price over a minute, at each second of a run, of each query.

    average, total: float64[queries, seconds]; average is NaN where there is no row. count: the rows.
    """

    average: FloatArray
    total: FloatArray
    count: FloatArray


def aggregates(sales: Sales, found: BoolMatrix, seconds: int, window_s: int, since: IntArray | None) -> Sums:
    """Over the found rows. since: int64[queries, rows], ms, when a row was found; None: as it came.

    The first minute, in which windows fill, is left out.
    """
    queries = len(found)
    ticks = 1_000 * np.arange(window_s, seconds + 1)
    shape = queries, len(ticks)
    total, count = np.zeros(shape), np.zeros(shape)
    came = sales.timestamp
    for query in range(queries):
        rows = np.flatnonzero(found[query])
        known = came[rows] if since is None else np.maximum(came[rows], since[query, rows])
        leaves = came[rows] + 1_000 * window_s
        here = known < leaves
        rows, known, leaves = rows[here], known[here], leaves[here]
        enters = np.searchsorted(ticks, known)
        ends = np.searchsorted(ticks, leaves)
        for sums, of in ((total, sales.price[rows]), (count, np.ones(len(rows)))):
            steps = np.bincount(enters, of, len(ticks) + 1) - np.bincount(ends, of, len(ticks) + 1)
            sums[query] = np.cumsum(steps)[:-1]
    average = np.divide(total, count, out=np.full(shape, np.nan), where=count > 0.5)
    return Sums(average, total, count)


def mse(found: FloatArray, exact: FloatArray) -> float:
    """The mean squared error over queries and seconds; where there is no exact value there is no error, and
    an average of nothing counts as 0.
    """
    there = ~np.isnan(exact)
    return float(((np.nan_to_num(found[there]) - exact[there]) ** 2).mean())

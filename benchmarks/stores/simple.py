"""Joins without promising sets, by a clock: a row visited and a row inserted take so many units.

SIMPLE-SHJ is the symmetric hash join of the paper, over 16 hash chains a store: a row that comes is
inserted, then goes through its chain of the other store until the next row comes. The paper does not say from
which end, so there are both. T1 does the same without chains. `index` has a chain for each item, which is
what an exact index is. `skip` cuts no probe off: a row that comes meanwhile is inserted and never probes, so
that whole rows are dropped at random.

What a probe does not need is lost; of a visit that no longer fits the time goes to the next row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from benchmarks.stores.costs import PAPER, Costs
from benchmarks.stores.exact import Output, output_of
from benchmarks.stores.sales import FloatArray, IntArray, Sales
from engine.kernels.compiled import kernel

CHAINS = 16
MIX = 2_654_435_761


@dataclass(frozen=True, slots=True)
class Simple:
    """One of these joins.

    chains: how many a store has; None: one an item. newest: the newest row of a chain is visited first.
    skip: probes are not cut off. visit, insertion: units.
    """

    chains: int | None = CHAINS
    newest: bool = False
    skip: bool = False
    visit: float = PAPER.visit
    insertion: float = PAPER.insertion["t1"]

    def run(self, sales: Sales, window_ms: int, at: FloatArray | None = None) -> Output:
        """What it finds. at: when rows come by the clock, if not by their own time."""
        chain_of = np.arange(sales.items, dtype=np.int64)
        if self.chains is not None:
            chain_of = (chain_of * MIX >> 12) % self.chains
        chain = chain_of[sales.item]
        run = _skip if self.skip else _cut_off
        come = sales.at if at is None else at
        arrivals = _Arrivals(come, sales.timestamp, sales.store, sales.item, chain)
        chains, costs = int(chain.max(initial=0)) + 1, _Costs(self.visit, self.insertion)
        visits, first, second = run(arrivals, chains, window_ms, self.newest, costs)
        return output_of(sales, first, second, visits)


def lines(costs: Costs) -> dict[str, Simple]:
    """By key of figures."""
    simple = partial(Simple, visit=costs.visit, insertion=costs.insertion["t1"])
    return {
        "shj_oldest": simple(),
        "shj_newest": simple(newest=True),
        "skip": simple(skip=True),
        "index": simple(chains=None),
    }


def without_summary(costs: Costs) -> Simple:
    """T1: all rows of the window, the newest first."""
    return Simple(1, newest=True, visit=costs.visit, insertion=costs.insertion["t1"])


class _Arrivals(NamedTuple):
    """Rows as they arrive: when, with which timestamp, in which store, their key and the chain of that."""

    at: FloatArray
    ts: IntArray
    store: IntArray
    item: IntArray
    chain: IntArray


class _Costs(NamedTuple):
    """Seconds."""

    visit: float
    insertion: float


@kernel
def _grown(array: IntArray, size: int) -> IntArray:
    if size < len(array):
        return array
    larger = np.empty(2 * size + 16, np.int64)
    larger[: len(array)] = array
    return larger


@kernel
def _cut_off(
    arrivals: _Arrivals, chains: int, window_ms: int, newest: bool, costs: _Costs
) -> tuple[int, IntArray, IntArray]:
    at, ts, store, item, chain = arrivals
    head = np.full((2, chains), -1, np.int64)  # the oldest row that may be in the window
    tail = np.full((2, chains), -1, np.int64)
    later = np.full(len(at), -1, np.int64)
    earlier = np.full(len(at), -1, np.int64)
    first, second = np.empty(1024, np.int64), np.empty(1024, np.int64)
    found = 0
    visits = 0
    over = 0.0
    for row in range(len(at)):
        gap = at[row + 1] - at[row] if row + 1 < len(at) else 0.0
        left = over + max(0.0, gap - costs.insertion)
        other, where = 1 - store[row], chain[row]
        oldest = ts[row] - window_ms
        while head[other, where] >= 0 and ts[head[other, where]] < oldest:
            head[other, where] = later[head[other, where]]
        place = head[other, where]
        if newest and place >= 0:
            place = tail[other, where]
        over = 0.0
        while place >= 0 and ts[place] >= oldest:
            if left < costs.visit:
                over = left
                break
            left -= costs.visit
            visits += 1
            if item[place] == item[row]:
                first, second = _grown(first, found), _grown(second, found)
                first[found], second[found] = row, place
                found += 1
            place = earlier[place] if newest else later[place]
        mine = store[row]
        last = tail[mine, where]
        earlier[row] = last
        if last >= 0:
            later[last] = row
        if head[mine, where] < 0:
            head[mine, where] = row
        tail[mine, where] = row
    return visits, first[:found], second[:found]


@kernel
def _skip(
    arrivals: _Arrivals, chains: int, window_ms: int, newest: bool, costs: _Costs
) -> tuple[int, IntArray, IntArray]:
    at, ts, store, item, chain = arrivals
    tail = np.full((2, chains), -1, np.int64)
    earlier = np.full(len(at), -1, np.int64)
    first, second = np.empty(1024, np.int64), np.empty(1024, np.int64)
    found = 0
    visits = 0
    busy = 0.0
    for row in range(len(at)):
        mine, where = store[row], chain[row]
        if at[row] < busy:
            busy += costs.insertion
        else:
            busy = at[row] + costs.insertion
            place = tail[1 - mine, where]
            while place >= 0 and ts[place] >= ts[row] - window_ms:
                busy += costs.visit
                visits += 1
                if item[place] == item[row]:
                    first, second = _grown(first, found), _grown(second, found)
                    first[found], second[found] = row, place
                    found += 1
                place = earlier[place]
        earlier[row] = tail[mine, where]
        tail[mine, where] = row
    return visits, first[:found], second[:found]

"""Sales of two stores: the rows of the experiments with promising tuples.

The paper plays back the log of a retailer, (StoreID, TransactionID, TimeStamp, ItemID, Price), which is not
public. Drawn here: each store has a sale after exponential gaps; what is sold follows Zipf's law over 10,000
items, whose ids say nothing of their rank. What sells changes in both stores at once: every 20 to 40 s ten
of the 50 best places go to items of the tail. So rows of the two stores that are a minute apart at most join
with a selectivity of 6.3% to 7.0%; the paper tells 6.7%. An item has one price, log-normal over the items.

A unit of time is a millisecond of event time and a unit of work by the clock of the paper.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

ITEMS = 10_000
EXPONENT = 1.26
TOP = 50
"""Ranks among which places change."""
SWAPPED = 10
SWAP_S = 20.0, 40.0
"""From one change to the next, uniform."""
PRICE_MEAN, PRICE_SIGMA = 1.0, 0.5
"""Mean and standard deviation of a price's logarithm."""

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Sales:
    """Rows of two streams in the order of arrival.

    at: float64[n], ascending, units since the start. store: int64[n], 0 or 1, which stream. item: int64[n],
    from 0 to items - 1. price: float64[n]. items: how many there are.
    """

    at: FloatArray
    store: IntArray
    item: IntArray
    price: FloatArray
    items: int

    def __len__(self) -> int:
        return len(self.at)

    @property
    def timestamp(self) -> IntArray:
        """int64[n], ms."""
        return self.at.astype(np.int64)

    def of(self, store: int) -> Sales:
        """The rows of one stream."""
        return self.part(self.store == store)

    def part(self, rows: slice | npt.NDArray[np.bool_]) -> Sales:
        """Some of the rows, in their order."""
        return Sales(self.at[rows], self.store[rows], self.item[rows], self.price[rows], self.items)


def draw(seed: int, seconds: float, gap: float) -> Sales:
    """Sales of both stores over so many seconds; gap: units between two sales of one store, on average."""
    rng = np.random.default_rng(seed)
    end = 1_000 * seconds
    item_of = rng.permutation(ITEMS)
    price_of = np.round(rng.lognormal(PRICE_MEAN, PRICE_SIGMA, ITEMS), 2)
    changes, kinds = _changes(rng, end, item_of)
    arrivals = [_arrivals(rng, end, gap) for _ in range(2)]
    at = np.concatenate(arrivals)
    store = np.repeat(np.arange(2), [len(each) for each in arrivals])
    order = np.argsort(at, kind="stable")
    at, store = at[order], store[order]
    upto = np.cumsum(np.arange(1, ITEMS + 1) ** -EXPONENT)
    rank = np.searchsorted(upto / upto[-1], rng.random(len(at)), side="right").clip(max=ITEMS - 1)
    item = kinds[np.searchsorted(changes, at, side="right"), rank]
    return Sales(at, store, item, price_of[item], ITEMS)


def _arrivals(rng: np.random.Generator, end: float, gap: float) -> FloatArray:
    many = int(end / gap + 8 * np.sqrt(end / gap) + 16)
    at = np.cumsum(rng.exponential(gap, many))
    return at[at < end]


def _changes(rng: np.random.Generator, end: float, item_of: IntArray) -> tuple[FloatArray, IntArray]:
    """(instants at which ranks change, int64[changes + 1, items]: the item of each rank before each)."""
    instants: list[float] = []
    kinds = [item_of]
    now = 0.0
    while True:
        now += 1_000 * rng.uniform(*SWAP_S)
        if now >= end:
            return np.array(instants), np.array(kinds)
        item_of = item_of.copy()
        high = rng.choice(TOP, SWAPPED, replace=False)
        low = TOP + rng.choice(ITEMS - TOP, SWAPPED, replace=False)
        item_of[high], item_of[low] = item_of[low], item_of[high]
        instants.append(now)
        kinds.append(item_of)

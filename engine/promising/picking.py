"""Which entries are visited next, and for how many rows each.

Entries have a class (``rank``): those of a lower one are all visited before any of a higher one. Within a
class ``desc`` and ``asc`` go by the priority, entry by entry, and ties by the place in the set, which is the
order in which entries came: that of their probing rows, then from recent cells to old ones. ``weighted``
brings all entries up to the same level instead, those that are behind first, so that each value is found in
proportion to its estimate; with a priority that is not the estimate itself an entry advances as many times as
fast as its priority is of its estimate.

Both are orders of single visits that depend on nothing but the set, so it doesn't matter into how many grants
the units are cut. A visit has as many units as rows look for partners; the last one that is picked may have
more than remain, which the next grant pays.

Source: Ali, Aref, ElTabakh, *Scalability via Summaries*, section 4.1.1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.kernels import promising
from engine.language.preference import PreferenceOrder
from engine.model.batch import Int64Array

Int8Array = npt.NDArray[np.int8]
Int32Array = npt.NDArray[np.int32]
Float64Array = npt.NDArray[np.float64]

BLOCK = 4_096
"""Entries that are picked at a time, and visited in the order of their rows."""

SLACK = 1.0 + 1e-9
"""More than all rounding of a level."""

PROMISING, EMPTY, UNRANKED, PRUNED = range(4)
"""Ranks: cells with estimated rows; cells estimated empty; cells whose priority is NaN, NULL or an error;
cells that the pyramid ruled out, which hold nothing unless the sketch errs.
"""


class Picked(NamedTuple):
    """places: int64[n], of entries, most promising first; visits: int64[n], rows to visit of each."""

    places: Int64Array
    visits: Int64Array


def faded(
    order: PreferenceOrder, priority: Float64Array, fade: float, granularity: Int32Array
) -> Float64Array:
    """float64[n]: priorities as they count for rows of these granularities (1, 2, ...).

    Each granularity makes a row less promising: ``desc`` and ``weighted`` multiply by fade ** (i - 1), and
    ``asc``, where the small ones are promising, divides by it. Of negative priorities it is the other way
    round.
    """
    if fade == 1.0:
        return priority
    factor = (fade ** np.arange(int(granularity.max(initial=1))))[granularity - 1]
    less = (priority < 0.0) == (order == "asc")
    with np.errstate(over="ignore"):
        return np.where(less, priority * factor, priority / factor)


def pick(
    order: PreferenceOrder,
    rank: Int8Array,
    priority: Float64Array,
    rows: Int32Array,
    left: Int32Array,
    cost: Int64Array,
    units: int,
) -> Picked:
    """The next visits, the first so many that take ``units`` or less, of the lowest rank that has any.

    rank: int8[n]; priority: float64[n], faded; rows, left: int32[n], of entries, rows that they lead to and
    those to visit; cost: int64[n], units of a visit. Where units remain, pick again. O(n), and O(n log n) of
    what is picked.
    """
    alive = np.flatnonzero(left > 0)
    if not len(alive) or units <= 0:
        return Picked(alive[:0], alive[:0])
    ranks = rank[alive]
    lowest = int(ranks.min())
    among = alive[ranks == lowest]
    if order == "weighted" and lowest == PROMISING:
        return _levelled(among, priority[among], rows[among], left[among], cost[among], units)
    key = priority[among] if order == "asc" else -priority[among]
    if lowest in (UNRANKED, PRUNED):  # as they came
        key = np.zeros(len(among))
    chosen = among[_least(key, max(BLOCK, len(among) >> 4))]
    wanted = left[chosen].astype(np.int64)
    ends = np.cumsum(wanted * cost[chosen])
    stop = int(ends.searchsorted(units)) + 1
    chosen, wanted = chosen[:stop], wanted[:stop]
    if stop <= len(ends):
        wanted[-1] -= (int(ends[stop - 1]) - units) // int(cost[chosen[-1]])
    return Picked(chosen, wanted)


def _least(key: Float64Array, count: int) -> Int64Array:
    """int64: places of the ``count`` least keys, ascending by key, then by place. O(n + count log count)."""
    if count >= len(key):
        return np.argsort(key, kind="stable")
    bound = np.partition(key, count - 1)[count - 1]
    below = np.flatnonzero(key < bound)
    level = np.flatnonzero(key == bound)[: count - len(below)]
    places = np.sort(np.concatenate([below, level]))
    least: Int64Array = places[np.argsort(key[places], kind="stable")]
    return least


def _levelled(
    among: Int64Array,
    weight: Float64Array,
    rows: Int32Array,
    left: Int32Array,
    cost: Int64Array,
    units: int,
) -> Picked:
    """Visits that bring entries up to the same level; see :func:`engine.kernels.promising.level_out`."""
    pace = weight * rows
    behind = (rows - left + 0.5) / pace
    if len(among) > units:
        highest = float(np.partition(behind, units - 1)[units - 1]) * SLACK
        kept = np.flatnonzero(behind <= highest * SLACK)
        among, pace, rows, left, cost = among[kept], pace[kept], rows[kept], left[kept], cost[kept]
    else:
        highest = float(((rows - 0.5) / pace).max()) * SLACK
    shares = np.empty(len(among), np.int64)
    promising.level_out(pace, rows, left, cost, highest, units, shares)
    some = np.flatnonzero(shares)
    return Picked(among[some], shares[some])

"""Groups cut into pieces of time: between two events of a group, a row that comes or goes, nothing in it changes.

    row of group a   there from 10 to 12        ----|======|-----------
    another          there from 11 on           --------|==============
    pieces of a                                 |   |   |  |

The first piece of a group is what it is at the beginning of the way. Cost: O(rows + events log events).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.changes.course import FOREVER, NEVER
from engine.changes.lives import Lives, Way
from engine.kernels import grouping
from engine.kernels import pieces as kernels
from engine.model.batch import Int64Array


@dataclass(frozen=True, slots=True)
class Pieces:
    """Pieces starts[g] to starts[g + 1] are those of group g, in the order of time.

    begins, ends: int64[pieces], ms. low, high: int64[n], row i is there in pieces low[i] <= p < high[i].
    codes: int64[n], the group of each row. counts: int64[pieces], how many rows are there.
    """

    starts: Int64Array
    begins: Int64Array
    ends: Int64Array
    codes: Int64Array
    low: Int64Array
    high: Int64Array
    counts: Int64Array

    def __len__(self) -> int:
        return len(self.begins)

    @property
    def groups(self) -> int:
        return len(self.starts) - 1

    def groups_of_pieces(self) -> Int64Array:
        """int64[pieces]."""
        return np.repeat(np.arange(self.groups), np.diff(self.starts))

    def _check(self) -> None:
        assert bool((np.diff(self.starts) >= 1).all())
        assert bool((self.begins < self.ends).all())
        assert bool((self.starts[self.codes] <= self.low).all())
        assert bool((self.low < self.high).all())
        assert bool((self.high <= self.starts[self.codes + 1]).all())


def cut(lives: Lives, codes: Int64Array, groups: int, way: Way) -> Pieces:
    """Pieces of the rows' groups. codes: int64[n] below ``groups``. All rows are there at an instant of the
    way, or at its beginning.
    """
    n = len(lives)
    came, went = np.flatnonzero(lives.begins > way.since_ms), np.flatnonzero(lives.ends <= way.until_ms)
    instants = np.concatenate([lives.begins[came], lives.ends[went]])
    what = np.concatenate([came * 2, went * 2 + 1])
    by_time = np.argsort(instants, kind="stable")
    instants, what = instants[by_time], what[by_time]
    event_starts = np.array([0, len(what)], np.int64)
    if groups != 1:
        event_starts, order = np.empty(groups + 1, np.int64), np.empty(len(what), np.int64)
        grouping.bring_together(codes[what >> 1], event_starts, order)
        instants, what = instants[order], what[order]
    low, high = np.full(n, -1), np.full(n, -1)
    starts, begins = np.empty(groups + 1, np.int64), np.empty(groups + len(what), np.int64)
    pieces = kernels.cut(event_starts, instants, what, low, high, starts, begins)
    begins = begins[:pieces].copy()
    begins[starts[:-1]] = NEVER
    ends = np.empty(pieces, np.int64)
    ends[:-1] = begins[1:]
    ends[starts[1:] - 1] = FOREVER
    kernels.spread_out(codes, starts, low, high)
    counts = np.empty(pieces + 1, np.int64)
    kernels.counts(low, high, counts)
    return Pieces(starts, begins, ends, codes, low, high, counts[:-1])

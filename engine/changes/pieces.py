"""Groups cut into pieces of time: between two events of a group, a row that comes or goes, nothing in it
changes.

    row of group a   there from 10 to 12        ----|======|-----------
    another          there from 11 on           --------|==============
    pieces of a                                 |   |   |  |

The first piece of a group is what it is at the beginning of the way. Cost: O(rows) to look for those that
move, then O(events log events).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.changes.course import FOREVER, NEVER
from engine.changes.lives import Lives, Way
from engine.kernels import grouping
from engine.kernels import pieces as kernels
from engine.model.batch import BoolArray, Int64Array


@dataclass(frozen=True, slots=True)
class Pieces:
    """Pieces starts[g] to starts[g + 1] are those of group g, in the order of time.

    begins, ends: int64[pieces], ms.
    """

    starts: Int64Array
    begins: Int64Array
    ends: Int64Array

    def __len__(self) -> int:
        return len(self.begins)

    @property
    def groups(self) -> int:
        return len(self.starts) - 1


@dataclass(frozen=True, slots=True)
class Placed:
    """Rows in pieces of their groups.

    codes: int64[n], the group of each. moving: the rows, ascending, that are not there in all pieces of it;
    low, high: int64[moving], they are there in pieces low <= p < high.
    """

    pieces: Pieces
    codes: Int64Array
    moving: Int64Array
    low: Int64Array
    high: Int64Array

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: Int64Array) -> Placed:
        """The rows at these places, ascending."""
        places = np.searchsorted(rows, self.moving)
        there = places < len(rows)
        there[there] = rows[places[there]] == self.moving[there]
        return Placed(self.pieces, self.codes[rows], places[there], self.low[there], self.high[there])

    def staying(self) -> Int64Array:
        """int64[groups]: how many rows of each group are there in all its pieces."""
        stay = np.empty(self.pieces.groups, np.int64)
        kernels.staying(self.codes, self.moving, stay)
        return stay

    def counts(self, stay: Int64Array) -> Int64Array:
        """int64[pieces]: how many rows are there. stay: how many are in all pieces of each group."""
        counts = np.empty(len(self.pieces) + 1, np.int64)
        kernels.counts(stay, self.low, self.high, self.pieces.starts, counts)
        return counts[:-1]

    def events(self, rows: Int64Array) -> tuple[Int64Array, Int64Array]:
        """What comes and goes, by pieces, as :func:`engine.kernels.pieces.events` gives it. rows: numbers of
        the moving ones.
        """
        starts, groups = self.pieces.starts, self.codes[self.moving]
        event_starts, what = np.empty(len(self.pieces) + 1, np.int64), np.empty(2 * len(rows), np.int64)
        kernels.events(rows, self.low, self.high, starts[groups], starts[groups + 1], event_starts, what)
        return event_starts, what

    def at_first(self, rows: Int64Array) -> BoolArray:
        """bool[n]: which rows are there in the first piece of their group. rows: as for ``events``."""
        there = np.ones(len(self), np.bool_)
        there[rows] = self.low == self.pieces.starts[self.codes[self.moving]]
        return there

    def _check(self) -> None:
        starts = self.pieces.starts
        codes = self.codes[self.moving]
        assert bool((np.diff(starts) >= 1).all())
        assert bool((self.pieces.begins < self.pieces.ends).all())
        assert bool((np.diff(self.moving) > 0).all())
        assert bool(
            ((starts[codes] <= self.low) & (self.low < self.high) & (self.high <= starts[codes + 1])).all()
        )
        assert bool(((self.low > starts[codes]) | (self.high < starts[codes + 1])).all())


def cut(lives: Lives, codes: Int64Array, groups: int, way: Way) -> Placed:
    """The rows in pieces. codes: int64[n] below ``groups``. All rows are there at an instant of the way, or
    at its beginning.
    """
    comes, goes = lives.begins > way.since, lives.ends <= way.until
    moving = np.flatnonzero(comes | goes)
    came, went = np.flatnonzero(comes[moving]), np.flatnonzero(goes[moving])
    instants = np.concatenate([lives.begins[moving[came]], lives.ends[moving[went]]])
    what = np.concatenate([came * 2, went * 2 + 1])
    by_time = np.argsort(instants, kind="stable")
    instants, what = instants[by_time], what[by_time]
    of_moving = codes[moving]
    event_starts = np.array([0, len(what)], np.int64)
    if groups != 1:
        event_starts, order = np.empty(groups + 1, np.int64), np.empty(len(what), np.int64)
        grouping.bring_together(of_moving[what >> 1], event_starts, order)
        instants, what = instants[order], what[order]
    low, high = np.full(len(moving), -1), np.full(len(moving), -1)
    starts, begins = np.empty(groups + 1, np.int64), np.empty(groups + len(what), np.int64)
    pieces = kernels.cut(event_starts, instants, what, of_moving, low, high, starts, begins)
    begins = begins[:pieces].copy()
    begins[starts[:-1]] = NEVER
    ends = np.empty(pieces, np.int64)
    ends[:-1] = begins[1:]
    ends[starts[1:] - 1] = FOREVER
    return Placed(Pieces(starts, begins, ends), codes, moving, low, high)

"""Rows of the inputs of a join with windows that can get no partner any more: they need not be kept until
their windows leave them.

What streams say is read as time goes on; rows go together, once there are half as many more as were left the
last time, so that a row costs O(1), amortised, and O(log rows of the other stream) where it waits for a
partner.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from engine.changes.transition import Transition
from engine.dataflow.arrangements.keys import Keys
from engine.dataflow.releases.reading import Frontier, KeysOver, ends_behind
from engine.dataflow.releases.release import Awaited, Early, Release
from engine.dataflow.releases.side import Waiting
from engine.model.batch import BoolArray, Int32Array, Int64Array
from engine.model.capacities import USUAL, Capacities

SWEPT_MIN = 256
"""So many rows of a join may be there that could go, and half of those that could not the last time."""

Has = Callable[[Int32Array], BoolArray]
"""Tells of which keys, by number, there is a row."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The rows of an input. numbers: of their keys, int32[rows], -1 of those without. has: of the input.
    instants: when they entered, int64[rows], ms.
    """

    numbers: Int32Array
    has: Has
    instants: Callable[[], Int64Array]


class _Side:
    """What is known of the partners of rows of one input. One writer."""

    def __init__(self, release: Release, keys: Keys, waiting: Waiting) -> None:
        """waiting: of the other input."""
        self.release = release
        self._keys = keys
        self._waiting = waiting
        self._over = None if release.over is None else KeysOver(release.over, keys)
        self._bounds = [Frontier(each) for each in release.below]
        self._closed: Int32Array = np.empty(0, np.int32)
        """Keys that are over in the other input's stream, of which rows may be here; each has a user more."""
        self._swept = 0

    def advance(self, transition: Transition, has: Has, closed_min: int) -> None:
        """A transition is over. has: of the input."""
        if self._over is not None and self.release.over is not None:
            fresh = self._over.advance(transition.by_source[self.release.over.source].at)
            self._closed = np.concatenate([self._closed, fresh])
            if len(self._closed) > closed_min + 2 * self._swept:
                self._forget_keys(has)
        for bound in self._bounds:
            bound.advance(transition.by_source[bound.below.source].at)

    def _forget_keys(self, has: Has) -> None:
        """Keys of which no row is here."""
        here = has(self._closed)
        self._keys.give_back(self._closed[~here])
        self._closed = self._closed[here]
        self._swept = len(self._closed)

    def without_more(self, kept: Kept, transition: Transition) -> BoolArray:
        """bool[rows]: which rows get no partner any more, besides those that they have."""
        numbers = kept.numbers
        found: BoolArray = np.zeros(len(numbers), np.bool_)
        if self._over is not None and len(self._closed):
            waits = [self._keys.find(columns, len(columns[0])) for columns in self._waiting()]
            stays = np.isin(self._closed, np.concatenate([np.empty(0, np.int32), *waits]))
            found |= np.isin(numbers, self._closed[~stays])
        having = np.flatnonzero(numbers >= 0)
        for bound in self._bounds:
            least = bound.value
            if least is None:
                continue
            for columns in self._waiting():
                column = columns[bound.below.key]
                least = min(least, int(column.values[column.there()].min(initial=least)))
            values = self._keys.columns(numbers[having])[bound.below.key].values.astype(np.int64)
            found[having[values < least]] = True
        if self.release.awaited is not None:
            found |= _waited(self.release.awaited, kept.instants(), transition)
        return found

    def swept(self, has: Has) -> None:
        """Rows went."""
        self._forget_keys(has)

    @property
    def nbytes(self) -> int:
        over = 0 if self._over is None else self._over.nbytes
        return over + self._closed.nbytes + sum(bound.nbytes for bound in self._bounds)

    def _check(self) -> None:
        assert len(np.unique(self._closed)) == len(self._closed)
        if self._over is not None:
            self._over._check()


class EarlyLeave:
    """Says which rows of both inputs of a join go. One writer. keys: of the join."""

    def __init__(
        self, early: Early, keys: Keys, waiting: tuple[Waiting, Waiting], capacities: Capacities = USUAL
    ) -> None:
        """waiting: of the left and of the right input."""
        self._early = early
        self._rows_min = capacities.first(SWEPT_MIN)
        self._sides = _Side(early.left, keys, waiting[1]), _Side(early.right, keys, waiting[0])
        self._left = 0
        """Rows that were left the last time."""
        self.released = 0
        """Rows that went."""

    def is_due(self, transition: Transition, left: Has, right: Has, rows: int) -> bool:
        """A transition is over: whether rows are to be looked at now, of which there are so many."""
        for side, has in zip(self._sides, (left, right), strict=True):
            side.advance(transition, has, self._rows_min)
        return rows > self._rows_min + self._left + self._left // 2

    def gone(self, transition: Transition, left: Kept, right: Kept) -> tuple[BoolArray, BoolArray]:
        """Which rows go, bool[rows] of each input. O(rows of both, and of joins below them)."""
        found = tuple(
            self._gone(side, near, far, transition)
            for side, near, far in zip(self._sides, (left, right), (right, left), strict=True)
        )
        return found[0], found[1]

    def _gone(self, side: _Side, near: Kept, far: Kept, transition: Transition) -> BoolArray:
        if not side.release.lines():
            return np.zeros(len(near.numbers), np.bool_)
        meets = far.has(near.numbers)
        ends = side.without_more(near, transition)
        if self._early.paired:
            return ends | meets if side.release.once else ends
        return (ends & ~meets) | (near.numbers < 0)

    def swept(self, gone: int, left: Has, right: Has, rows: int) -> None:
        """So many rows went, and so many are left."""
        self.released += gone
        self._left = rows
        for side, has in zip(self._sides, (left, right), strict=True):
            side.swept(has)

    @property
    def nbytes(self) -> int:
        return sum(side.nbytes for side in self._sides)

    def _check(self) -> None:
        for side in self._sides:
            side._check()


def _waited(awaited: Awaited, instants: Int64Array, transition: Transition) -> BoolArray:
    """Which rows have waited for their partner for as long as it may take. instants: when they entered."""
    at = transition.by_source[awaited.source].at
    if awaited.within_rows is None:
        assert awaited.within_ms is not None
        passed: BoolArray = instants + awaited.within_ms <= transition.until_ms
        return passed
    come: BoolArray = ends_behind(at, instants) + awaited.within_rows <= at.end
    return come

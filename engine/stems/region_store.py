"""The regions of all predicates, compact: what every index of the Query SteM is made from.

One row an interval, those of a slot together, ordered by (term, attribute, low). An attribute that a term
restricts has a row even where no value passes (low > last). 21 bytes an interval and 9 a slot; room that a
slot leaves is given to the next that needs as much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.kernels.candidates import Regions
from engine.model.batch import Int64Array
from engine.model.capacities import USUAL, Capacities

ROOM_MIN = 64
FREE_MIN = 1_024
"""The rows that may be free, at least, before the others close up."""
NULL_TOO = 1
"""Flag: NULL belongs to the region; on the first row of (term, attribute)."""

WAY_IN = 2
"""Flag: the selective cohort reaches the term through this attribute; on each of its rows."""


Row = tuple[int, int, int, int, int]
"""(attribute, term, flags, low, last)."""


@dataclass(frozen=True, slots=True)
class Intervals:
    """Rows of the store, column by column."""

    attribute: npt.NDArray[np.int16]
    term: npt.NDArray[np.uint8]
    flags: npt.NDArray[np.uint8]
    low: Int64Array
    last: Int64Array

    def __len__(self) -> int:
        return len(self.low)

    def take(self, where: npt.NDArray[np.generic] | slice) -> Intervals:
        return Intervals(
            self.attribute[where], self.term[where], self.flags[where], self.low[where], self.last[where]
        )

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Intervals:
        """From (attribute, term, flags, low, last) each."""
        attribute, term, flags, low, last = zip(*rows, strict=True) if rows else ((), (), (), (), ())
        return cls(
            np.array(attribute, np.int16),
            np.array(term, np.uint8),
            np.array(flags, np.uint8),
            np.array(low, np.int64),
            np.array(last, np.int64),
        )


class RegionStore:
    """``start[slot]``, ``count[slot]``: its rows. ``terms[slot]``: how many alternatives; 0: never TRUE."""

    def __init__(self, capacities: Capacities = USUAL) -> None:
        self._room_min, self._free_min = capacities.first(ROOM_MIN), capacities.first(FREE_MIN)
        self.rows = _room(self._room_min)
        self.start = np.zeros(self._room_min, np.int32)
        self.count = np.zeros(self._room_min, np.int32)
        self.terms = np.zeros(self._room_min, np.uint8)
        self.used = 0
        self._holes: dict[int, list[int]] = {}
        self._free = 0

    @property
    def regions(self) -> Regions:
        """As kernels take it."""
        rows = self.rows
        return Regions(self.start, self.count, rows.attribute, rows.term, rows.flags, rows.low, rows.last)

    def put(self, slots: Int64Array, counts: Int64Array, terms: npt.ArrayLike, rows: Intervals) -> None:
        """The rows of new slots, one slot after another. O(rows), amortised."""
        self._make_room(int(slots.max()) + 1 if len(slots) else 0, len(rows))
        starts = np.empty(len(slots), np.int64)
        for place, size in enumerate(counts.tolist()):
            holes = self._holes.get(size) if size else None
            if holes:
                starts[place] = holes.pop()
                self._free -= size
            else:
                starts[place] = self.used
                self.used += size
        self.start[slots] = starts
        self.count[slots] = counts
        self.terms[slots] = terms
        where = _ranges(starts, counts)
        mine = self.rows
        mine.attribute[where], mine.term[where], mine.flags[where] = rows.attribute, rows.term, rows.flags
        mine.low[where], mine.last[where] = rows.low, rows.last

    def drop(self, slot: int) -> None:
        """Remove the rows of a slot. O(1), amortised; rows close up when half of them are holes."""
        size = int(self.count[slot])
        if size:
            self._holes.setdefault(size, []).append(int(self.start[slot]))
            self._free += size
        self.count[slot] = 0
        self.terms[slot] = 0
        if self._free > self._free_min and 2 * self._free > self.used:
            self._close_up()

    def of(self, slots: Int64Array) -> tuple[Int64Array, Intervals]:
        """(the slot of each row, the rows) of these slots, slot by slot."""
        counts = self.count[slots]
        return np.repeat(slots, counts), self.rows.take(_ranges(self.start[slots], counts))

    def of_slot(self, slot: int) -> Intervals:
        """The rows of one."""
        first = int(self.start[slot])
        return self.rows.take(slice(first, first + int(self.count[slot])))

    def is_of(self, slot: int, rows: Sequence[Row]) -> bool:
        """Whether a slot has these rows, whichever of them are ways in."""
        first, count = int(self.start[slot]), int(self.count[slot])
        if count != len(rows):
            return False
        mine, where = self.rows, slice(first, first + count)
        held = zip(
            mine.attribute[where].tolist(),
            mine.term[where].tolist(),
            (mine.flags[where] & NULL_TOO).tolist(),
            mine.low[where].tolist(),
            mine.last[where].tolist(),
            strict=True,
        )
        return all(one == other for one, other in zip(held, rows, strict=True))

    def mark(self, slots: Int64Array, ways_in: npt.NDArray[np.bool_]) -> None:
        """Mark by which of their rows (in the order of :meth:`of`) the selective cohort reaches slots."""
        where = _ranges(self.start[slots], self.count[slots])
        flags = self.rows.flags
        flags[where] = np.where(ways_in, flags[where] | WAY_IN, flags[where] & ~np.uint8(WAY_IN))

    def _make_room(self, slots: int, rows: int) -> None:
        if slots > len(self.start):
            more = max(slots, 2 * len(self.start)) - len(self.start)
            self.start = np.concatenate([self.start, np.zeros(more, np.int32)])
            self.count = np.concatenate([self.count, np.zeros(more, np.int32)])
            self.terms = np.concatenate([self.terms, np.zeros(more, np.uint8)])
        if self.used + rows > len(self.rows):
            wider = _room(max(self.used + rows, len(self.rows) + (len(self.rows) >> 1)))
            _copy(self.rows, slice(0, self.used), wider)
            self.rows = wider

    def _close_up(self) -> None:
        slots = np.flatnonzero(self.count).astype(np.int64)
        counts = self.count[slots]
        _, rows = self.of(slots)
        self.start[slots] = np.cumsum(counts) - counts
        self.used = len(rows)
        self.rows = _room(max(self._room_min, self.used + (self.used >> 2)))
        _copy(rows, slice(0, self.used), self.rows)
        self._holes.clear()
        self._free = 0

    def nbytes(self) -> int:
        """Bytes of all arrays."""
        rows = self.rows
        held = (
            rows.attribute,
            rows.term,
            rows.flags,
            rows.low,
            rows.last,
            self.start,
            self.count,
            self.terms,
        )
        return sum(array.nbytes for array in held)

    def _check(self) -> None:
        slots = np.flatnonzero(self.count).astype(np.int64)
        taken = _ranges(self.start[slots], self.count[slots])
        holes = [p for size, starts in self._holes.items() for s in starts for p in range(s, s + size)]
        assert sorted([*taken.tolist(), *holes]) == list(range(self.used))
        assert len(holes) == self._free
        for slot in slots.tolist():
            rows = self.of_slot(slot)
            keys = list(zip(rows.term.tolist(), rows.attribute.tolist(), rows.low.tolist(), strict=True))
            assert keys == sorted(keys)
            assert rows.term.max() < self.terms[slot]


def _room(rows: int) -> Intervals:
    return Intervals(
        np.empty(rows, np.int16),
        np.empty(rows, np.uint8),
        np.empty(rows, np.uint8),
        np.empty(rows, np.int64),
        np.empty(rows, np.int64),
    )


def _copy(rows: Intervals, which: slice, to: Intervals) -> None:
    to.attribute[which], to.term[which], to.flags[which] = (
        rows.attribute[which],
        rows.term[which],
        rows.flags[which],
    )
    to.low[which], to.last[which] = rows.low[which], rows.last[which]


def _ranges(starts: npt.NDArray[np.integer], counts: npt.NDArray[np.integer]) -> Int64Array:
    """start, start + 1, ..., start + count - 1 of each, one after another."""
    counts = counts.astype(np.int64)
    before = np.cumsum(counts) - counts
    return np.repeat(starts.astype(np.int64) - before, counts) + np.arange(int(counts.sum()))

"""Slots of rows by their ids.

Ids of one word that lie close together, as those of the rows of a window do, are places of an array; others
are looked up by hashing. Cost: O(1) a row, amortised; 4 bytes for each place between the least id and the
greatest, as long as that is not more than SPARSE for each row.
"""

from __future__ import annotations

import numpy as np

from engine.dataflow.arrangements.word_table import WordTable
from engine.model.batch import Int32Array, Int64Array
from engine.model.capacities import USUAL, Capacities

NOBODY = -1
SPARSE = 16
PLACES_MIN = 4_096


class IdSlots:
    """Ids of some words. One writer."""

    def __init__(self, width: int, capacities: Capacities = USUAL) -> None:
        self._table = WordTable(width, capacities)
        self._places_min = capacities.first(PLACES_MIN)
        self._slots: Int32Array = np.full(self._table.capacity, NOBODY, np.int32)
        self._near: Int32Array | None = None
        """The slot of each id from ``_base`` on."""
        self._base = 0
        self._count = 0
        if width == 1:
            self._near = np.full(self._places_min, NOBODY, np.int32)

    def __len__(self) -> int:
        """How many ids have a slot."""
        return len(self._table) if self._near is None else self._count

    def find(self, ids: Int64Array) -> Int32Array:
        """int32[n], NOBODY where an id has none. ids: int64[n, w]."""
        if self._near is None:
            numbers = self._table.find(np.ascontiguousarray(ids))
            return np.where(numbers >= 0, self._slots[numbers], np.int32(NOBODY))
        places = ids[:, 0] - self._base
        inside = (places >= 0) & (places < len(self._near))
        if inside.all():
            return self._near[places]
        return np.where(inside, self._near[np.where(inside, places, 0)], np.int32(NOBODY))

    def put(self, ids: Int64Array, slots: Int32Array) -> None:
        """Ids, each once, have these slots from now on."""
        if not len(ids):
            return
        if self._near is not None:
            self._cover(int(ids.min()), int(ids.max()), len(ids))
        if self._near is None:
            numbers = self._table.number(np.ascontiguousarray(ids))
            if len(self._slots) < self._table.capacity:
                more = self._table.capacity - len(self._slots)
                self._slots = np.concatenate([self._slots, np.full(more, NOBODY, np.int32)])
            self._slots[numbers] = slots
            return
        places = ids[:, 0] - self._base
        self._count += int(np.count_nonzero(self._near[places] == NOBODY))
        self._near[places] = slots

    def remove(self, ids: Int64Array, slots: Int32Array) -> None:
        """Ids, each once, have none any more, where they have these."""
        still = self.find(ids) == slots
        if self._near is None:
            self._table.release(self._table.find(np.ascontiguousarray(ids[still])))
        else:
            self._near[ids[still, 0] - self._base] = NOBODY
            self._count -= int(np.count_nonzero(still))

    def _cover(self, low: int, high: int, more: int) -> None:
        """Make places for ids from low to high, or look all up by hashing."""
        assert self._near is not None
        if self._base <= low and high < self._base + len(self._near):
            return
        held = np.flatnonzero(self._near != NOBODY)
        if len(held):
            low, high = min(low, self._base + int(held[0])), max(high, self._base + int(held[-1]))
        slots, span = self._near[held], high + 1 - low
        ids = held + self._base
        if span > self._places_min + SPARSE * (self._count + more):
            self._near = None
            self.put(ids.reshape(-1, 1), slots)
            return
        self._near, self._base = np.full(2 * span + self._places_min, NOBODY, np.int32), low
        self._near[ids - low] = slots

    @property
    def nbytes(self) -> int:
        near = 0 if self._near is None else self._near.nbytes
        return self._table.nbytes + self._slots.nbytes + near

    def _check(self) -> None:
        self._table._check()
        if self._near is not None:
            assert self._count == int((self._near != NOBODY).sum())
            assert not len(self._table)

"""Ids of tuples of whole numbers (:mod:`engine.kernels.word_table`), given back when nobody has them.

One writer. Cost: O(1) a tuple, amortised; 8 bytes a word, and 20 to 36 a tuple for the table.
"""

from __future__ import annotations

import numpy as np

from engine.kernels import word_table as kernels
from engine.model.batch import Int32Array, Int64Array
from engine.model.capacities import USUAL, Capacities

ROOM_MIN = 256


class WordTable:
    """Tuples of ``width`` words. words: int64[capacity, width], by id."""

    def __init__(self, width: int, capacities: Capacities = USUAL) -> None:
        self._room_min = capacities.first(ROOM_MIN)
        self._clear(width, self._room_min)

    def _clear(self, width: int, room: int) -> None:
        self.words: Int64Array = np.zeros((room, width), np.int64)
        self._free: Int32Array = np.empty(room, np.int32)
        self._slots: Int64Array = _slots(2 * room)
        self._counts: Int64Array = np.zeros(2, np.int64)

    def __len__(self) -> int:
        """How many ids are in use."""
        return int(self._counts[kernels.TOP] - self._counts[kernels.FREE])

    @property
    def capacity(self) -> int:
        """Above all ids; arrays by id have to be as long."""
        return len(self.words)

    def number(self, tuples: Int64Array) -> Int32Array:
        """The ids of int64[n, width], C order; new tuples get some."""
        ids = np.empty(len(tuples), np.int32)
        done = 0
        while True:
            done = kernels.number(tuples, done, *self._table(), ids)
            if done == len(tuples):
                return ids
            self._grow()

    def find(self, tuples: Int64Array) -> Int32Array:
        """Returns the ids of int64[n, width], C order; -1 for a tuple that has none. No tuple gets an id."""
        ids = np.empty(len(tuples), np.int32)
        kernels.find(tuples, self._slots, self.words, ids)
        return ids

    def release(self, ids: Int32Array) -> None:
        """Give back ids, each once."""
        kernels.release(ids, *self._table())

    def used(self) -> Int32Array:
        """The ids that are in use, ascending."""
        is_used = np.ones(int(self._counts[kernels.TOP]), np.bool_)
        is_used[self._free[: int(self._counts[kernels.FREE])]] = False
        return np.flatnonzero(is_used).astype(np.int32)

    def renew(self) -> None:
        """Words of some ids have changed, or who gave them: find all of them anew."""
        self._slots = _slots(max(2 * self._room_min, 2 * len(self) + 1))
        kernels.rehash(self.used(), self.words, self._slots)

    def ids(self) -> tuple[Int64Array, Int32Array, Int64Array]:
        """(words, free, counts), for somebody else who gives ids and takes them back."""
        return self.words, self._free, self._counts

    def make_room(self) -> None:
        """There is an id that may be given."""
        if not self._counts[kernels.FREE] and self._counts[kernels.TOP] == self.capacity:
            room = 2 * self.capacity
            words, free = np.zeros((room, self.words.shape[1]), np.int64), np.empty(room, np.int32)
            words[: self.capacity], free[: len(self._free)] = self.words, self._free
            self.words, self._free = words, free

    def _grow(self) -> None:
        self.make_room()
        self.renew()

    def _table(self) -> tuple[Int64Array, Int64Array, Int32Array, Int64Array]:
        return self._slots, self.words, self._free, self._counts

    @property
    def nbytes(self) -> int:
        return self.words.nbytes + self._free.nbytes + self._slots.nbytes

    def _check(self) -> None:
        used = self.used()
        assert len(used) == len(self)
        assert self.find(np.ascontiguousarray(self.words[used])).tolist() == used.tolist()
        assert int((self._slots != kernels.EMPTY).sum()) == len(self)


def _slots(wanted: int) -> Int64Array:
    return np.full(1 << (wanted - 1).bit_length(), kernels.EMPTY, np.int64)

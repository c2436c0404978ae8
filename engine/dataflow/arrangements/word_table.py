"""Ids of tuples of whole numbers (:mod:`engine.kernels.word_table`), given back when nobody has them.

One writer. Cost: O(1) a tuple, amortised; 8 bytes a word, and 12 to 24 a tuple for the table.
"""

from __future__ import annotations

import numpy as np

from engine.kernels import word_table as kernels
from engine.model.batch import Int32Array, Int64Array

ROOM_MIN = 256


class WordTable:
    """Tuples of ``width`` words. words: int64[capacity, width], by id."""

    def __init__(self, width: int) -> None:
        self._clear(width, ROOM_MIN)

    def _clear(self, width: int, room: int) -> None:
        self.words: Int64Array = np.zeros((room, width), np.int64)
        self._free: Int32Array = np.empty(room, np.int32)
        self._places: Int32Array = _places(4 * room)
        self._counts: Int64Array = np.zeros(3, np.int64)

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
            table = self._places, self.words, self._free, self._counts
            done = kernels.number(tuples, done, *table, ids)
            if done == len(tuples):
                return ids
            self._grow()

    def find(self, tuples: Int64Array) -> Int32Array:
        """The same, -1 where there is none."""
        ids = np.empty(len(tuples), np.int32)
        kernels.find(tuples, self._places, self.words, ids)
        return ids

    def release(self, ids: Int32Array) -> None:
        """Give back ids, each once."""
        kernels.release(ids, self._places, self.words, self._free, self._counts)

    def used(self) -> Int32Array:
        """The ids that are in use, ascending."""
        is_used = np.ones(int(self._counts[kernels.TOP]), np.bool_)
        is_used[self._free[: int(self._counts[kernels.FREE])]] = False
        return np.flatnonzero(is_used).astype(np.int32)

    def renew(self) -> None:
        """Words of some ids have changed, or who gave them: find all of them anew."""
        self._places = _places(max(4 * ROOM_MIN, 4 * (len(self) + 1)))
        kernels.rehash(self.used(), self.words, self._places, self._counts)

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

    @property
    def nbytes(self) -> int:
        return self.words.nbytes + self._free.nbytes + self._places.nbytes

    def _check(self) -> None:
        used = self.used()
        assert len(used) == len(self)
        assert self.find(np.ascontiguousarray(self.words[used])).tolist() == used.tolist()
        assert int((self._places >= 0).sum()) == len(self)
        assert int((self._places != kernels.EMPTY).sum()) == self._counts[kernels.FILLED]


def _places(wanted: int) -> Int32Array:
    return np.full(1 << (wanted - 1).bit_length(), kernels.EMPTY, np.int32)

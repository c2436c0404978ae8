"""Ids of pairs of small numbers, a key and a place, given back when nobody has them.

Where an eighth of all pairs of the keys and the places there are have ids, they stand in a table with a place
for each pair (:mod:`engine.kernels.pair_table`), otherwise they are hashed. Ids stay when the form changes.

One writer. Cost: O(1) a pair, amortised, without hashing where the table is dense; 4 to 32 bytes a pair for
the table and 12 for words.
"""

from __future__ import annotations

import numpy as np

from engine.dataflow.arrangements.word_table import WordTable
from engine.kernels import pair_table as kernels
from engine.kernels.pair_table import PLACE_BITS, PLACE_MASK
from engine.kernels.word_table import EMPTY
from engine.model.batch import Int32Array, Int64Array
from engine.model.capacities import USUAL, Capacities

SPARSE = 8
"""A table has at most so many places a pair."""
DENSE_MIN = 4_096
"""Tables of so few places are dense anyway."""


class PairTable:
    """keys, places: int32, none below 0."""

    def __init__(self, capacities: Capacities = USUAL) -> None:
        self._dense_min = capacities.first(DENSE_MIN)
        self._ids = WordTable(1, capacities)
        """Has the ids of all pairs; pairs are looked up in it where ``_dense`` is None."""
        self._dense: Int32Array | None = None
        self._extent = 0, 0
        """Above all keys and places that were seen."""

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def capacity(self) -> int:
        """Above all ids; arrays by id have to be as long."""
        return self._ids.capacity

    def number(self, keys: Int32Array, places: Int32Array) -> Int32Array:
        """int32[n]: the ids of n pairs; new pairs get some."""
        self._fit(int(keys.max(initial=-1)) + 1, int(places.max(initial=-1)) + 1, len(keys))
        if self._dense is None:
            return self._ids.number(_words(keys, places).reshape(-1, 1))
        ids, done = np.empty(len(keys), np.int32), 0
        while True:
            done = kernels.number(keys, places, done, self._dense, *self._ids.ids(), ids)
            if done == len(keys):
                return ids
            self._ids.make_room()

    def keys_of(self, ids: Int32Array) -> Int32Array:
        """int32[n]: the key of each."""
        keys: Int32Array = (self._ids.words[ids, 0] >> PLACE_BITS).astype(np.int32)
        return keys

    def places_of(self, ids: Int32Array) -> Int32Array:
        """int32[n]: the place of each."""
        places: Int32Array = (self._ids.words[ids, 0] & PLACE_MASK).astype(np.int32)
        return places

    def used(self) -> Int32Array:
        """The ids that are in use, ascending."""
        return self._ids.used()

    def release(self, ids: Int32Array) -> None:
        """Give back ids, each once."""
        if self._dense is None:
            self._ids.release(ids)
        else:
            kernels.release(ids, self._dense, *self._ids.ids())

    def _fit(self, keys: int, places: int, n: int) -> None:
        """The form for n pairs more, of keys and places below these."""
        if self._dense is not None and keys <= self._dense.shape[0] and places <= self._dense.shape[1]:
            return
        self._extent = keys, places = max(keys, self._extent[0]), max(places, self._extent[1])
        was, self._dense = self._dense, None
        sparse = SPARSE if was is not None else SPARSE // 2  # so that it does not go to and fro
        if keys * places <= max(self._dense_min, sparse * (len(self) + n)):
            if was is not None:
                keys, places = _grown(was.shape[0], keys), _grown(was.shape[1], places)
            self._dense = np.full((keys, places), EMPTY, np.int32)
            kernels.lay_out(self.used(), self._ids.words, self._dense)
        elif was is not None:
            self._ids.renew()

    @property
    def nbytes(self) -> int:
        return self._ids.nbytes + (0 if self._dense is None else self._dense.nbytes)

    def _check(self) -> None:
        if self._dense is None:
            self._ids._check()
            return
        used = self.used()
        assert len(used) == len(self) == int((self._dense != EMPTY).sum())
        assert self._dense[self.keys_of(used), self.places_of(used)].tolist() == used.tolist()


def _words(keys: Int32Array, places: Int32Array) -> Int64Array:
    words: Int64Array = (keys.astype(np.int64) << PLACE_BITS) | places
    return words


def _grown(was: int, wanted: int) -> int:
    return was if wanted <= was else max(wanted, was + (was >> 1))

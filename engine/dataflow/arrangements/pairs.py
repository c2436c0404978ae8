"""Ids of (key, place) pairs: of the groups of queries, of the values of groups, of the rows of answers.

A key is a tuple of values (:mod:`engine.dataflow.arrangements.keys`), a place a number of whoever asks: a
column, a cell. Keys live as long as a pair has them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.dataflow.arrangements.keys import Keys
from engine.dataflow.arrangements.pair_table import PairTable
from engine.kernels import marks
from engine.model.batch import BoolArray, Column, Int32Array, Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.model.types import Type


class Pairs:
    """Gives ids to pairs whose keys are of one list of types. One writer."""

    def __init__(self, types: Sequence[Type], capacities: Capacities = USUAL) -> None:
        self._keys = Keys(types, capacities)
        self._table = PairTable(capacities)
        self._known: BoolArray = np.zeros(self._table.capacity, np.bool_)

    def __len__(self) -> int:
        return len(self._table)

    @property
    def capacity(self) -> int:
        """Above all ids; arrays by id have to be as long."""
        return self._table.capacity

    def number_keys(self, columns: Sequence[Column], n: int) -> Int32Array:
        """int32[n]: keys by number, of n rows that all are part of a pair (:meth:`of`) next."""
        return self._keys.number(columns, n)

    def of(self, keys: Int32Array, places: Int32Array) -> Int32Array:
        """int32[n]: the id of each pair; new pairs get one."""
        ids = self._table.number(keys, places)
        if len(self._known) < self.capacity:
            known = np.zeros(self.capacity, np.bool_)
            known[: len(self._known)] = self._known
            self._known = known
        made = np.empty(len(ids), np.int32)
        made = made[: marks.unmarked(ids, self._known, made)]
        if len(made):
            self._keys.take(self.keys_of(made))
        return ids

    def keys_of(self, ids: Int32Array) -> Int32Array:
        """int32[n]: the key of each."""
        return self._table.keys_of(ids)

    def places_of(self, ids: Int32Array) -> Int32Array:
        """int32[n]: the place of each."""
        return self._table.places_of(ids)

    def columns(self, ids: Int32Array) -> list[Column]:
        """The values of the keys of these."""
        return self._keys.columns(self.keys_of(ids))

    def release_unused(self, ids: Int32Array, counts: Int64Array) -> None:
        """Those of these go that are counted 0 times. counts: int64 by id. ids: any of them several times."""
        unused = np.empty(len(ids), np.int32)
        self.release(unused[: marks.unused(ids, counts, unused)])

    def used(self) -> Int32Array:
        """All ids there are, ascending."""
        return self._table.used()

    def release(self, ids: Int32Array) -> None:
        """These go, each once."""
        if len(ids):
            self._keys.give_back(self.keys_of(ids))
            self._known[ids] = False
            self._table.release(ids)

    @property
    def nbytes(self) -> int:
        return self._keys.nbytes + self._table.nbytes + self._known.nbytes

    def _check(self) -> None:
        self._keys._check()
        self._table._check()
        used = self.used()
        assert bool(self._known[used].all())
        assert int(self._known.sum()) == len(used)

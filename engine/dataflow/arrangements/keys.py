"""Values of keys under numbers, the same for rows whose values nothing tells apart
(:mod:`engine.dataflow.arrangements.words`). A number is given back when nobody has it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.dataflow.arrangements.row_store import longer
from engine.dataflow.arrangements.word_table import WordTable
from engine.dataflow.arrangements.words import Words
from engine.kernels import marks
from engine.model.batch import Column, Int32Array
from engine.model.capacities import USUAL, Capacities
from engine.model.types import Type


class Keys:
    """Numbers the keys of one list of types. One writer."""

    def __init__(
        self, types: Sequence[Type], capacities: Capacities = USUAL, *, nullable: bool = True
    ) -> None:
        """nullable: False: no value is NULL."""
        self._words = Words(types, capacities, nullable=nullable)
        self._table = WordTable(self._words.width, capacities)
        self._users: Int32Array = np.zeros(self._table.capacity, np.int32)

    def __len__(self) -> int:
        return len(self._table)

    @property
    def capacity(self) -> int:
        """Above all numbers; arrays by number have to be as long."""
        return self._table.capacity

    def number(self, columns: Sequence[Column], n: int) -> Int32Array:
        """int32[n]: the numbers of n rows. Whoever asks takes all of them (:meth:`take`)."""
        ids = self._table.number(self._words.encode(columns, n))
        self._make_room()
        return ids

    def find(self, columns: Sequence[Column], n: int) -> Int32Array:
        """int32[n]: the same, -1 of rows whose values have no number."""
        return self._table.find(self._words.encode(columns, n))

    def take(self, ids: Int32Array) -> None:
        """A user more for each of these, as often as it stands there."""
        marks.count_more(ids, self._users)

    def give_back(self, ids: Int32Array) -> None:
        """A user less for each of these; numbers without users go."""
        unused = np.empty(len(ids), np.int32)
        self._table.release(unused[: marks.count_less(ids, self._users, unused)])
        if self._words.is_wasteful(len(self._table)):
            self._words.shrink(self._table.words, self._table.used())
            self._table.renew()

    def columns(self, ids: Int32Array) -> list[Column]:
        """The values of these numbers."""
        places = range(len(self._words.types))
        if len(ids) > self.capacity:  # each is decoded once
            return [self._words.column(place, self._table.words).take(ids) for place in places]
        tuples = self._table.words[ids]
        return [self._words.column(place, tuples) for place in places]

    def _make_room(self) -> None:
        if len(self._users) < self._table.capacity:
            self._users = longer(self._users, self._table.capacity)

    @property
    def nbytes(self) -> int:
        return self._table.nbytes + self._users.nbytes + self._words.nbytes

    def _check(self) -> None:
        self._table._check()
        assert bool((self._users[self._table.used()] > 0).all())

"""Rows that are there, found by their ids: their values, and the words that order them.

A row has a *slot* as long as it is there, and until heaps have let go of it
(:mod:`engine.dataflow.arrangements.ordered_runs`). An id that comes back has another slot. Cost: O(1) a row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.dataflow.arrangements.id_slots import NOBODY, IdSlots
from engine.dataflow.arrangements.words import Words
from engine.model.batch import BoolArray, Column, Int32Array, Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.model.types import Type

Array = npt.NDArray[Any]

ROOM_MIN = 256


class RowStore:
    """words: int64[capacity, W], the last of them the id; gone: bool; held: int32, by how many entries; by
    slot. One writer.
    """

    def __init__(
        self, width: int, id_width: int, types: Sequence[Type], capacities: Capacities = USUAL
    ) -> None:
        """types: of the columns that are kept."""
        room = capacities.first(ROOM_MIN)
        self._codes = Words(types, capacities)
        self._ids = IdSlots(id_width, capacities)
        self._id_width = id_width
        self._values: Int64Array = np.zeros((room, self._codes.width), np.int64)
        self.words: Int64Array = np.zeros((room, width), np.int64)
        self.gone: BoolArray = np.ones(room, np.bool_)
        self.held: Int32Array = np.zeros(room, np.int32)
        self._free: Int32Array = np.arange(room, dtype=np.int32)[::-1].copy()
        self._free_count = room
        self._waiting: list[Int32Array] = []

    def __len__(self) -> int:
        """How many rows are there."""
        return len(self._ids)

    @property
    def used_count(self) -> int:
        """How many slots are in use."""
        return len(self.gone) - self._free_count

    # --- rows that come and go --------------------------------------------------------------------

    def move(
        self, ids: Int64Array, words: Int64Array, columns: Sequence[Column], came: BoolArray, went: BoolArray
    ) -> Int32Array:
        """The slots of rows that come, go, or do both; -1 of others. Slots of those that go are good until
        :meth:`let_go`.
        """
        slots = np.full(len(ids), NOBODY, np.int32)
        leaving = np.flatnonzero(went & ~came)
        left = ids[leaving]
        slots[leaving] = self._ids.find(left)
        entering = np.flatnonzero(came)
        slots[entering] = self._new(words[entering], [column.take(entering) for column in columns])
        stay = np.flatnonzero(came & ~went)
        self._ids.put(ids[stay], slots[stay])
        self._ids.remove(left, slots[leaving])
        return slots

    def found(self, ids: Int64Array, words: Int64Array, columns: Sequence[Column]) -> Int32Array:
        """The slots of rows that are there, those that are new to the store taken in."""
        slots = self._ids.find(ids)
        new = np.flatnonzero(slots == NOBODY)
        slots[new] = self._new(words[new], [column.take(new) for column in columns])
        self._ids.put(ids[new], slots[new])
        return slots

    def let_go(self, slots: Int32Array) -> None:
        """Rows that are gone, each once, leave their slots, as soon as nothing holds them."""
        held = self.held[slots] > 0
        if held.any():
            self._waiting.append(slots[held])
            slots = slots[~held]
        self._put_back(slots)

    def released(self) -> None:
        """Entries have let go of rows that are gone."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            self.let_go(np.concatenate(waiting))
        if self._codes.is_wasteful(self.used_count):
            self._codes.shrink(self._values, self.used())

    def only(self, wanted: BoolArray) -> None:
        """Others go, of rows that are there. wanted: bool[capacity]."""
        unwanted = np.flatnonzero(~self.gone & ~wanted).astype(np.int32)
        self._ids.remove(self._ids_of(unwanted), unwanted)
        self.gone[unwanted] = True
        self.let_go(unwanted)

    def columns(self, slots: Int32Array) -> Callable[[int], Column]:
        """The values of rows, by the place of a column among those that are kept."""
        tuples, codes = self._values[slots], self._codes.as_they_stand()
        return lambda place: codes.column(place, tuples)

    def column(self, place: int, slots: Int32Array) -> Column:
        """The values of rows in one of the columns that are kept, read at once."""
        nulls = self._values[slots, self._codes.null_word(place)]
        return self._codes.decode(place, self._values[slots, place], nulls)

    def _new(self, words: Int64Array, columns: Sequence[Column]) -> Int32Array:
        n = len(words)
        if n > self._free_count:
            self._grow(n)
        self._free_count -= n
        slots = self._free[self._free_count : self._free_count + n].copy()
        self.words[slots] = words
        self._values[slots] = self._codes.encode(columns, n)
        self.gone[slots] = False
        return slots

    def _ids_of(self, slots: Int64Array | Int32Array) -> Int64Array:
        """int64[n, w]: ids are the last of the words."""
        return self.words[slots, self.words.shape[1] - self._id_width :]

    def _put_back(self, slots: Int32Array) -> None:
        self._free[self._free_count : self._free_count + len(slots)] = slots
        self._free_count += len(slots)

    def used(self) -> Int32Array:
        """Slots of rows that are there, or that something holds."""
        used = np.ones(len(self.gone), np.bool_)
        used[self._free[: self._free_count]] = False
        return np.flatnonzero(used).astype(np.int32)

    def _grow(self, more: int) -> None:
        before = len(self.gone)
        room = max(2 * before, before + more)
        self.words, self._values = longer(self.words, room), longer(self._values, room)
        self.held, self._free = longer(self.held, room), longer(self._free, room)
        self.gone = np.concatenate([self.gone, np.ones(room - before, np.bool_)])
        self._put_back(np.arange(before, room, dtype=np.int32)[::-1])

    @property
    def nbytes(self) -> int:
        arrays = (self._values, self.words, self.gone, self.held, self._free)
        return self._ids.nbytes + self._codes.nbytes + sum(each.nbytes for each in arrays)

    def _check(self) -> None:
        self._ids._check()
        there = np.flatnonzero(~self.gone)
        assert len(there) == len(self._ids)
        assert self._ids.find(self._ids_of(there)).tolist() == there.tolist()
        free = self._free[: self._free_count]
        assert len(np.unique(free)) == len(free)
        assert bool(self.gone[free].all())
        assert not self.held[free].any()
        waiting = sum(map(len, self._waiting))
        assert len(free) + waiting + len(there) == len(self.gone)


def longer(array: Array, room: int) -> Array:
    """As long as is wanted, with zeros behind what is there."""
    made = np.zeros((room, *array.shape[1:]), array.dtype)
    made[: len(array)] = array
    return made


def with_none(array: Int32Array, room: int) -> Int32Array:
    """As long as is wanted, with -1 behind what is there."""
    made = np.full(room, -1, np.int32)
    made[: len(array)] = array
    return made


def grown(array: Array, room: int) -> Array:
    """As long as is needed, with zeros behind what is there."""
    return array if len(array) >= room else longer(array, room)

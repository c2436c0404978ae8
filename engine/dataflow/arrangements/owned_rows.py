"""Rows under slots, by key, and whose they are: what stores of the rows of an input have in common.

A row is under a *slot* from the turn in which it enters until the transition in which it leaves is over, so
that what is told of it can be read as long as that is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Sequence
from dataclasses import dataclass

import numpy as np

from engine.changes.temporal_relation import Interval
from engine.dataflow.arrangements.keys import Keys
from engine.dataflow.arrangements.row_store import longer
from engine.dataflow.buffers.buffer import Work
from engine.dataflow.delta import Delta
from engine.kernels import arranged as kernels
from engine.kernels.arranged import NOBODY, Arranged
from engine.model.batch import BoolArray, Column, Int32Array, Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.model.lazy_columns import LazyColumns

ROOM_MIN = 256


@dataclass(frozen=True, slots=True)
class KeyValues:
    """What n rows are found by. columns: of the key. usable: bool[n], which rows have one. order: int64[n],
    what the rows of a key are ordered by; None: they are not.
    """

    columns: Sequence[Column]
    usable: BoolArray
    order: Int64Array | None = None

    def take(self, rows: Int64Array) -> KeyValues:
        """Those of the rows at these places, in that order."""
        columns = [column.take(rows) for column in self.columns]
        return KeyValues(columns, self.usable[rows], None if self.order is None else self.order[rows])


class OwnedRows(ABC):
    """One writer. keys: shared by the inputs of a join."""

    def __init__(self, keys: Keys, id_words: int, capacities: Capacities = USUAL) -> None:
        self._room_min = room = capacities.first(ROOM_MIN)
        self._keys = keys
        self._width = 0
        self._id_of: Int64Array = np.empty((room, id_words), np.int64)
        self._alive: BoolArray = np.zeros(room, np.bool_)
        self._free: Int32Array = np.arange(room - 1, -1, -1, dtype=np.int32)
        self._free_count = room
        self._used = 0
        self._done = Work()
        self.moving: BoolArray = np.zeros(room, np.bool_)
        """By slot: whether a row moves on this turn."""
        self.rows = _no_rows(keys.capacity, room)

    def __len__(self) -> int:
        return len(self._alive) - self._free_count

    # --- rows that enter and leave ----------------------------------------------------------------

    @abstractmethod
    def apply(self, delta: Delta, keys: KeyValues, interval: Interval) -> Int32Array:
        """int32[n]: the slots of the rows of a delta on a turn, which enter or leave; NOBODY for those that
        are not kept.
        """

    @abstractmethod
    def stand(self, delta: Delta, keys: KeyValues) -> None:
        """Rows are there for some columns, perhaps for others already."""

    @abstractmethod
    def learn(self, columns: Sequence[Column], kept: Container[int] | None) -> None:
        """These are the columns of the rows; to be told before any row comes. kept: the places of those whose
        values are kept; None: of all.
        """

    def cover_keys(self) -> None:
        """Make room for all keys there are."""
        known = self.rows.first
        if len(known) < self._keys.capacity:
            first = np.full(self._keys.capacity, NOBODY, np.int32)
            first[: len(known)] = known
            self.rows = self.rows._replace(first=first)

    def has(self, numbers: Int32Array) -> BoolArray:
        """bool[n]: of which keys there is a row, by number; of none where there is no key."""
        self.cover_keys()
        found: BoolArray = (numbers != NOBODY) & (self.rows.first[numbers] != NOBODY)
        return found

    def turned(self, slots: Int32Array) -> None:
        """A turn on which these rows moved is over."""
        self.moving[slots[slots != NOBODY]] = False

    @abstractmethod
    def settle(self, until: int) -> None:
        """A transition is over: rows that left on it go; the others are there before the next one. until:
        see :attr:`engine.dataflow.turn.Turn.clock`.
        """

    def sweep(self, until: int) -> None:
        """Rows go that left by an instant of the clock and still stand."""
        return

    def drop(self, columns: Int32Array) -> None:
        """No row belongs to these columns any more."""
        dropped = np.zeros((int(columns.max()) >> 6) + 1, np.uint64)
        np.bitwise_or.at(dropped, columns >> 6, np.uint64(1) << (columns & 63).astype(np.uint64))
        slots = self.slots()
        kernels.drop_owners(slots, self.rows, dropped)
        self._abandon(slots[self.rows.counts[slots] == 0])

    def disown(self, slots: Int32Array, rows: Int64Array, owners: Int32Array, gone: BoolArray) -> None:
        """Rows belong to some of their columns no more; those of nobody go. rows, owners: of each pair of one
        of these rows and a column, rows ascending; gone: which pairs.
        """
        left = ~gone
        counts, before = (np.bincount(each, minlength=len(slots)) for each in (rows[left], rows))
        fewer = (counts > 0) & (counts < before)
        if fewer.any():
            starts = np.concatenate([[0], np.cumsum(counts[fewer])])
            self._put_owners(slots[fewer], starts, owners[left & fewer[rows]])
        self._abandon(slots[counts == 0])

    @abstractmethod
    def _abandon(self, slots: Int32Array) -> None:
        """Rows of nobody go."""

    def _number(self, keys: KeyValues, rows: Int64Array) -> Int32Array:
        """int32: the keys of some rows by number, NOBODY of those without."""
        if keys.usable.all():
            columns = [column if len(rows) == len(column) else column.take(rows) for column in keys.columns]
            known = self._keys.number(columns, len(rows))
            self._keys.take(known)
            return known
        numbers: Int32Array = np.full(len(rows), NOBODY, np.int32)
        having = np.flatnonzero(keys.usable[rows])
        known = self._keys.number([column.take(rows[having]) for column in keys.columns], len(having))
        self._keys.take(known)
        numbers[having] = known
        return numbers

    def _give_owners(self, slots: Int32Array, more: Delta) -> None:
        """Rows that are there belong to the columns of a delta too, row by row."""
        starts, owners = self.owners_of(slots)
        counts, others = np.diff(starts), np.diff(more.starts)
        order = np.argsort(
            np.concatenate([np.repeat(np.arange(len(slots)), each) for each in (counts, others)]),
            kind="stable",
        )
        both = np.concatenate([[0], np.cumsum(counts + others)])
        self._put_owners(slots, both, np.concatenate([owners, more.owners])[order])

    def _put_owners(self, slots: Int32Array, starts: Int64Array, owners: Int32Array) -> None:
        self._make_room_for(len(owners))
        self._used = kernels.put_owners(slots, starts, owners, self.rows, self._used)

    def _release(self, slots: Int32Array) -> None:
        """The slots are free."""
        kernels.unlink(slots, self.rows)
        self._done.deleted += len(slots)
        self._alive[slots] = False
        keys = self.rows.key[slots]
        self._keys.give_back(keys[keys != NOBODY])
        self.rows.counts[slots] = 0
        self._free[self._free_count : self._free_count + len(slots)] = slots
        self._free_count += len(slots)

    # --- room -------------------------------------------------------------------------------------

    def _allocate(self, n: int) -> Int32Array:
        room = len(self._alive)
        if n > self._free_count:
            more = max(2 * room, room + n)
            self._grow(more)
            free = np.empty(more, np.int32)
            free[: more - room] = np.arange(more - 1, room - 1, -1)
            free[more - room : more - room + self._free_count] = self._free[: self._free_count]
            self._free, self._free_count = free, more - room + self._free_count
        self.cover_keys()
        self._free_count -= n
        self._done.inserted += n
        slots = self._free[self._free_count : self._free_count + n].copy()
        self._alive[slots] = True
        return slots

    def _grow(self, room: int) -> None:
        """Room for so many slots."""
        by_slot = ("key", "following", "previous", "valid_from", "valid_to", "starts", "counts")
        self.rows = self.rows._replace(**{name: longer(getattr(self.rows, name), room) for name in by_slot})
        self._id_of = longer(self._id_of, room)
        self._alive, self.moving = longer(self._alive, room), longer(self.moving, room)

    def _make_room_for(self, more: int) -> None:
        """Room for runs of so many owners."""
        room = len(self.rows.words)
        if self._used + more <= room:
            return
        slots = self.slots()
        used = int(self.rows.counts[slots].sum())
        room = max(self._room_min, 2 * (used + more))
        words, bits = np.empty(room, np.int32), np.empty(room, np.uint64)
        self._used = kernels.pack_owners(slots, self.rows, words, bits)
        self.rows = self.rows._replace(words=words, bits=bits)

    # --- what is read -----------------------------------------------------------------------------

    @property
    @abstractmethod
    def work(self) -> Work:
        """What was done to the rows."""

    def slots(self) -> Int32Array:
        """All that are in use, ascending."""
        return np.flatnonzero(self._alive).astype(np.int32)

    def owners_of(self, slots: Int32Array) -> tuple[Int64Array, Int32Array]:
        """(starts, owners): those of slot i are owners[starts[i]:starts[i + 1]], ascending."""
        starts = np.empty(len(slots) + 1, np.int64)
        kernels.count_owners(slots, self.rows, starts)
        owners = np.empty(starts[-1], np.int32)
        kernels.spell_owners(slots, self.rows, owners)
        return starts, owners

    def ids_of(self, slots: Int32Array) -> Int64Array:
        """int64[n, w]."""
        return self._id_of[slots]

    @abstractmethod
    def columns(self, slots: Int32Array) -> LazyColumns:
        """The values of rows, NULL where a slot is NOBODY; of columns that are kept. To be read before the
        transition is over.
        """

    @property
    def width(self) -> int:
        """How many columns rows have."""
        return self._width

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (*self.rows, self._id_of, self._alive, self.moving))

    def _check(self) -> None:
        assert not self.moving.any()
        slots = self.slots()
        assert len(slots) == len(self)
        assert bool((self.rows.counts[slots] > 0).all())


def _no_rows(keys: int, room: int) -> Arranged:
    return Arranged(
        first=np.full(keys, NOBODY, np.int32),
        key=np.empty(room, np.int32),
        following=np.empty(room, np.int32),
        previous=np.empty(room, np.int32),
        valid_from=np.empty(room, np.int64),
        valid_to=np.empty(room, np.int64),
        starts=np.empty(room, np.int64),
        counts=np.zeros(room, np.int32),
        words=np.empty(room, np.int32),
        bits=np.empty(room, np.uint64),
    )

"""The rows of one input of a join, by key: what an operator keeps of rows that have ids.

A row is under a *slot* from the turn in which it enters until the transition in which it leaves is over, so
that what is told of it can be read as long as that is. Cost: O(1) a row, amortised, and its owners.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.changes.temporal_relation import Interval
from engine.changes.transition import FOREVER, NEVER
from engine.dataflow.arrangements.keys import Keys
from engine.dataflow.arrangements.word_table import WordTable
from engine.dataflow.arrangements.words import Words
from engine.dataflow.delta import Delta
from engine.kernels import arranged as kernels
from engine.kernels import asof
from engine.kernels.arranged import NOBODY, Arranged
from engine.model.batch import BoolArray, Column, Int32Array, Int64Array
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


class KeyedRows:
    """One writer. keys: shared by the inputs of a join. keeps_all: rows without a key are kept too."""

    def __init__(self, keys: Keys, id_words: int, *, keeps_all: bool) -> None:
        self._keys = keys
        self._keeps_all = keeps_all
        self._places: tuple[int, ...] = ()
        self._codec: Words | None = None
        self._width = 0
        self._ids = WordTable(id_words)
        self._slot_of: Int32Array = np.full(self._ids.capacity, NOBODY, np.int32)
        self._id_number: Int32Array = np.empty(ROOM_MIN, np.int32)
        self._id_of: Int64Array = np.empty((ROOM_MIN, id_words), np.int64)
        self._tuples: Int64Array = np.empty((ROOM_MIN, 0), np.int64)
        self._alive: BoolArray = np.zeros(ROOM_MIN, np.bool_)
        self._free: Int32Array = np.arange(ROOM_MIN - 1, -1, -1, dtype=np.int32)
        self._ended: list[Int32Array] = []
        self._moved: list[Int32Array] = []
        self._used = 0
        self.moving: BoolArray = np.zeros(ROOM_MIN, np.bool_)
        """By slot: whether a row moves on this turn."""
        self.order: Int64Array = np.zeros(ROOM_MIN, np.int64)
        """By slot: what the rows of a key are ordered by, if they are."""
        self.rows = _no_rows(keys.capacity)

    def __len__(self) -> int:
        return len(self._alive) - len(self._free)

    # --- rows that enter and leave ----------------------------------------------------------------

    def apply(self, delta: Delta, keys: KeyValues, interval: Interval) -> Int32Array:
        """int32[n]: the slots of the rows of a delta on a turn, which enter or leave; NOBODY for those that
        are not kept.
        """
        temporal, n = delta.temporal, len(delta.temporal)
        kept = np.ones(n, np.bool_) if self._keeps_all else keys.usable
        slots: Int32Array = np.full(n, NOBODY, np.int32)
        enters, leaves = temporal.valid_from > interval.since, temporal.valid_to <= interval.until
        known = np.flatnonzero(kept & ~enters)
        if len(known):
            numbers = self._ids.find(np.ascontiguousarray(delta.ids_of()[known]))
            slots[known] = self._slot_of[numbers]
            assert bool((numbers >= 0).all())
            self.rows.valid_to[slots[known]] = np.where(leaves[known], temporal.valid_to[known], FOREVER)
        new = np.flatnonzero(kept & enters)
        if len(new):
            ends = np.where(leaves[new], temporal.valid_to[new], FOREVER)
            slots[new] = self._put(delta.take(new), keys, new, temporal.valid_from[new], ends)
        self.moving[slots[kept]] = True
        self._ended.append(slots[kept & leaves])
        return slots

    def stand(self, delta: Delta, keys: KeyValues) -> None:
        """Rows are there for some columns, perhaps for others already."""
        kept = np.ones(len(keys.usable), np.bool_) if self._keeps_all else keys.usable
        numbers = self._ids.find(delta.ids_of())
        known = np.flatnonzero(kept & (numbers >= 0))
        if len(known):
            slots = self._slot_of[numbers[known]]
            starts, owners = self.owners_of(slots)
            more = delta.take(known)
            counts, others = np.diff(starts), np.diff(more.starts)
            order = np.argsort(
                np.concatenate([np.repeat(np.arange(len(slots)), each) for each in (counts, others)]),
                kind="stable",
            )
            both = np.concatenate([[0], np.cumsum(counts + others)])
            self._put_owners(slots, both, np.concatenate([owners, more.owners])[order])
        new = np.flatnonzero(kept & (numbers < 0))
        if len(new):
            never, forever = np.full(len(new), NEVER), np.full(len(new), FOREVER)
            self._put(delta.take(new), keys, new, never, forever)

    def learn(self, columns: Sequence[Column], kept: Container[int] | None) -> None:
        """These are the columns of the rows; to be told before any row comes. kept: the places of those whose
        values are kept; None: of all.
        """
        if self._codec is None:
            self._width = len(columns)
            self._places = tuple(place for place in range(self._width) if kept is None or place in kept)
            self._codec = Words([columns[place].type for place in self._places])
            self._tuples = np.zeros((len(self._alive), self._codec.width), np.int64)

    def cover_keys(self) -> None:
        """Make room for all keys there are."""
        known = self.rows.first
        if len(known) < self._keys.capacity:
            first = np.full(self._keys.capacity, NOBODY, np.int32)
            first[: len(known)] = known
            self.rows = self.rows._replace(first=first)

    def turned(self, slots: Int32Array) -> None:
        """A turn on which these rows moved is over."""
        moved = slots[slots != NOBODY]
        self.moving[moved] = False
        self._moved.append(moved)

    def settle(self) -> None:
        """A transition is over: rows that left on it go, the others are there before the next."""
        for moved in self._moved:
            self.rows.valid_from[moved] = NEVER
        self._moved.clear()
        if self._ended:
            self._release(np.concatenate(self._ended))
            self._ended.clear()

    def drop(self, columns: Int32Array) -> None:
        """No row belongs to these columns any more."""
        dropped = np.zeros((int(columns.max()) >> 6) + 1, np.uint64)
        np.bitwise_or.at(dropped, columns >> 6, np.uint64(1) << (columns & 63).astype(np.uint64))
        slots = self.slots()
        kernels.drop_owners(slots, self.rows, dropped)
        self._release(slots[self.rows.counts[slots] == 0])

    def _number(self, keys: KeyValues, rows: Int64Array) -> Int32Array:
        """int32: the keys of some rows by number, NOBODY of those without."""
        numbers: Int32Array = np.full(len(rows), NOBODY, np.int32)
        having = np.flatnonzero(keys.usable[rows])
        known = self._keys.number([column.take(rows[having]) for column in keys.columns], len(having))
        self._keys.take(known)
        numbers[having] = known
        return numbers

    def _put(
        self, delta: Delta, keys: KeyValues, places: Int64Array, begins: Int64Array, ends: Int64Array
    ) -> Int32Array:
        """places: those of the rows of the delta among the keys."""
        n, columns = len(delta.temporal), delta.temporal.relation.columns
        assert self._codec is not None
        numbers = self._number(keys, places)
        slots = self._allocate(n)
        rows = self.rows
        rows.key[slots] = numbers
        rows.valid_from[slots], rows.valid_to[slots] = begins, ends
        self._tuples[slots] = self._codec.encode([columns[place] for place in self._places], n)
        ids = delta.ids_of()
        self._id_of[slots] = ids
        self._id_number[slots] = NOBODY
        stay = np.flatnonzero(ends == FOREVER)
        known = self._ids.number(np.ascontiguousarray(ids[stay]))
        if len(self._slot_of) < self._ids.capacity:
            self._slot_of = _longer(self._slot_of, self._ids.capacity)
        self._slot_of[known] = slots[stay]
        self._id_number[slots[stay]] = known
        self._put_owners(slots, delta.starts, delta.owners)
        if keys.order is None:
            kernels.link(slots, self.rows)
        else:
            self.order[slots] = keys.order[places]
            asof.link_in_order(slots, self.rows, self.order, self._id_of)
        return slots

    def _put_owners(self, slots: Int32Array, starts: Int64Array, owners: Int32Array) -> None:
        self._make_room_for(len(owners))
        self._used = kernels.put_owners(slots, starts, owners, self.rows, self._used)

    def _release(self, slots: Int32Array) -> None:
        if not len(slots):
            return
        kernels.unlink(slots, self.rows)
        self._alive[slots] = False
        numbers = self._id_number[slots]
        last = numbers >= 0
        last[last] = self._slot_of[numbers[last]] == slots[last]
        self._ids.release(numbers[last])
        keys = self.rows.key[slots]
        self._keys.give_back(keys[keys != NOBODY])
        self.rows.counts[slots] = 0
        self._free = np.concatenate([self._free, slots])
        if self._codec is not None and self._codec.is_wasteful(len(self)):
            self._codec.shrink(self._tuples, self.slots())

    # --- room -------------------------------------------------------------------------------------

    def _allocate(self, n: int) -> Int32Array:
        room = len(self._alive)
        if n > len(self._free):
            more = max(2 * room, room + n)
            by_slot = ("key", "following", "previous", "valid_from", "valid_to", "starts", "counts")
            self.rows = self.rows._replace(
                **{name: _longer(getattr(self.rows, name), more) for name in by_slot}
            )
            self._id_number, self._id_of = _longer(self._id_number, more), _longer(self._id_of, more)
            self._tuples = _longer(self._tuples, more)
            self._alive, self.moving = _longer(self._alive, more), _longer(self.moving, more)
            self.order = _longer(self.order, more)
            self._free = np.concatenate([np.arange(more - 1, room - 1, -1, dtype=np.int32), self._free])
        self.cover_keys()
        slots, self._free = self._free[len(self._free) - n :], self._free[: len(self._free) - n]
        self._alive[slots] = True
        return slots

    def _make_room_for(self, more: int) -> None:
        """Room for runs of so many owners."""
        room = len(self.rows.words)
        if self._used + more <= room:
            return
        slots = self.slots()
        used = int(self.rows.counts[slots].sum())
        room = max(ROOM_MIN, 2 * (used + more))
        words, bits = np.empty(room, np.int32), np.empty(room, np.uint64)
        self._used = kernels.pack_owners(slots, self.rows, words, bits)
        self.rows = self.rows._replace(words=words, bits=bits)

    # --- what is read -----------------------------------------------------------------------------

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

    def columns(self, slots: Int32Array) -> LazyColumns:
        """The values of rows, NULL where a slot is NOBODY; of columns that are kept. To be read before the
        transition is over.
        """
        there = slots != NOBODY
        whole = bool(there.all())

        def make(place: int) -> Column:
            assert self._codec is not None
            at = self._places.index(place)
            words, nulls = self._tuples[slots, at], self._tuples[slots, self._codec.null_word(at)]
            if whole:
                return self._codec.decode(at, words, nulls)
            column = self._codec.decode(at, np.where(there, words, 0), np.where(there, nulls, 0))
            valid = there if column.valid is None else there & column.valid
            return Column(column.type, column.values, valid, column.strings)

        return LazyColumns(self._width, make)

    @property
    def width(self) -> int:
        """How many columns rows have."""
        return self._width

    @property
    def nbytes(self) -> int:
        arrays = (*self.rows, self._tuples, self._id_of, self._id_number, self._slot_of, self._alive)
        held = 0 if self._codec is None else self._codec.nbytes
        return sum(array.nbytes for array in arrays) + self._ids.nbytes + held

    def _check(self) -> None:
        assert not self._ended
        assert not self.moving.any()
        slots = self.slots()
        assert len(slots) == len(self)
        assert bool((self.rows.counts[slots] > 0).all())
        assert bool((self._slot_of[self._id_number[slots]] == slots).all())
        assert len(self._ids) == len(slots)
        assert self._ids.find(self._id_of[slots]).tolist() == self._id_number[slots].tolist()


def _no_rows(keys: int) -> Arranged:
    return Arranged(
        first=np.full(keys, NOBODY, np.int32),
        key=np.empty(ROOM_MIN, np.int32),
        following=np.empty(ROOM_MIN, np.int32),
        previous=np.empty(ROOM_MIN, np.int32),
        valid_from=np.empty(ROOM_MIN, np.int64),
        valid_to=np.empty(ROOM_MIN, np.int64),
        starts=np.empty(ROOM_MIN, np.int64),
        counts=np.zeros(ROOM_MIN, np.int32),
        words=np.empty(ROOM_MIN, np.int32),
        bits=np.empty(ROOM_MIN, np.uint64),
    )


def _longer(array: npt.NDArray[Any], room: int) -> npt.NDArray[Any]:
    """The same, 0 behind it."""
    longer = np.zeros((room, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer

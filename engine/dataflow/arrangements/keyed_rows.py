"""The rows of one input of a join, by key: what an operator keeps of rows that have ids.

Their values are kept with them. Cost: O(1) a row, amortised, and its owners.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

import numpy as np

from engine.changes.temporal_relation import Interval
from engine.changes.transition import FOREVER, NEVER
from engine.dataflow.arrangements.id_slots import IdSlots
from engine.dataflow.arrangements.keys import Keys
from engine.dataflow.arrangements.owned_rows import KeyValues, OwnedRows
from engine.dataflow.arrangements.row_store import longer
from engine.dataflow.arrangements.words import Words
from engine.dataflow.buffers.buffer import Work
from engine.dataflow.delta import Delta
from engine.kernels import arranged as kernels
from engine.kernels import asof
from engine.kernels.arranged import NOBODY
from engine.model.batch import Column, Int32Array, Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.model.lazy_columns import LazyColumns


class KeyedRows(OwnedRows):
    """One writer. keeps_all: rows without a key are kept too. is_early: rows may be let go of before they
    leave, which is told all the same.
    """

    def __init__(
        self,
        keys: Keys,
        id_words: int,
        *,
        keeps_all: bool,
        is_early: bool = False,
        capacities: Capacities = USUAL,
    ) -> None:
        super().__init__(keys, id_words, capacities)
        self._capacities = capacities
        self._keeps_all = keeps_all
        self._is_early = is_early
        self._places: tuple[int, ...] = ()
        self._codec: Words | None = None
        self._ids = IdSlots(id_words, capacities)
        self._tuples: Int64Array = np.empty((len(self._alive), 0), np.int64)
        self._ended: list[Int32Array] = []
        self._moved: list[Int32Array] = []
        self.order: Int64Array = np.zeros(len(self._alive), np.int64)
        """By slot: what the rows of a key are ordered by, if they are."""

    def apply(self, delta: Delta, keys: KeyValues, interval: Interval) -> Int32Array:
        temporal, n = delta.temporal, len(delta.temporal)
        kept = np.ones(n, np.bool_) if self._keeps_all else keys.usable
        slots: Int32Array = np.full(n, NOBODY, np.int32)
        enters, leaves = temporal.valid_from > interval.since, temporal.valid_to <= interval.until
        known = np.flatnonzero(kept & ~enters)
        if len(known):
            slots[known] = self._ids.find(delta.ids_of()[known])
            if self._is_early:
                known = known[slots[known] != NOBODY]
            assert bool((slots[known] != NOBODY).all())
            self.rows.valid_to[slots[known]] = np.where(leaves[known], temporal.valid_to[known], FOREVER)
        new = np.flatnonzero(kept & enters)
        if len(new):
            ends = np.where(leaves[new], temporal.valid_to[new], FOREVER)
            slots[new] = self._put(delta.take(new), keys, new, temporal.valid_from[new], ends)
        kept &= slots != NOBODY
        self.moving[slots[kept]] = True
        self._ended.append(slots[kept & leaves])
        return slots

    def stand(self, delta: Delta, keys: KeyValues) -> None:
        kept = np.ones(len(keys.usable), np.bool_) if self._keeps_all else keys.usable
        slots = self._ids.find(delta.ids_of())
        known = np.flatnonzero(kept & (slots != NOBODY))
        if len(known):
            self._give_owners(slots[known], delta.take(known))
        new = np.flatnonzero(kept & (slots == NOBODY))
        if len(new):
            never, forever = np.full(len(new), NEVER), np.full(len(new), FOREVER)
            self._put(delta.take(new), keys, new, never, forever)

    def learn(self, columns: Sequence[Column], kept: Container[int] | None) -> None:
        if self._codec is None:
            self._width = len(columns)
            self._places = tuple(place for place in range(self._width) if kept is None or place in kept)
            self._codec = Words([columns[place].type for place in self._places], self._capacities)
            self._tuples = np.zeros((len(self._alive), self._codec.width), np.int64)

    def turned(self, slots: Int32Array) -> None:
        super().turned(slots)
        self._moved.append(slots[slots != NOBODY])

    def settle(self, until: int) -> None:
        """The rows that stay are there before the next transition."""
        for moved in self._moved:
            self.rows.valid_from[moved] = NEVER
        self._moved.clear()
        if self._ended:
            self._drop(np.concatenate(self._ended))
            self._ended.clear()

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
        stay = ends == FOREVER
        self._ids.put(ids[stay], slots[stay])
        self._put_owners(slots, delta.starts, delta.owners)
        if keys.order is None:
            kernels.link(slots, self.rows)
        else:
            self.order[slots] = keys.order[places]
            asof.link_in_order(slots, self.rows, self.order, self._id_of)
        return slots

    def let_go(self, slots: Int32Array) -> None:
        """Rows go, between two transitions."""
        self._drop(slots)

    def _abandon(self, slots: Int32Array) -> None:
        self._drop(slots)

    def _drop(self, slots: Int32Array) -> None:
        if not len(slots):
            return
        self._release(slots)
        self._ids.remove(self._id_of[slots], slots)
        if self._codec is not None and self._codec.is_wasteful(len(self)):
            self._codec.shrink(self._tuples, self.slots())

    def _grow(self, room: int) -> None:
        super()._grow(room)
        self.order, self._tuples = longer(self.order, room), longer(self._tuples, room)

    def columns(self, slots: Int32Array) -> LazyColumns:
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

    def read(self, ids: Int64Array) -> LazyColumns:
        """The values of rows by their ids, int64[n, w], before the transition on which they leave is over.
        Where rows that are here one after another have one id, they are equal.
        """
        slots = self._ids.find(np.ascontiguousarray(ids))
        passed = np.flatnonzero(slots == NOBODY)
        if len(passed):  # they entered and left within a turn
            ended, known = np.concatenate(self._ended), IdSlots(ids.shape[1], self._capacities)
            known.put(self._id_of[ended], ended)
            slots[passed] = known.find(np.ascontiguousarray(ids[passed]))
        return self.columns(slots)

    @property
    def work(self) -> Work:
        """Each row that goes was told to."""
        return replace(self._done, negative=self._done.deleted)

    @property
    def nbytes(self) -> int:
        held = 0 if self._codec is None else self._codec.nbytes
        return super().nbytes + self._tuples.nbytes + self.order.nbytes + self._ids.nbytes + held

    def _check(self) -> None:
        super()._check()
        assert not self._ended
        slots = self.slots()
        assert len(self._ids) == len(slots)
        assert self._ids.find(self._id_of[slots]).tolist() == slots.tolist()

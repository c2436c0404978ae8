"""Rows that were told with the instants at which they will leave, and the cells that each is in.

A row is kept as its id and its exit, without values. A buffer finds the rows that leave by their exits
(:mod:`engine.dataflow.buffers`). Cost: that of the buffer, and O(1) a row and cell.
"""

from __future__ import annotations

import numpy as np

from engine.changes.temporal_relation import Interval
from engine.changes.transition import FOREVER
from engine.dataflow.arrangements.id_slots import NOBODY, IdSlots
from engine.dataflow.arrangements.row_store import grown, longer
from engine.dataflow.buffers.buffer import Work
from engine.dataflow.buffers.settings import StateSettings
from engine.dataflow.delta import Delta
from engine.dataflow.policy import KeptEdge
from engine.kernels import row_cells as kernels
from engine.kernels.column_words import UInt64Array
from engine.kernels.row_cells import RowCells
from engine.kernels.set_copies import Moves
from engine.model.batch import BoolArray, Int32Array, Int64Array

ROOM_MIN = 256


class CellRows:
    """Keeps the rows of one input and the cells that each is in. One writer. ids: int64[room, w] and exits:
    int64[room], by slot. bits: uint64 by entry, for which columns of its cell a row is in that, where cells
    are of words of columns.
    """

    def __init__(self, edge: KeptEdge, id_words: int, settings: StateSettings | None = None) -> None:
        self._settings = settings or StateSettings()
        capacities = self._settings.capacities
        room = capacities.first(ROOM_MIN)
        self._edge = edge
        self._buffer = edge.buffer(self._settings)
        self._worked = Work()
        self._slots = IdSlots(id_words, capacities) if edge.is_early else None
        self.ids: Int64Array = np.zeros((room, id_words), np.int64)
        self.exits: Int64Array = np.zeros(room, np.int64)
        self.bits: UInt64Array = np.zeros(0, np.uint64)
        self._free: Int32Array = np.arange(room, dtype=np.int32)[::-1].copy()
        self._free_count = room
        self.held = RowCells(
            np.full(room, kernels.NONE, np.int32),
            np.zeros(room, np.int32),
            np.zeros(room, np.int32),
            np.zeros(room, np.int32),
            np.arange(room, dtype=np.int32)[::-1].copy(),
            np.array([room], np.int64),
        )

    def __len__(self) -> int:
        return len(self.exits) - self._free_count

    @property
    def entry_count(self) -> int:
        """How many entries there are."""
        return len(self.held.cells) - int(self.held.top[0])

    @property
    def entry_room(self) -> int:
        """Above all entries; arrays by entry have to be as long."""
        return len(self.held.cells)

    # --- rows that enter and leave ----------------------------------------------------------------

    def move(
        self, delta: Delta, cells: Int32Array, interval: Interval, bits: UInt64Array | None = None
    ) -> tuple[Moves, Int32Array, Int32Array]:
        """The rows of a delta enter, those whose exit has come leave: (the events, whose rows are those that
        leave, then those that enter; the entry of each pair of a row and a cell; the slots of those that
        leave, which are good until :meth:`release`). cells, bits: of each pair of the delta.
        """
        temporal, ids = delta.temporal, delta.ids_of()
        enters: BoolArray = temporal.valid_from > interval.since
        if not enters.all():
            early = np.flatnonzero(~enters)
            gone, gone_at = self._take_early(ids[early]), temporal.valid_to[early]
            kept = np.repeat(enters, delta.counts())
            delta, cells = delta.take(np.flatnonzero(enters)), cells[kept]
            bits = None if bits is None else bits[kept]
            temporal, ids = delta.temporal, ids[enters]
        else:
            gone, gone_at = np.empty(0, np.int32), np.empty(0, np.int64)
        slots = self._new(ids, temporal.valid_to, temporal.valid_to > interval.until)
        self._insert(slots)
        entered = self._put(slots, delta.starts, cells, bits)
        left = self._buffer.take(interval.until)
        gone, gone_at = np.concatenate([left.places, gone]), np.concatenate([left.exits, gone_at])
        starts, leaving = self.entries_of(gone)
        entries = np.concatenate([leaving, entered])
        starts = np.concatenate([starts, starts[-1] + delta.starts[1:]])
        at = np.concatenate([gone_at, temporal.valid_from])
        signs = np.ones(len(at), np.int8)
        signs[: len(gone)] = -1
        rows = np.arange(len(at))
        if bool((at[1:] < at[:-1]).any()):
            rows = np.argsort(at, kind="stable")
            at, signs = at[rows], signs[rows]
        return Moves(at, rows, signs, starts, self.held.cells[entries]), entries, gone

    def stand(self, delta: Delta, cells: Int32Array, bits: UInt64Array | None = None) -> Int32Array:
        """Rows are there in these cells, perhaps in others already; the entry of each pair. To be followed by
        :meth:`stood`.
        """
        ids = delta.ids_of()
        slots = self._found(ids)
        new = np.flatnonzero(slots == NOBODY)
        slots[new] = self._new(ids[new], delta.temporal.valid_to[new], np.ones(len(new), np.bool_))
        return self._put(slots, delta.starts, cells, bits)

    def stood(self) -> None:
        """All rows are there."""
        self._worked += self._buffer.work
        self._buffer = self._edge.buffer(self._settings)
        self._insert(self.slots())

    def release(self, slots: Int32Array) -> None:
        """Rows that left go."""
        if len(slots):
            kernels.release(slots, self.held)
            self._put_back(slots)

    def drop(self, dropped: BoolArray) -> None:
        """Entries go, and rows that have no other. dropped: bool by entry."""
        slots = self.slots()
        kernels.drop(slots, dropped, self.held)
        alone = slots[self.held.heads[slots] == kernels.NONE]
        self._buffer.remove(alone, self.exits[alone])
        self._put_back(alone)

    def entries_of(self, slots: Int32Array) -> tuple[Int64Array, Int32Array]:
        """(starts, entries): those of the row in slots[i] are entries[starts[i]:starts[i + 1]]."""
        starts = np.empty(len(slots) + 1, np.int64)
        kernels.count(slots, self.held, starts)
        entries = np.empty(int(starts[-1]), np.int32)
        kernels.spell(slots, self.held, entries)
        return starts, entries

    def _take_early(self, ids: Int64Array) -> Int32Array:
        """int32[n]: the slots of rows that leave before their exit."""
        assert self._slots is not None
        slots = self._slots.find(ids)
        assert bool((slots != NOBODY).all())
        self._buffer.remove(slots, self.exits[slots])
        return slots

    def _insert(self, slots: Int32Array) -> None:
        exits = self.exits[slots]
        if bool((exits[1:] < exits[:-1]).any()):
            order = np.argsort(exits, kind="stable")
            slots, exits = slots[order], exits[order]
        self._buffer.insert(slots, exits)

    def _found(self, ids: Int64Array) -> Int32Array:
        """int32[n]: the slots of ids, NOBODY of those that are not here."""
        if self._slots is not None or not len(self):
            return np.full(len(ids), NOBODY, np.int32) if self._slots is None else self._slots.find(ids)
        known, slots = IdSlots(self.ids.shape[1], self._settings.capacities), self.slots()
        known.put(self.ids[slots], slots)
        return known.find(ids)

    # --- slots ------------------------------------------------------------------------------------

    def slots(self) -> Int32Array:
        """All that are in use, ascending."""
        used = np.ones(len(self.exits), np.bool_)
        used[self._free[: self._free_count]] = False
        return np.flatnonzero(used).astype(np.int32)

    def _new(self, ids: Int64Array, exits: Int64Array, stay: BoolArray) -> Int32Array:
        """stay: which are looked for by their ids; no two of these have the same."""
        n = len(exits)
        if n > self._free_count:
            self._grow(n)
        self._free_count -= n
        slots = self._free[self._free_count : self._free_count + n].copy()
        self.ids[slots], self.exits[slots] = ids, exits
        if self._slots is not None:
            self._slots.put(ids[stay], slots[stay])
        return slots

    def _put_back(self, slots: Int32Array) -> None:
        if self._slots is not None:
            self._slots.remove(self.ids[slots], slots)
        self._free[self._free_count : self._free_count + len(slots)] = slots
        self._free_count += len(slots)

    def _put(
        self, slots: Int32Array, starts: Int64Array, cells: Int32Array, bits: UInt64Array | None
    ) -> Int32Array:
        """int32[pairs]: the entry of each pair of a row and a cell."""
        held = self.held
        free, before = int(held.top[0]), len(held.cells)
        if len(cells) > free:
            room = max(2 * before, before + len(cells))
            by_entry = ("slots", "cells", "sibling", "free")
            held = held._replace(**{name: longer(getattr(held, name), room) for name in by_entry})
            held.free[free : free + room - before] = np.arange(before, room)[::-1]
            held.top[0] += room - before
            self.held = held
        entries = np.empty(len(cells), np.int32)
        kernels.put(slots, starts, cells, held, entries)
        if bits is not None:
            self.bits = grown(self.bits, len(held.cells))
            self.bits[entries] = bits
        return entries

    def _grow(self, more: int) -> None:
        before = len(self.exits)
        room = max(2 * before, before + more)
        self.ids, self.exits = longer(self.ids, room), longer(self.exits, room)
        self._free = longer(self._free, room)
        heads = np.full(room, kernels.NONE, np.int32)
        heads[:before] = self.held.heads
        self.held = self.held._replace(heads=heads)
        self._free[self._free_count : self._free_count + room - before] = np.arange(before, room)[::-1]
        self._free_count += room - before

    @property
    def work(self) -> Work:
        """What was done to its entries."""
        return self._worked + self._buffer.work

    @property
    def nbytes(self) -> int:
        ids = 0 if self._slots is None else self._slots.nbytes
        held = sum(array.nbytes for array in self.held)
        rows = self.ids.nbytes + self.exits.nbytes + self.bits.nbytes + self._free.nbytes
        return ids + held + rows + self._buffer.nbytes

    def _check(self) -> None:
        self._buffer._check()
        slots = self.slots()
        assert len(slots) == len(self) == len(self._buffer)
        assert sorted(self._buffer.live(-FOREVER).tolist()) == slots.tolist()
        starts, entries = self.entries_of(slots)
        assert bool((np.diff(starts) > 0).all())
        assert bool((self.held.slots[entries] == np.repeat(slots, np.diff(starts))).all())
        free = self.held.free[: int(self.held.top[0])]
        assert sorted([*entries.tolist(), *free.tolist()]) == list(range(self.entry_room))
        if self._slots is not None:
            self._slots._check()
            assert self._slots.find(self.ids[slots]).tolist() == slots.tolist()

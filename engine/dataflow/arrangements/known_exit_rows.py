"""Rows that were told with the instants at which they will leave: their ids, keys and exits, no values.

Values are read from where the rows come from (:meth:`engine.dataflow.node.Node.read`) when somebody needs
them. When a row leaves is seen from its exit, by a buffer (:mod:`engine.dataflow.buffers`); rows that left
may stand for a while, which a look at their exit tells. Cost: that of the buffer, and O(1) a row.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

import numpy as np

from engine.changes.temporal_relation import Interval
from engine.changes.transition import NEVER
from engine.dataflow.arrangements.exit_rows import RowBlock
from engine.dataflow.arrangements.id_slots import IdSlots
from engine.dataflow.arrangements.keys import Keys
from engine.dataflow.arrangements.owned_rows import KeyValues, OwnedRows
from engine.dataflow.buffers.buffer import Work
from engine.dataflow.buffers.fifo import FifoBuffer
from engine.dataflow.buffers.settings import StateSettings
from engine.dataflow.delta import Delta
from engine.dataflow.policy import KeptEdge
from engine.kernels import arranged as kernels
from engine.kernels.arranged import NOBODY
from engine.model.batch import Column, Int32Array, Int64Array
from engine.model.lazy_columns import LazyColumns
from engine.operators.relation import Relation

Read = Callable[[Int64Array], Relation]
"""The values of rows by their ids, int64[n, w]."""


class KnownExitRows(OwnedRows):
    """One writer. Rows that left may stand for a while: :attr:`engine.dataflow.policy.KeptEdge.lazy`."""

    def __init__(
        self, keys: Keys, id_words: int, edge: KeptEdge, read: Read, settings: StateSettings | None = None
    ) -> None:
        self._settings = settings or StateSettings()
        capacities = self._settings.capacities
        super().__init__(keys, id_words, capacities)
        self._exits = edge.buffer(self._settings)
        self._read = read
        self._ids = IdSlots(id_words, capacities) if edge.is_early else None
        self._early: list[Int32Array] = []
        self._entered: list[Int32Array] = []
        self._edge = edge
        self._in_order = isinstance(self._exits, FifoBuffer)
        self._last_exit = NEVER
        self._swept: int | None = None

    def apply(self, delta: Delta, keys: KeyValues, interval: Interval) -> Int32Array:
        temporal, kept = delta.temporal, keys.usable
        enters = temporal.valid_from > interval.since
        if kept.all() and enters.all():
            slots = self._put(delta, keys, np.arange(len(temporal)), interval.until)
        else:
            slots = np.full(len(temporal), NOBODY, np.int32)
            known = np.flatnonzero(kept & ~enters)
            if len(known):  # before others come, which may have their ids
                slots[known] = self._take_early(delta.ids_of()[known], temporal.valid_to[known])
            new = np.flatnonzero(kept & enters)
            slots[new] = self._put(delta.take(new), keys, new, interval.until)
        self.moving[slots[slots != NOBODY]] = True
        return slots

    def _take_early(self, ids: Int64Array, instants: Int64Array) -> Int32Array:
        """int32[n]: the slots of rows that leave at other instants than they were told to."""
        assert self._ids is not None
        slots = self._ids.find(ids)
        assert bool((slots != NOBODY).all())
        self._exits.remove(slots, self.rows.valid_to[slots])
        self.rows.valid_to[slots] = instants
        self._early.append(slots)
        return slots

    def stand(self, delta: Delta, keys: KeyValues) -> None:
        slots = self._found(delta.ids_of()) if len(self) else np.full(len(delta.temporal), NOBODY, np.int32)
        known = np.flatnonzero(keys.usable & (slots != NOBODY))
        if len(known):
            self._give_owners(slots[known], delta.take(known))
        new = np.flatnonzero(keys.usable & (slots == NOBODY))
        if len(new):
            slots = self._put(delta.take(new), keys, new, NEVER)
            self.rows.valid_from[slots] = NEVER

    def _found(self, ids: Int64Array) -> Int32Array:
        """int32[n]: the slots of ids, NOBODY of those that are not here."""
        if self._ids is not None:
            return self._ids.find(ids)
        known, slots = IdSlots(self._id_of.shape[1], self._settings.capacities), self.slots()
        known.put(self._id_of[slots], slots)
        return known.find(ids)

    def _put(self, delta: Delta, keys: KeyValues, places: Int64Array, until: int | None = None) -> Int32Array:
        """places: those of the rows of the delta among the keys."""
        return self._enter(RowBlock.of(delta), self._number(keys, places), until)

    def _enter(self, block: RowBlock, numbers: Int32Array | int, until: int | None = None) -> Int32Array:
        """int32[n]: the slots of rows that come. numbers: of their keys. until: of the turn; rows that are
        gone by then are not found by their ids, which others may have after them.
        """
        slots, rows = self._allocate(block.n), self.rows
        rows.key[slots] = numbers
        rows.valid_from[slots], rows.valid_to[slots] = block.valid_from, block.valid_to
        self._id_of[slots] = block.ids
        if self._ids is not None:
            stay = slice(None) if until is None else block.valid_to > until
            self._ids.put(block.ids[stay], slots[stay])
        self._put_owners(slots, *block.spread())
        kernels.link(slots, self.rows)
        if self._in_order and block.n:
            if block.valid_to[0] < self._last_exit:
                self._list_exits_anew()
                return slots
            self._last_exit = int(block.valid_to[-1])
        self._exits.insert(slots, block.valid_to)
        return slots

    def _list_exits_anew(self) -> None:
        """Rows of columns that came later stand behind others that leave after them: put all in order."""
        slots = self.slots()
        slots = slots[np.argsort(self.rows.valid_to[slots], kind="stable")]
        work, self._exits = self._exits.work, self._edge.buffer(self._settings)
        self._exits.insert(slots, self.rows.valid_to[slots])
        self._last_exit, self._exits.work = int(self.rows.valid_to[slots[-1]]), work

    def learn(self, columns: Sequence[Column], kept: Container[int] | None) -> None:
        self._width = len(columns)

    def turned(self, slots: Int32Array) -> None:
        super().turned(slots)
        self._entered.append(slots[slots != NOBODY])

    def settle(self, until: int) -> None:
        """Rows whose exit has come go, unless that can wait."""
        early, self._early = self._early, []
        entered, self._entered = self._entered, []
        for slots in entered:
            self.rows.valid_from[slots] = NEVER
        for slots in early:
            self._drop(slots)
        if self._swept is None or until - self._swept >= self._edge.lazy(self._settings):
            self.sweep(until)

    def sweep(self, until: int) -> None:
        """All rows go whose exit has come."""
        self._swept = until
        self._drop(self._exits.expire(until))

    def _drop(self, slots: Int32Array) -> None:
        if len(slots):
            if self._ids is not None:
                self._ids.remove(self._id_of[slots], slots)
            self._release(slots)

    def _abandon(self, slots: Int32Array) -> None:
        self._exits.remove(slots, self.rows.valid_to[slots])
        self._drop(slots)

    def columns(self, slots: Int32Array) -> LazyColumns:
        ids = self._id_of[slots]
        read: list[Relation] = []

        def make(place: int) -> Column:
            if not read:
                read.append(self._read(ids))
            return read[0].columns[place]

        return LazyColumns(self._width, make)

    @property
    def work(self) -> Work:
        """What its buffer did."""
        return self._exits.work

    @property
    def nbytes(self) -> int:
        return super().nbytes + self._exits.nbytes + (0 if self._ids is None else self._ids.nbytes)

    def _check(self) -> None:
        super()._check()
        self._exits._check()
        assert len(self._exits) == len(self)

"""Rows until their exit that may leave before it, and are found by their ids then."""

from __future__ import annotations

import numpy as np

from engine.changes.transition import NEVER
from engine.dataflow.arrangements.exit_rows import ExitRows, RowBlock
from engine.dataflow.arrangements.keys import Keys
from engine.dataflow.arrangements.known_exit_rows import KnownExitRows
from engine.dataflow.buffers.settings import StateSettings
from engine.dataflow.policy import KeptEdge
from engine.kernels.arranged import NOBODY
from engine.model.batch import Int32Array, Int64Array
from engine.operators.relation import Relation


class EarlyRows(ExitRows):
    """One writer. Cost: O(1) a row, and that of the buffer; what is read is copied, O(rows)."""

    def __init__(self, id_words: int, edge: KeptEdge, settings: StateSettings | None = None) -> None:
        self._rows = _Slots(id_words, edge, settings or StateSettings())
        self.work = self._rows.work

    def __len__(self) -> int:
        return len(self._rows)

    def insert(self, block: RowBlock) -> None:
        if block.n:
            self._rows.enter(block)

    def leave_early(self, ids: Int64Array) -> None:
        self._rows.leave(self._rows.find(ids))

    def expire(self, until: int) -> RowBlock:
        slots = self._rows.due(until)
        gone = self._rows.block(slots)
        self._rows.let_go(slots)
        return gone

    def drop_columns(self, columns: Int32Array) -> None:
        self._rows.drop(columns)

    def blocks(self) -> list[RowBlock]:
        return [self._rows.block(self._rows.slots())]

    @property
    def nbytes(self) -> int:
        return self._rows.nbytes

    def _check(self) -> None:
        self._rows._check()


class _Slots(KnownExitRows):
    """Without keys."""

    def __init__(self, id_words: int, edge: KeptEdge, settings: StateSettings) -> None:
        super().__init__(Keys([], settings.capacities), id_words, edge, _no_values, settings)

    def enter(self, block: RowBlock) -> None:
        self._enter(block, NOBODY, NEVER)

    def find(self, ids: Int64Array) -> Int32Array:
        slots = self._found(ids)
        assert bool((slots != NOBODY).all())
        return slots

    def leave(self, slots: Int32Array) -> None:
        self._abandon(slots)

    def due(self, until: int) -> Int32Array:
        return self._exits.expire(until)

    def block(self, slots: Int32Array) -> RowBlock:
        starts, owners = self.owners_of(slots)
        one_each = len(owners) == len(slots)
        rows = self.rows
        return RowBlock(
            self.ids_of(slots),
            rows.valid_from[slots],
            rows.valid_to[slots],
            None if one_each else starts,
            owners,
        )

    def let_go(self, slots: Int32Array) -> None:
        self._drop(slots)


def _no_values(ids: Int64Array) -> Relation:
    return Relation([], len(np.atleast_1d(ids)))

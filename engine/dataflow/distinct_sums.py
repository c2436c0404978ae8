"""Sums and counts of distinct values: a value counts as long as a row of its cell has it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.algebra.aggregate.stage import AggregateCall
from engine.dataflow.arrangements.cells import CellEvents, Versions, resized
from engine.dataflow.arrangements.row_store import grown
from engine.dataflow.counted import Counted
from engine.dataflow.delta import Delta
from engine.dataflow.part import Part, first_versions
from engine.dataflow.totals import ROWS, Totals
from engine.kernels import multisets as kernels
from engine.kernels.cells import carry
from engine.model.batch import Column, Int32Array, Int64Array
from engine.model.capacities import USUAL, Capacities


class DistinctSums(Part):
    """Sums and counts of distinct values."""

    def __init__(
        self, calls: Sequence[int], over: Sequence[AggregateCall], capacities: Capacities = USUAL
    ) -> None:
        super().__init__(calls)
        self._totals = Totals(over)
        self._values = Counted(over[0].arguments[0], over[0].filter, capacities=capacities)
        self._counts: Int64Array = np.zeros(0, np.int64)
        self._state: Int64Array = np.zeros((0, self._totals.width), np.int64)

    def enter(self, delta: Delta, cells: Int32Array, capacity: int) -> None:
        entries, _, _ = self._values.of(delta, cells)
        values = self._added(delta, capacity)
        kernels.enter_distinct(delta.starts, cells, entries, values, self._counts, self._state)
        self._carry(cells)

    def fold(self, delta: Delta, entering: CellEvents, versions: Versions, capacity: int) -> list[Column]:
        entries, ids, _ = self._values.of(delta, entering.cells)
        values = self._added(delta, capacity)
        made = np.empty((len(versions), self._totals.width), np.int64)
        kernels.distinct(
            entering.at,
            entering.rows,
            entering.weights,
            entering.starts,
            entering.cells,
            entries,
            values,
            self._counts,
            self._state,
            first_versions(versions, capacity),
            versions.valid_from,
            versions.following(),
            made,
        )
        columns = self._totals.columns(made)
        self._carry(versions.cells[versions.latest()])
        self._values.pairs.release_unused(ids, self._counts)
        return columns

    def standing(self, cells: Int32Array) -> list[Column]:
        self._state = resized(self._state, int(cells.max(initial=-1)) + 1, self._totals.width)
        return self._totals.columns(self._state[cells])

    def release(self, cells: Int32Array, *, empty: bool) -> None:
        if not empty:
            entries = self._values.of_cells(cells)
            self._counts[entries] = 0
            self._values.pairs.release(entries)
        self._state[cells[cells < len(self._state)]] = 0

    def _added(self, delta: Delta, capacity: int) -> Int64Array:
        values = self._totals.values(delta.temporal.relation)
        values[:, ROWS] = 0
        self._counts = grown(self._counts, self._values.pairs.capacity)
        self._state = resized(self._state, capacity, self._totals.width)
        return values

    def _carry(self, cells: Int32Array) -> None:
        cells = np.unique(cells)
        states = self._state[cells]
        for planes in self._totals.full(states):
            self._state = resized(self._state, len(self._state), self._totals.width)
            states = self._state[cells]
            carry(states, planes)
            self._state[cells] = states

    @property
    def nbytes(self) -> int:
        return self._values.pairs.nbytes + self._counts.nbytes + self._state.nbytes

"""Calls that no row can be taken out of, ARRAY_AGG and the sketches: those of a cell that rows enter or leave
are made again from all its rows, for each version.

Cost: O(rows of these cells * their versions), and a pass over the cells of all rows that are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.algebra.aggregate.stage import AggregateCall
from engine.changes.transition import FOREVER, NEVER
from engine.dataflow.arrangements.cells import CellEvents, Versions
from engine.dataflow.arrangements.row_store import longer
from engine.dataflow.arrangements.word_table import WordTable
from engine.dataflow.arrangements.words import Words
from engine.dataflow.delta import Delta
from engine.dataflow.part import Part
from engine.model.batch import BoolArray, Column, Int32Array, Int64Array, concatenate_columns
from engine.model.capacities import USUAL, Capacities
from engine.model.expressions import columns_of
from engine.model.lazy_columns import LazyColumns
from engine.model.runs import places_of
from engine.operators.aggregate import call_columns
from engine.operators.relation import Relation

PIECE = 1 << 20
"""About so many rows of versions are looked at at a time."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of cells with their lives. cells: int32[n]; valid_from, valid_to: int64[n]; ids: int64[n, w];
    tuples: int64[n, W], their values.
    """

    cells: Int32Array
    valid_from: Int64Array
    valid_to: Int64Array
    ids: Int64Array
    tuples: Int64Array

    def and_(self, other: _Rows) -> _Rows:
        """Those of both."""
        return _Rows(
            np.concatenate([self.cells, other.cells]),
            np.concatenate([self.valid_from, other.valid_from]),
            np.concatenate([self.valid_to, other.valid_to]),
            np.concatenate([self.ids, other.ids]),
            np.concatenate([self.tuples, other.tuples]),
        )

    def take(self, rows: Int64Array) -> _Rows:
        """Those at these places, in that order."""
        return _Rows(
            self.cells[rows], self.valid_from[rows], self.valid_to[rows], self.ids[rows], self.tuples[rows]
        )


class Recomputed(Part):
    """One writer. A row of a cell is an *entry*, found by the row's id and the cell."""

    def __init__(
        self,
        calls: Sequence[int],
        over: Sequence[AggregateCall],
        id_words: int,
        capacities: Capacities = USUAL,
    ) -> None:
        """id_words: how many words the ids of rows have, which are in the order of the relation where a call
        depends on that.
        """
        super().__init__(calls)
        self._over = tuple(over)
        expressions = [expression for call in over for expression in call.expressions()]
        read = {each.index: each.type for expression in expressions for each in columns_of(expression)}
        self._places = tuple(sorted(read))
        self._values = Words([read[place] for place in self._places], capacities)
        self._table = WordTable(id_words + 1, capacities)
        """Gives an id, the entry, to the words of a row's id with its cell."""
        self._tuples: Int64Array = np.zeros((self._table.capacity, self._values.width), np.int64)

    def enter(self, delta: Delta, cells: Int32Array, capacity: int) -> None:
        n = len(delta.temporal)
        self._put(self._moved(delta, cells, np.ones(n, np.bool_), np.zeros(n, np.bool_)))

    def fold(self, delta: Delta, entering: CellEvents, versions: Versions, capacity: int) -> list[Column]:
        came, went = (np.zeros(len(delta.temporal), np.bool_) for _ in range(2))
        came[entering.rows[entering.weights > 0]] = True
        went[entering.rows[entering.weights < 0]] = True
        moved = self._moved(delta, entering.cells, came, went)
        leaving = np.flatnonzero((moved.valid_from == NEVER) & (moved.valid_to != FOREVER))
        self._table.release(self._table.find(_names(moved.take(leaving))))
        staying = self._of_cells(np.unique(versions.cells))
        columns = self._made(versions.cells, versions.valid_from, staying.and_(moved))
        self._put(moved.take(np.flatnonzero((moved.valid_from != NEVER) & (moved.valid_to == FOREVER))))
        self._shrink()  # not before: strings of rows that moved have codes by now
        return columns

    def standing(self, cells: Int32Array) -> list[Column]:
        return self._made(cells, np.full(len(cells), NEVER), self._of_cells(cells))

    def release(self, cells: Int32Array, *, empty: bool) -> None:
        if not empty:
            used = self._table.used()
            self._table.release(used[np.isin(self._table.words[used, -1], cells)])
            self._shrink()

    # --- entries ----------------------------------------------------------------------------------

    def _moved(self, delta: Delta, cells: Int32Array, came: BoolArray, went: BoolArray) -> _Rows:
        """The pairs of a delta. came, went: bool by row."""
        rows, temporal = delta.rows(), delta.temporal
        begins, ends = np.where(came, temporal.valid_from, NEVER), np.where(went, temporal.valid_to, FOREVER)
        columns = [temporal.relation.columns[place] for place in self._places]
        tuples = self._values.encode(columns, len(temporal))
        return _Rows(cells, begins[rows], ends[rows], delta.ids_of()[rows], tuples[rows])

    def _put(self, rows: _Rows) -> None:
        """Rows stay."""
        entries = self._table.number(_names(rows))
        if len(self._tuples) < self._table.capacity:
            self._tuples = longer(self._tuples, self._table.capacity)
        self._tuples[entries] = rows.tuples

    def _shrink(self) -> None:
        """Strings and arrays that no row has go, once there are many."""
        if self._values.is_wasteful(len(self._table)):
            self._values.shrink(self._tuples, self._table.used())

    def _of_cells(self, cells: Int32Array) -> _Rows:
        """All that stay. O(entries)."""
        used = self._table.used()
        used = used[np.isin(self._table.words[used, -1], cells)]
        names = self._table.words[used]
        never, forever = np.full(len(used), NEVER), np.full(len(used), FOREVER)
        return _Rows(names[:, -1].astype(np.int32), never, forever, names[:, :-1], self._tuples[used])

    # --- values -----------------------------------------------------------------------------------

    def _made(self, cells: Int32Array, at: Int64Array, rows: _Rows) -> list[Column]:
        """The calls of versions: of a cell at an instant. rows: all of these cells."""
        names = _names(rows)[:, ::-1].T  # the last one is the most significant
        rows = rows.take(np.lexsort(np.roll(names, -1, axis=0)))
        low, high = np.searchsorted(rows.cells, cells), np.searchsorted(rows.cells, cells, "right")
        ends = np.cumsum(high - low)
        cuts = np.unique(np.searchsorted(ends, np.arange(PIECE, ends[-1] if len(ends) else 0, PIECE)))
        pieces = [
            self._of_versions(low[some], high[some], at[some], rows)
            for some in np.split(np.arange(len(cells)), cuts)
        ]
        return [concatenate_columns(columns[0].type, columns) for columns in zip(*pieces, strict=True)]

    def _of_versions(self, low: Int64Array, high: Int64Array, at: Int64Array, rows: _Rows) -> list[Column]:
        version = np.repeat(np.arange(len(at)), high - low)
        row = places_of(low, high - low)
        there = np.flatnonzero((rows.valid_from[row] <= at[version]) & (rows.valid_to[row] > at[version]))
        version, row = version[there], row[there]
        tuples = rows.tuples[row]

        def column(place: int) -> Column:
            at = self._places.index(place)
            return self._values.column(at, tuples)

        width = self._places[-1] + 1 if self._places else 0
        relation = Relation(LazyColumns(width, column), len(row))
        return call_columns(self._over, relation, version, len(low))

    @property
    def nbytes(self) -> int:
        return self._table.nbytes + self._tuples.nbytes + self._values.nbytes


def _names(rows: _Rows) -> Int64Array:
    """int64[n, w + 1]: what entries are found by."""
    return np.ascontiguousarray(np.column_stack([rows.ids, rows.cells]))

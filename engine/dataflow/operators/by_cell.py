"""Operators that give one row for each value of a column: DISTINCT, however it keeps rows."""

from __future__ import annotations

import numpy as np

from engine.changes.context import EvaluationContext
from engine.changes.temporal_relation import TemporalRelation
from engine.dataflow.delta import Delta
from engine.dataflow.operators.runs import ByRun
from engine.kernels.distinct import EmittedRows
from engine.model.batch import Int32Array, Int64Array
from engine.operators.relation import Relation


class ByCell(ByRun):
    """The id of a row is its cell: a value, and a column that has it."""

    id_words = 1

    def _of(self, given: EmittedRows) -> Delta:
        cells = given.cells
        temporal = TemporalRelation(self._row(cells), given.valid_from, given.valid_to)
        ids = lambda: cells.astype(np.int64).reshape(-1, 1)  # noqa: E731
        return Delta.of_one_each(temporal, self._columns_of(cells), ids)

    def read(self, context: EvaluationContext, ids: Int64Array) -> Relation:
        return self._row(ids[:, 0].astype(np.int32))

    def _row(self, cells: Int32Array) -> Relation:
        assert self._groups is not None
        return Relation(self._groups.columns(cells), len(cells))

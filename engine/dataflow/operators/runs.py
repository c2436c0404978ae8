"""Operators that keep rows by run: a run is all rows of a column, or those with one value of some keys."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from engine.dataflow.arrangements.pairs import Pairs
from engine.dataflow.delta import Delta
from engine.dataflow.kept_columns import KeepsColumns
from engine.dataflow.node import Node, UnaryNode
from engine.model.batch import BoolArray, Int32Array
from engine.model.expressions import Expression
from engine.operators.keys import with_one_zero


class ByRun(KeepsColumns, UnaryNode):
    """A node with runs by number."""

    def __init__(self, below: Node, keys: Sequence[Expression]) -> None:
        super().__init__(below)
        assert below.id_words
        self._keys = keys
        self._forget_runs()

    def _forget_runs(self) -> None:
        self._groups = (
            Pairs([key.type for key in self._keys], self.settings.capacities) if self._keys else None
        )
        self._forget_columns()

    # --- columns ----------------------------------------------------------------------------------

    def _drop(self, columns: Int32Array) -> None:
        runs = self._runs_of_columns(columns)
        self._drop_runs(runs)
        if self._groups is not None:
            self._groups.release(runs)

    @abstractmethod
    def _drop_runs(self, runs: Int32Array) -> None:
        """All rows of some runs go."""

    # --- runs -------------------------------------------------------------------------------------

    def _runs_of(self, delta: Delta) -> Int32Array:
        """int32[pairs]: the run of each. Without keys those are the columns. Asked once of each delta."""
        self.visited += len(delta.temporal)
        if self._groups is None:
            return delta.owners
        columns, _ = delta.temporal.relation.values_of(self._keys)
        columns = list(map(with_one_zero, columns))
        keys = self._groups.number_keys(columns, len(delta.temporal))
        return self._groups.of(np.repeat(keys, np.diff(delta.starts)), delta.owners)

    def _runs_of_columns(self, columns: Int32Array) -> Int32Array:
        if self._groups is None:
            return columns
        runs = self._groups.used()
        return runs[np.isin(self._groups.places_of(runs), columns)]

    def _columns_of(self, runs: Int32Array) -> Int32Array:
        """int32[n]: the column of each run."""
        return runs if self._groups is None else self._groups.places_of(runs)

    def _release(self, runs: Int32Array, empty: BoolArray) -> None:
        """Runs, each once, that have no row any more need no number."""
        if self._groups is not None:
            self._groups.release(runs[empty])

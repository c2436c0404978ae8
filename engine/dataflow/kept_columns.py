"""State by column: made for columns that came with the next transition, and let go of for many at a time."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from engine.dataflow.node import Node
from engine.model.batch import Int32Array

DEAD_MIN = 1_024
"""Columns whose state is let go of together."""


class KeepsColumns(Node):
    """A node that keeps state for each column; those who want and leave one tell it so."""

    _coming: set[int]
    _dead: set[int]

    def _forget_columns(self) -> None:
        """No column has state."""
        self._coming = set(self.columns.all().tolist())
        self._dead = set()

    def _came(self, column: int) -> None:
        """A column is wanted."""
        if column in self._dead:
            self._bury()
        self._coming.add(column)

    def _went(self, column: int) -> None:
        """A column is not wanted any more."""
        if column in self._coming:
            self._coming.discard(column)
            return
        self._dead.add(column)
        if len(self._dead) > self.settings.capacities.first(DEAD_MIN) + self.columns.count:
            self._bury()

    def _bury(self) -> None:
        """State of columns that nobody wants goes."""
        dead = np.array(sorted(self._dead), np.int32)
        self._dead.clear()
        self._drop(dead)

    @abstractmethod
    def _drop(self, columns: Int32Array) -> None:
        """The state of some columns, ascending, goes."""

    def _newly_wanted(self) -> Int32Array:
        """The columns that came since the last transition, ascending; they have come then."""
        if self._coming and self._dead:
            self._bury()  # ids of rows that are to come may be those of rows that nobody wants
        columns = np.array(sorted(self._coming), np.int32)
        self._coming.clear()
        return columns

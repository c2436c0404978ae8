"""Operators over two others: a column is a pair of columns, one of each input, and what else the operator
tells columns apart by.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from engine.dataflow.columns import KeyNumbers, Over
from engine.dataflow.delta import Delta
from engine.dataflow.node import Node
from engine.dataflow.turn import Turn
from engine.model.batch import Int32Array


class TwoInputs(Node):
    """left, right: the inputs. A row of one belongs to the columns that are over its own."""

    def __init__(self, left: Node, right: Node) -> None:
        super().__init__(left, right)
        self.left, self.right = left, right
        self._numbers: KeyNumbers[tuple[int, int, Hashable]] = KeyNumbers()
        self._over: tuple[Over, Over] | None = None

    def column(self, left: int, right: int, apart: Hashable = None) -> int:
        """The column of one of each input, as long as somebody wants it. apart: what else tells it apart."""
        return self._numbers.number((left, right, apart))

    def want(self, column: int) -> None:
        if self.columns.want(column):
            self._over = None
            left, right, _ = self._numbers[column]
            self.left.want(left)
            self.right.want(right)
            self._came(column)

    def leave(self, column: int) -> None:
        if self.columns.leave(column):
            self._over = None
            left, right, _ = self._numbers.give_back(column)
            self.left.leave(left)
            self.right.leave(right)
            self._went(column)

    def _came(self, column: int) -> None:
        """A column is wanted."""

    def _went(self, column: int) -> None:
        """A column is not wanted any more."""

    def _over_of(self, columns: Int32Array) -> tuple[Over, Over]:
        """How some columns are over those of each input."""
        below = np.array([self._numbers[column][:2] for column in columns.tolist()], np.int32).reshape(-1, 2)
        return Over(columns, below[:, 0]), Over(columns, below[:, 1])

    def _below(self, turn: Turn) -> tuple[Delta, Delta]:
        """What the inputs give, of the columns that are wanted here."""
        if self._over is None:
            self._over = self._over_of(self.columns.all())
        left, right = self._over
        return left.spread(self.left.delta(turn)).owned(), right.spread(self.right.delta(turn)).owned()

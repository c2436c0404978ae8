"""Rows of constants: each column has all of them from the beginning on, and nothing ever moves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from engine.changes.context import EvaluationContext
from engine.changes.temporal_relation import always
from engine.dataflow.delta import Delta
from engine.dataflow.node import Node, UnaryNode
from engine.dataflow.turn import Turn
from engine.model.batch import Int32Array
from engine.model.expressions import Literal
from engine.model.types import Type
from engine.operators.constant_rows import constant_rows


@dataclass(frozen=True, slots=True)
class ConstantRowsSpec:
    """Rows of constants, with names and types of their columns."""

    columns: tuple[tuple[str, Type], ...]
    rows: tuple[tuple[Literal, ...], ...]


class ConstantRowsNode(UnaryNode):
    """The id of a row is its number. Of the node below it takes the turns alone."""

    id_words = 1
    ordered = True

    def __init__(self, below: Node, shape: ConstantRowsSpec) -> None:
        super().__init__(below)
        self.telling = frozenset(range(len(shape.columns)))
        self._relation = constant_rows(shape.columns, shape.rows)

    def standing(self, context: EvaluationContext, columns: Int32Array) -> Iterator[Delta]:
        yield self._of(columns)

    def _changed(self, turn: Turn) -> Delta:
        self.below.delta(turn)
        return self._of(np.empty(0, np.int32)).owned()

    def _of(self, columns: Int32Array) -> Delta:
        """All rows, of these columns."""
        n, width = len(self._relation), len(columns)
        starts = np.arange(n + 1, dtype=np.int64) * width
        owners = np.tile(columns, n).astype(np.int32)
        return Delta(always(self._relation), starts, owners, lambda: np.arange(n).reshape(-1, 1))

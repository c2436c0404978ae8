"""UNNEST: each row once for each element of its arrays. It keeps nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from engine.algebra.unnest.stage import Unnest
from engine.changes.context import EvaluationContext
from engine.changes.temporal_relation import TemporalRelation
from engine.dataflow.delta import Delta
from engine.dataflow.node import Node, UnaryNode
from engine.dataflow.turn import Turn
from engine.model.batch import Int32Array, Int64Array
from engine.operators.relation import Relation
from engine.operators.unnest import unnested


@dataclass(frozen=True, slots=True)
class UnnestSpec:
    """Rows with the elements of their arrays."""

    stage: Unnest


class UnnestNode(UnaryNode):
    """The id of a row is that of the row below, with the number of the element behind it."""

    def __init__(self, below: Node, spec: UnnestSpec) -> None:
        super().__init__(below)
        self._stage = spec.stage
        self.id_words = below.id_words + 1 if below.id_words else 0
        self.telling, self.ordered, self.exits_known = below.telling, below.ordered, below.exits_known

    def standing(self, context: EvaluationContext, columns: Int32Array) -> Iterator[Delta]:
        for delta in self.below.standing(context, columns):
            yield self._of(delta, context)

    def _changed(self, turn: Turn) -> Delta:
        return self._of(self._below(turn), turn.context)

    def read(self, context: EvaluationContext, ids: Int64Array) -> Relation:
        below, inverse = np.unique(ids[:, :-1], axis=0, return_inverse=True)
        rows = inverse.reshape(-1)
        found = unnested(self._stage, self.below.read(context, below), context.limits.intermediate_rows_max)
        starts = np.searchsorted(found.rows, np.arange(len(below)))
        return found.relation.take(starts[rows] + ids[:, -1])

    def _of(self, delta: Delta, context: EvaluationContext) -> Delta:
        self.visited += len(delta.temporal)
        found = unnested(self._stage, delta.temporal.relation, context.limits.intermediate_rows_max)
        taken, ids = delta.take(found.rows), delta.ids
        lives = TemporalRelation(found.relation, taken.temporal.valid_from, taken.temporal.valid_to)
        if ids is None:
            return Delta(lives, taken.starts, taken.owners)
        return Delta(
            lives,
            taken.starts,
            taken.owners,
            lambda: np.column_stack([ids()[found.rows], found.numbers]),
        )

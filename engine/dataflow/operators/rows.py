"""Operators that look at each row by itself: selections and projections. They keep nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from engine.algebra.project.stage import Output
from engine.changes.context import EvaluationContext
from engine.dataflow.columns import KeyNumbers, Over
from engine.dataflow.delta import Delta, SetDelta
from engine.dataflow.node import Node, UnaryNode
from engine.dataflow.parameters import Constants, ConstantTable, with_parameters
from engine.dataflow.turn import Turn
from engine.language.evaluate import truth
from engine.model.batch import Int32Array, Int64Array
from engine.model.expressions import Column, Expression
from engine.model.types import Type
from engine.operators.projected import projected
from engine.operators.relation import Relation


@dataclass(frozen=True, slots=True)
class ProjectSpec:
    """Columns computed from those of a row."""

    outputs: tuple[Output, ...]


@dataclass(frozen=True, slots=True)
class FilterSpec:
    """Rows where a condition is TRUE."""

    predicate: Expression


class ProjectNode(UnaryNode):
    """Columns computed from those of a row."""

    def __init__(self, below: Node, outputs: Sequence[Output]) -> None:
        super().__init__(below)
        self.id_words, self.ordered, self.exits_known = below.id_words, below.ordered, below.exits_known
        self._outputs = outputs
        places = {
            each.expression.index: place
            for place, each in enumerate(outputs)
            if isinstance(each.expression, Column)
        }
        if below.telling is not None and below.telling <= places.keys():
            self.telling = frozenset(places[place] for place in below.telling)

    def standing(self, context: EvaluationContext, columns: Int32Array) -> Iterator[Delta]:
        yield from map(self._of, self.below.standing(context, columns))

    def standing_sets(self, context: EvaluationContext, columns: Int32Array) -> Iterator[SetDelta]:
        for each in self.below.standing_sets(context, columns):
            yield each.with_delta(self._of(each.delta))

    def _changed(self, turn: Turn) -> Delta:
        return self._of(self._passed(turn))

    def read(self, context: EvaluationContext, ids: Int64Array) -> Relation:
        return projected(self._outputs, self.below.read(context, ids))[0]

    def places_below(self, places: Sequence[int]) -> list[int]:
        """The places below of columns that are merely passed on."""
        found = [self._outputs[place].expression for place in places]
        return [each.index for each in found if isinstance(each, Column)]

    def _of(self, delta: Delta) -> Delta:
        self.visited += len(delta.temporal)
        return delta.with_relation(self.of(delta.temporal.relation))

    def of(self, relation: Relation) -> Relation:
        """The columns of rows of the node below."""
        return projected(self._outputs, relation)[0]


class FilterNode(UnaryNode):
    """Rows where a condition is TRUE."""

    def __init__(self, below: Node, predicate: Expression) -> None:
        super().__init__(below)
        self._predicate = predicate
        self.telling, self.id_words, self.ordered = below.telling, below.id_words, below.ordered
        self.exits_known = below.exits_known

    def read(self, context: EvaluationContext, ids: Int64Array) -> Relation:
        return self.below.read(context, ids)

    def standing(self, context: EvaluationContext, columns: Int32Array) -> Iterator[Delta]:
        yield from map(self._of, self.below.standing(context, columns))

    def standing_sets(self, context: EvaluationContext, columns: Int32Array) -> Iterator[SetDelta]:
        for each in self.below.standing_sets(context, columns):
            yield each.with_delta(self._of(each.delta))

    def _changed(self, turn: Turn) -> Delta:
        return self._of(self._passed(turn))

    def _of(self, delta: Delta) -> Delta:
        self.visited += len(delta.temporal)
        true, _ = truth(self._predicate, delta.temporal.relation.columns, len(delta.temporal))
        return delta if true.all() else delta.take(np.flatnonzero(true))


class ConditionNode(Node):
    """Rows where a condition with parameters is TRUE. A column is one below with constants of its own."""

    def __init__(self, below: Node, predicate: Expression, types: Sequence[Type]) -> None:
        """predicate: with parameters of these types (:mod:`engine.dataflow.parameters`)."""
        super().__init__(below)
        self.below = below
        self.telling, self.id_words, self.ordered = below.telling, below.id_words, below.ordered
        self.exits_known = below.exits_known
        self._predicate = predicate
        self._constants = ConstantTable(types)
        self._keys: KeyNumbers[tuple[int, Constants]] = KeyNumbers()
        self._above: Over | None = None

    def column(self, below: int, constants: Constants) -> int:
        """The column of one below with these constants, as long as somebody wants it."""
        is_new = (below, constants) not in self._keys
        column = self._keys.number((below, constants))
        if is_new:
            self._constants.put(column, constants)
        return column

    def want(self, column: int) -> None:
        if self.columns.want(column):
            self._above = None
            self.below.want(self._keys[column][0])

    def leave(self, column: int) -> None:
        if self.columns.leave(column):
            self._above = None
            below, _ = self._keys.give_back(column)
            self.below.leave(below)

    def read(self, context: EvaluationContext, ids: Int64Array) -> Relation:
        return self.below.read(context, ids)

    def standing(self, context: EvaluationContext, columns: Int32Array) -> Iterator[Delta]:
        above = self._over(columns)
        for delta in self.below.standing(context, above.below):
            yield self._of(delta, above)

    def _changed(self, turn: Turn) -> Delta:
        if self._above is None:
            self._above = self._over(self.columns.all())
        return self._of(self.below.delta(turn), self._above)

    def _over(self, columns: Int32Array) -> Over:
        below = [self._keys[column][0] for column in columns.tolist()]
        return Over(columns, np.array(below, np.int32))

    def _of(self, delta: Delta, above: Over) -> Delta:
        self.visited += len(delta.temporal)
        spread = above.spread(delta)
        rows, relation = spread.rows(), delta.temporal.relation
        columns = with_parameters(relation.columns, rows, self._constants, spread.owners)
        return spread.where(truth(self._predicate, columns, len(rows))[0])

"""Columns of a relation, and those that are computed of them."""

from __future__ import annotations

from collections.abc import Sequence

from engine.algebra.project.stage import Output
from engine.model.batch import Column
from engine.model.expressions import Column as ColumnOf
from engine.model.lazy_columns import LazyColumns
from engine.operators.relation import Relation


def projected(outputs: Sequence[Output], relation: Relation) -> tuple[Relation, int]:
    """Computed columns at once, for their errors are counted; plain ones when they are read."""
    computed: dict[int, Column] = {}
    errors = 0
    for place, output in enumerate(outputs):
        if not isinstance(output.expression, ColumnOf):
            (computed[place],), wrong = relation.values_of([output.expression])
            errors += wrong

    def make(place: int) -> Column:
        expression = outputs[place].expression
        return relation.columns[expression.index] if isinstance(expression, ColumnOf) else computed[place]

    return relation.with_columns(LazyColumns(len(outputs), make)), errors

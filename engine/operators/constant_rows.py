"""Rows of constants as a relation."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from engine.language.evaluate import evaluate
from engine.model.batch import Column
from engine.model.expressions import Literal
from engine.model.types import Kind, Type
from engine.operators.relation import Relation


def constant_rows(columns: Sequence[tuple[str, Type]], rows: Sequence[Sequence[Literal]]) -> Relation:
    """The rows, in their order; they have no place in that of time. O(rows * columns)."""
    made = [_column(type_, [row[place].value for row in rows]) for place, (_, type_) in enumerate(columns)]
    return Relation(made, len(rows))


def _column(type_: Type, values: Sequence[object]) -> Column:
    if type_.kind is Kind.NULL:
        return evaluate(Literal(None, type_), (), len(values)).column
    return Column.from_arrow(type_, pa.array(values, type_.arrow))

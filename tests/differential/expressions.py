"""Data and helpers that ``expressions_test.py`` shares with other tests."""

from __future__ import annotations

from engine.language.evaluate import evaluate
from engine.language.query import Query
from engine.language.statements import parse
from engine.model.batch import Batch
from engine.model.expressions import Expression
from engine.model.limits import Limits
from engine.model.source import Schema, SourceName, Stream
from engine.reference.expressions import evaluate as evaluate_row
from engine.reference.rows import python_rows, python_values
from engine.reference.values import ERROR
from tests.differential.agreement import exact


def bound(schema: Schema, sql: str) -> Query:
    stream = Stream(SourceName("s"), schema, "s")
    statement = parse(sql, {"s": stream}, Limits())
    assert isinstance(statement, Query)
    return statement


def by_row(expression: Expression, batch: Batch) -> list[object]:
    return [exact(evaluate_row(expression, row.values)) for row in python_rows(batch)]


def by_column(expression: Expression, batch: Batch) -> list[object]:
    result = evaluate(expression, batch.columns, len(batch))
    assert result.column.type == expression.type
    assert len(result.column) == len(batch)
    assert result.column.values.dtype == expression.type.dtype
    values: list[object] = [exact(value) for value in python_values(result.column)]
    if result.error is not None:
        assert result.error.dtype == bool
        for place, failed in enumerate(result.error):
            if failed:
                values[place] = exact(ERROR)
    return values

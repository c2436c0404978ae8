"""The vectorised evaluator against the reference, expression by expression, row by row."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.algebra.project.stage import Project
from engine.language.evaluate import evaluate, truth
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
from tests.sql_strategies import expressions, predicates
from tests.strategies import batches, schemas


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


@given(data=st.data())
def test_values(data: st.DataObject) -> None:
    schema = data.draw(schemas(timestamp=False))
    batch = data.draw(batches(schema))
    text = data.draw(expressions(schema))
    selection = bound(schema, f"SELECT {text} AS o FROM s")
    (project,) = selection.stages
    assert isinstance(project, Project)
    expression = project.outputs[0].expression
    assert by_column(expression, batch) == by_row(expression, batch), text


@given(data=st.data())
def test_predicates(data: st.DataObject) -> None:
    schema = data.draw(schemas(timestamp=False))
    batch = data.draw(batches(schema))
    text = data.draw(predicates(schema))
    predicate = bound(schema, f"SELECT * FROM s WHERE {text}").scan.predicate
    if predicate is None:
        return
    expected = [evaluate_row(predicate, row.values) for row in python_rows(batch)]
    true, error = truth(predicate, batch.columns, len(batch))
    assert true.tolist() == [value is True for value in expected], text
    errors = [False] * len(batch) if error is None else error.tolist()
    assert errors == [value is ERROR for value in expected], text

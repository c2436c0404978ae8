"""The vectorised evaluator against the reference, expression by expression, row by row."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.algebra.project.stage import Project
from engine.language.evaluate import truth
from engine.reference.expressions import evaluate as evaluate_row
from engine.reference.rows import python_rows
from engine.reference.values import ERROR
from tests.differential.expressions import bound, by_column, by_row
from tests.sql_strategies import expressions, predicates
from tests.strategies import batches, schemas


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

"""The reference against DuckDB: a third reading of the same text, so that parser and binder are held too.

Texts stay where the dialects mean the same, but for ``/`` of integers, which is ``//`` in DuckDB, and
REGEXP_LIKE, which has another name there. DuckDB has no errors as values: every one of its expressions stands
in ``TRY``, and rows for which ours is an error are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.algebra.project.stage import Project
from engine.language.query import Query
from engine.language.statements import parse
from engine.model.batch import Batch
from engine.model.limits import Limits
from engine.model.source import Field, Schema, SourceName, Stream
from engine.model.step import CreateSource, Position, Records, Register, Registration, Step
from engine.model.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, STRING, TIMESTAMP
from engine.reference import Reference
from engine.reference.expressions import evaluate
from engine.reference.rows import python_rows
from engine.reference.values import ERROR
from tests.differential.agreement import exact, exact_rows, plain_rows
from tests.differential.duckdb import Twins, in_duckdb
from tests.sql_strategies import COMPARISONS
from tests.strategies import batch_of, batches, schemas


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


def asked_of_duckdb(database: duckdb.DuckDBPyConnection, batch: Batch, outputs: str) -> list[tuple[Any, ...]]:
    rows = batch.to_arrow()
    table = pa.table(rows).append_column("_row", pa.array(range(len(batch)), pa.int64()))
    database.register("s", table)
    try:
        return plain_rows(database.sql(f"SELECT {in_duckdb(outputs)} FROM s ORDER BY _row").to_arrow_table())
    finally:
        database.unregister("s")


def comparable(value: Any) -> Any:
    """DuckDB computes and casts in wider types at times; the value is what is compared."""
    if isinstance(value, int) and not isinstance(value, bool):
        return ("number", value)
    return exact(value)


@given(data=st.data())
def test_expressions(database: duckdb.DuckDBPyConnection, data: st.DataObject) -> None:
    schema = data.draw(schemas(timestamp=False))
    batch = data.draw(batches(schema))
    writer = Twins(data.draw, schema)
    text = writer.expression(
        data.draw(st.sampled_from([BOOLEAN, DOUBLE, BIGINT, INTEGER, STRING, DATE, TIMESTAMP]))
    )
    selection = parse(f"SELECT {text} AS o FROM s", {"s": Stream(SourceName("s"), schema, "s")}, Limits())
    assert isinstance(selection, Query)
    (project,) = selection.stages
    assert isinstance(project, Project)
    ours = [evaluate(project.outputs[0].expression, row.values) for row in python_rows(batch)]
    theirs = [row[0] for row in asked_of_duckdb(database, batch, f"TRY({text}) AS o")]
    for mine, other in zip(ours, theirs, strict=True):
        if mine is not ERROR:
            assert comparable(mine) == comparable(other), text


@given(data=st.data())
def test_selections(database: duckdb.DuckDBPyConnection, data: st.DataObject) -> None:
    schema = data.draw(schemas(timestamp=False))
    batch = data.draw(batches(schema))
    text = Twins(data.draw, schema).predicate()
    sql = f"SELECT * FROM s WHERE {text}"
    reference = everything(schema, batch, sql)
    answer = reference.answer("q")
    if answer.predicate_errors:
        return
    kept = [row[0] for row in asked_of_duckdb(database, batch, f"TRY({text}) AS o")]
    rows = plain_rows(pa.table(batch.to_arrow()))
    expected = [row for row, keep in zip(rows, kept, strict=True) if keep]
    assert exact_rows(answer.rows) == exact_rows(expected), text


def everything(schema: Schema, batch: Batch, sql: str) -> Reference:
    """A reference that has seen the batch, all of it before NOW, and answers ``q``."""
    reference = Reference()
    stream = Stream(SourceName("s"), schema, "s", retain_ms=10**9)
    clock = 1_000_000
    reference.apply(Step(Position(1, 1), clock, CreateSource(stream, "")))
    reference.apply(Step(Position(1, 2), clock, Records(SourceName("s"), batch, {0: len(batch)})))
    result = reference.apply(Step(Position(1, 3), clock, Register((Registration("q", sql),))))
    assert not result.failed, result.failed
    return reference


EDGES = (float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1.5, None)


@pytest.mark.parametrize("op", COMPARISONS)
@pytest.mark.parametrize("edge", ["NaN", "Infinity", "-Infinity", "0", "-0"])
def test_not_a_number_and_null_compare_as_in_postgresql(
    database: duckdb.DuckDBPyConnection, op: str, edge: str
) -> None:
    schema = Schema((Field("d", DOUBLE),))
    batch = batch_of(schema, [(0, place, 1_000 + place, (value,)) for place, value in enumerate(EDGES)])
    predicate = f"d {op} CAST('{edge}' AS DOUBLE)"
    answer = everything(schema, batch, f"SELECT d FROM s WHERE {predicate}").answer("q")
    kept = [row[0] for row in asked_of_duckdb(database, batch, f"{predicate} AS o")]
    expected = [(value,) for value, keep in zip(EDGES, kept, strict=True) if keep]
    assert exact_rows(answer.rows) == exact_rows(expected)

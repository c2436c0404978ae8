"""Rows go once they are not needed, and what went is all that could go."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from engine.model.batch import Batch
from engine.model.limits import Limits
from engine.model.step import Position, Register, Registration, Step
from tests.capacities import small_engine

STAMPS = [1, 2, 2, 2, 3, 50]


@pytest.mark.parametrize(("held_rows_max", "kept"), [(0, 0), (1, 1), (2, 1), (3, 1), (4, 4), (5, 4)])
def test_an_instant_in_which_rows_are_too_many_goes_whole(held_rows_max: int, kept: int) -> None:
    """The join lags, as ``b`` does, and holds rows of ``a`` back, as many as may be held; the newest
    row is not visible yet.
    """
    engine = small_engine(Limits(held_rows_max=held_rows_max))
    for name in ("a", "b"):
        engine.create(
            f"CREATE STREAM {name} (k INTEGER, ts TIMESTAMP) WITH (timestamp = 'ts') RETAIN 1 MILLISECOND"
        )
    engine.register("q", "SELECT a.k FROM a JOIN b ON a.k = b.k")
    for name, stamps in (("b", [4]), ("a", STAMPS)):
        rows = pa.table({"k": pa.nulls(len(stamps), pa.int32()), "ts": pa.array(stamps, pa.timestamp("ms"))})
        places = np.arange(len(stamps))
        batch = Batch.from_arrow(engine.catalogue[name].schema, rows, np.zeros(len(stamps)), places, stamps)
        engine.ingest(name, batch, 1_000)
    engine._check()  # asked again, retention lets nothing more go
    assert {one.name: one.rows for one in engine.view().sources()}["a"] == kept


@pytest.mark.parametrize("maintenance", ["eager", "lazy"])
def test_an_answer_kept_over_a_table_loses_what_retention_takes_ahead_of_it(maintenance: str) -> None:
    """The stream lags, so that the table is seen as it was; no more versions of it may be held back."""
    engine = small_engine(Limits(held_rows_max=1, superseded_rows_max=100))
    column = "v INTEGER, ts TIMESTAMP"
    engine.create(f"CREATE STREAM s ({column}) WITH (timestamp = 'ts') RETAIN 50 MILLISECONDS")
    engine.create(
        f"CREATE TABLE h (k INTEGER, {column}, PRIMARY KEY (k)) WITH (timestamp = 'ts') RETAIN 5 MILLISECONDS"
    )
    sql = "SELECT k FROM h WHERE v IN (SELECT v FROM s [UNBOUNDED])"
    body = Register((Registration("q", sql, options={"maintenance": maintenance}),))
    engine.enqueue(Step(Position(0, engine.position.sequence + 1), 0, body))
    engine.run()
    found = []
    for name, stamps in (("h", [10, 11]), ("s", [20, 21]), ("h", [30, 31, 32, 33]), ("h", [60, 61])):
        n = len(stamps)
        columns = {
            "k": [1] * n,
            "v": [7] * n,
            "ts": pa.array(stamps, pa.timestamp("ms")),
            "deleted": [False] * n,
        }
        schema = engine.catalogue[name].stored_schema
        rows = pa.table({field.name: columns[field.name] for field in schema})
        engine.ingest(name, Batch.from_arrow(schema, rows, np.zeros(n), stamps, stamps), 1_000)
        answer = engine.view().snapshot("q")
        found.append((answer.table.num_rows, answer.complete))
    assert found == [(0, True), (1, True), (1, False), (0, False)]

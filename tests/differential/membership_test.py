"""IN, NOT IN, EXISTS and NOT EXISTS over rows with NULLs: every combination, against DuckDB.

Small enough to try all: which values the outer rows have, which the inner ones, none at all among them.
"""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest

from engine.model.batch import Batch
from tests.capacities import small_engine
from tests.differential.agreement import EngineSubject, plain_rows

Y = (0, 1, None, 1)
"""A second column, by turns."""
VALUES: tuple[tuple[int | None, ...], ...] = ((), (1,), (None,), (1, None), (1, 2), (2, 3, None))
TEXTS = (
    "SELECT x FROM s WHERE k = 'o' AND x IN (SELECT x FROM s WHERE k = 'i')",
    "SELECT x FROM s WHERE k = 'o' AND x NOT IN (SELECT x FROM s WHERE k = 'i')",
    "SELECT x FROM s AS o WHERE k = 'o' AND EXISTS (SELECT 1 FROM s AS i WHERE i.k = 'i' AND i.x = o.x)",
    "SELECT x FROM s AS o WHERE k = 'o' AND NOT EXISTS (SELECT 1 FROM s AS i WHERE i.k = 'i' AND i.x = o.x)",
    "SELECT x FROM s WHERE k = 'o' AND NOT EXISTS (SELECT 1 FROM s WHERE k = 'i')",
    "SELECT x FROM s WHERE k = 'o' AND x NOT IN (SELECT MAX(x) FROM s WHERE k = 'i')",
    "SELECT x FROM s AS o WHERE k = 'o' AND x NOT IN (SELECT x FROM s AS i WHERE i.k = 'i' AND i.y = o.y)",
    "SELECT x FROM s AS o WHERE k = 'o' AND x NOT IN (SELECT x FROM s AS i WHERE i.k = 'i' AND i.y < o.y)",
    "SELECT x FROM s AS o WHERE k = 'o' AND x IN (SELECT x FROM s AS i WHERE i.k = 'i' AND i.y < o.y)",
    "SELECT x FROM s WHERE k = 'o' AND (x, y) NOT IN (SELECT x, y FROM s WHERE k = 'i')",
    (
        "SELECT x FROM s WHERE k = 'o' AND (x, y) NOT IN "
        "(SELECT x, MAX(y) FROM s WHERE k = 'i' GROUP BY x HAVING COUNT(*) < 9)"
    ),
    "SELECT COUNT(*) AS n, SUM(x) AS t FROM s WHERE k = 'o' AND x NOT IN (SELECT x FROM s WHERE k = 'i')",
)
MODES = ("none", "lazy", "eager")


def table(outer: tuple[int | None, ...], inner: tuple[int | None, ...]) -> pa.Table:
    rows = [("o", x) for x in outer] + [("i", x) for x in inner] + [("end", None)]
    return pa.table(
        {
            "k": pa.array([k for k, _ in rows], pa.string()),
            "x": pa.array([x for _, x in rows], pa.int32()),
            "y": pa.array([Y[place % len(Y)] for place in range(len(rows))], pa.int32()),
        }
    )


@pytest.mark.parametrize("outer", VALUES, ids=str)
def test_as_duckdb(outer: tuple[int | None, ...]) -> None:
    with duckdb.connect() as database:
        for inner in VALUES:
            rows = table(outer, inner)
            subject = EngineSubject(small_engine())
            subject.engine.create("CREATE STREAM s (k STRING, x INTEGER, y INTEGER) WITH (topic = 's')")
            schema = subject.engine.catalogue["s"].schema
            places = list(range(len(rows)))
            batch = Batch.from_arrow(schema, rows, [0] * len(rows), places, [1_000] * len(rows))
            subject.engine.ingest("s", batch, 2_000)
            database.register("s", rows)
            for number, text in enumerate(TEXTS):
                expected = plain_rows(database.sql(text).to_arrow_table())
                for mode in MODES:
                    name = f"{mode}{number}"
                    subject.register(name, text, {"maintenance": mode})
                    assert by_value(subject.answer(name).rows) == by_value(expected), (mode, text, inner)


def by_value(rows: list[tuple[Any, ...]]) -> list[str]:
    return sorted(str(tuple(None if value is None else int(value) for value in row)) for row in rows)

"""Aggregates, groups, joins and orders of intervals, asked for and kept, against DuckDB's milliseconds."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.batch import Batch
from engine.model.source import SourceName
from engine.model.step import Heartbeat, Position, Step
from tests.capacities import small_engine
from tests.differential.agreement import EngineSubject, plain_rows

ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(-400_000_000, 400_000_000),
        st.integers(-400_000_000, 400_000_000) | st.sampled_from([0, 86_400_000]),
        st.integers(0, 2),
    ),
    max_size=12,
)
TEXTS = (
    ("SELECT k, SUM(t - u) AS s, MIN(t - u) AS l, MAX(u - t) AS m, COUNT(t - u) AS c FROM r GROUP BY k", "k"),
    ("SELECT AVG(t - u) AS a FROM r", "a"),
    ("SELECT d, COUNT(*) AS c FROM (SELECT t - u AS d FROM r) x GROUP BY d", "d, c"),
    ("SELECT DISTINCT t - u AS d FROM r WHERE t - u > INTERVAL '1' HOUR * k", "d"),
    ("SELECT t - u AS d, n FROM r ORDER BY d DESC NULLS LAST, n LIMIT 3", "d DESC NULLS LAST, n"),
    ("SELECT a.n, b.n AS o FROM r a JOIN r b ON a.t - a.u = b.u - b.t", "n, o"),
    ("SELECT n, t - u AS d FROM r WHERE (t - u) * 2 BETWEEN -INTERVAL '1' DAY AND INTERVAL '90' MINUTE", "n"),
    ("SELECT k, SUM(t - u) AS s FROM r GROUP BY k HAVING SUM(t - u) >= INTERVAL '2' HOUR", "k"),
    ("SELECT n, SUM(t - u) OVER (PARTITION BY k ORDER BY n) AS s FROM r", "n"),
    ("SELECT t - u AS d FROM r UNION SELECT u - t FROM r", "d"),
)


@pytest.fixture(scope="module")
def database() -> Any:
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        yield connection


def theirs_of(database: Any, sql: str, order: str) -> list[tuple[Any, ...]]:
    """DuckDB's rows over ms instead of instants."""
    text = sql.replace("INTERVAL '1' HOUR", "3600000").replace("INTERVAL '2' HOUR", "7200000")
    text = text.replace("INTERVAL '1' DAY", "86400000").replace("INTERVAL '90' MINUTE", "5400000")
    return plain_rows(database.sql(f"SELECT * FROM ({text}) ORDER BY {order}").to_arrow_table())


@given(ROWS, st.integers(1, 4))
def test_answers(database: Any, rows: list[tuple[Any, ...]], pieces: int) -> None:
    subject = EngineSubject(engine := small_engine())
    engine.create("CREATE STREAM r (t TIMESTAMP, u TIMESTAMP, k BIGINT, n BIGINT) RETAIN 100 DAYS")
    for place, (sql, _) in enumerate(TEXTS):
        engine.register(f"lazy{place}", sql)
        subject.register(f"eager{place}", sql, {"maintenance": "eager"})
        engine.follow(f"eager{place}")
    columns = [[row[at] for row in rows] for at in range(3)]
    ms = pa.timestamp("ms")
    arrays = [pa.array(columns[0], ms), pa.array(columns[1], ms), pa.array(columns[2], pa.int64())]
    arrays.append(pa.array(range(len(rows)), pa.int64()))
    table, schema = pa.table(arrays, names=["t", "u", "k", "n"]), engine.catalogue["r"].schema
    for some in np.array_split(np.arange(len(rows)), pieces):
        engine.ingest(
            "r", Batch.from_arrow(schema, table.take(pa.array(some)), np.zeros(len(some)), some, some), 10**6
        )
    for clock_ms in (10**6 + 40_000, 10**6 + 80_000):  # nothing comes any more: NOW is behind the last row
        engine.enqueue(Step(Position(0, engine.position.sequence + 1), clock_ms, Heartbeat(SourceName("r"))))
        engine.run()
    plain = pa.table([array.cast(pa.int64()) for array in arrays], names=["t", "u", "k", "n"])
    database.register("r", plain)
    for place, (sql, order) in enumerate(TEXTS):
        theirs = theirs_of(database, sql, order)
        for way in ("lazy", "eager"):
            found = subject.answer(f"{way}{place}").rows
            ours = sorted(found, key=repr)
            assert [_whole(row) for row in ours] == [_whole(row) for row in sorted(theirs, key=repr)], (
                way,
                sql,
            )


def _whole(row: tuple[Any, ...]) -> list[Any]:
    """Means are rounded to milliseconds here."""
    return [
        round(float(value)) if isinstance(value, float) or hasattr(value, "as_tuple") else value
        for value in row
    ]

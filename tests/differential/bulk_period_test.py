"""Answers over a period of many thousands of rows, groups and ever new strings, against DuckDB."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from engine.engine import Engine
from engine.model.batch import Batch
from engine.model.period import Period
from engine.model.source import Stream
from tests.capacities import small_engine
from tests.differential.agreement import plain_rows

ROWS = 60_000
BATCH_ROWS = 4_096
RANGE_MS = 2_000
CREATE = (
    "CREATE STREAM s (id BIGINT, k STRING, g INTEGER, v BIGINT, ts TIMESTAMP NOT NULL)"
    " WITH (topic = 's', timestamp = 'ts', future_max = '1 day') RETAIN 1 DAY"
)
PERIOD = Period(7_000, 15_000)
IN_WINDOW = f"greatest(ts, 7000) AS valid_from, least(ts + {RANGE_MS} + 1, 15000) AS valid_to"


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(33)
    ids = np.arange(ROWS)
    return pa.table(
        {
            "id": ids,
            "k": pa.array([f"new {n}" if n % 3 else None for n in ids.tolist()]),
            "g": pa.array(rng.integers(0, 3_000, ROWS), pa.int32()),
            "v": pa.array(rng.integers(-99, 99, ROWS)),
            "ts": pa.array(ids // 3, pa.timestamp("ms")),
        }
    )


@pytest.fixture(scope="module")
def engine(table: pa.Table) -> Engine:
    engine = small_engine()
    engine.create(CREATE)
    stream = engine.catalogue["s"]
    assert isinstance(stream, Stream)
    times = table.column("ts").cast(pa.int64()).to_numpy()
    for first in range(0, ROWS, BATCH_ROWS):
        part = slice(first, min(first + BATCH_ROWS, ROWS))
        rows = table.slice(part.start, part.stop - part.start)
        offsets = np.arange(part.start, part.stop)
        batch = Batch.from_arrow(stream.schema, rows, np.zeros(len(rows)), offsets, times[part])
        engine.ingest("s", batch, 1_000_000)
    return engine


@pytest.fixture(scope="module")
def database(table: pa.Table) -> Iterator[duckdb.DuckDBPyConnection]:
    ts = table.column_names.index("ts")
    rows = table.set_column(ts, "ts", table.column("ts").cast(pa.int64()))
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.register("rows", rows)
        yield connection


def over(engine: Engine, sql: str, period: Period = PERIOD) -> list[tuple[object, ...]]:
    engine.register("q", sql)
    try:
        return plain_rows(engine.view().snapshot("q", period, rows_max=1_000_000).table)
    finally:
        engine.unregister("q")


def assert_same(found: Sequence[tuple[object, ...]], expected: Sequence[tuple[object, ...]]) -> None:
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


def test_rows_of_a_window(engine: Engine, database: duckdb.DuckDBPyConnection) -> None:
    found = over(engine, f"SELECT id, k FROM s [RANGE {RANGE_MS} MILLISECONDS] WHERE v > 0")
    expected = database.execute(
        f"SELECT id, k, {IN_WINDOW} FROM rows WHERE v > 0 AND ts < 15000 AND ts + {RANGE_MS} >= 7000"
    ).fetchall()
    assert len(expected) > 9_000
    assert_same(found, expected)


def test_pairs_are_there_while_both_rows_are(engine: Engine, database: duckdb.DuckDBPyConnection) -> None:
    window = f"[RANGE {RANGE_MS} MILLISECONDS]"
    found = over(engine, f"SELECT a.id, b.k FROM s {window} a JOIN s {window} b ON a.g = b.g WHERE a.v > 50")
    expected = database.execute(
        "SELECT a.id, b.k, greatest(a.ts, b.ts, 7000) AS valid_from,"
        f" least(least(a.ts, b.ts) + {RANGE_MS} + 1, 15000) AS valid_to FROM rows a JOIN rows b ON a.g = b.g"
        " WHERE a.v > 50 AND valid_from < valid_to"
    ).fetchall()
    assert len(expected) > 9_000
    assert_same(found, expected)


def test_groups_at_many_instants(engine: Engine, database: duckdb.DuckDBPyConnection) -> None:
    window = f"[RANGE {RANGE_MS} MILLISECONDS]"
    found = over(engine, f"SELECT g, COUNT(*) AS n, SUM(v) AS s, MAX(k) AS m FROM s {window} GROUP BY g")
    for at_ms in (*range(7_000, 15_000, 777), 14_999):
        expected = database.execute(
            "SELECT g, COUNT(*), SUM(v)::BIGINT, MAX(k) FROM rows"
            f" WHERE ts <= {at_ms} AND ts >= {at_ms - RANGE_MS} GROUP BY g"
        ).fetchall()
        there = [row[:-2] for row in found if row[-2] <= at_ms < row[-1]]
        assert sorted(map(repr, there)) == sorted(map(repr, expected)), at_ms

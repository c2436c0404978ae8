"""Aggregates over hundreds of thousands of rows: many blocks, many groups, full segments.

Doubles are held to the bit against the reference, everything against DuckDB, and the
sketches against exact answers within the error that they promise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from engine.algebra.aggregate.stage import AggregateCall
from engine.engine import Engine
from engine.model.batch import Batch
from engine.model.expressions import Column
from engine.model.types import DOUBLE
from engine.reference.aggregates import aggregate
from engine.reference.rows import Placed
from tests.differential.agreement import EngineSubject, exact_rows, plain_rows
from tests.memory_state import MemoryState

ROWS = 270_000
BATCH_ROWS = 8_192
CREATE = (
    "CREATE STREAM s (a INTEGER, k STRING, x DOUBLE, p DECIMAL(9, 2), ts TIMESTAMP NOT NULL)"
    " WITH (topic = 's', timestamp = 'ts', future_max = '1 day') RETAIN 1 DAY"
)
MODES = ("none", "lazy", "eager")
FLOATS = ("SUM", "AVG", "VAR_SAMP", "STDDEV_POP")


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Three rows a millisecond; doubles of very different sizes, a few of them NULL."""
    rng = np.random.default_rng(4)

    def some(values: np.ndarray, type_: pa.DataType) -> pa.Array:
        return pa.array(values, type_, mask=rng.random(ROWS) < 0.02)

    sizes = 10.0 ** rng.integers(-8, 9, ROWS)
    return pa.table(
        {
            "a": some(rng.integers(0, 256, ROWS), pa.int32()),
            "k": some(np.array([f"k{n}" for n in rng.zipf(1.5, ROWS) % 5_000]), pa.string()),
            "x": some(rng.standard_normal(ROWS) * sizes, pa.float64()),
            "p": pa.array(rng.integers(-(10**6), 10**6, ROWS) / 100).cast(pa.decimal128(9, 2)),
            "ts": pa.array(np.arange(ROWS) // 3, pa.timestamp("ms")),
        }
    )


@pytest.fixture(scope="module")
def engine(table: pa.Table) -> Engine:
    engine = Engine()
    engine.create(CREATE)
    schema = engine.catalogue["s"].schema
    times = table.column("ts").cast(pa.int64()).to_numpy()
    for first in range(0, ROWS, BATCH_ROWS):
        part = slice(first, min(first + BATCH_ROWS, ROWS))
        offsets = np.arange(part.start, part.stop)
        rows = table.slice(part.start, part.stop - part.start)
        batch = Batch.from_arrow(schema, rows, np.zeros(len(rows)), offsets, times[part])
        engine.ingest("s", batch, 1_000_000)
    return engine


@pytest.fixture(scope="module")
def database(table: pa.Table) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.register("rows", table)
        yield connection


def answers(engine: Engine, sql: str) -> list[list[tuple[Any, ...]]]:
    """The answer in each way of maintenance."""
    subject = EngineSubject(engine)
    found = []
    for mode in MODES:
        subject.register("q", sql, {"maintenance": mode})
        found.append(subject.answer("q").rows)
        engine.unregister("q")
    return found


VISIBLE = ROWS - 3
"""The last rows are above NOW."""
NOW = (VISIBLE - 1) // 3


@pytest.mark.parametrize(
    ("window", "where", "functions"),
    [
        ("", "", ("SUM", "AVG")),
        ("", "WHERE a < 9", FLOATS),
        ("[RANGE 20 SECONDS]", "", FLOATS),
        ("[ROWS 50000]", "WHERE a < 9", FLOATS),
    ],
)
def test_doubles_are_exact_in_every_way_of_maintenance(
    engine: Engine, table: pa.Table, window: str, where: str, functions: tuple[str, ...]
) -> None:
    calls = ", ".join(f"{name}(x)" for name in functions)
    every = answers(engine, f"SELECT {calls} FROM s {window} {where}")
    first = {"": 0, "[RANGE 20 SECONDS]": 3 * (NOW - 20_000), "[ROWS 50000]": VISIBLE - 50_000}[window]
    values, a = table.column("x").to_pylist(), table.column("a").to_pylist()
    rows = [
        Placed(n, (values[n],)) for n in range(first, VISIBLE) if not where or (a[n] is not None and a[n] < 9)
    ]
    x = Column(0, "x", DOUBLE)
    expected = tuple(aggregate(AggregateCall(name, name, (x,), DOUBLE), rows)[0] for name in functions)
    for answer in every:
        assert exact_rows(answer) == exact_rows([expected])


SELECTS = (
    "SELECT COUNT(*), COUNT(x), SUM(a), AVG(a), MIN(x), MAX(x), SUM(p), AVG(p), MIN(k), MAX(k) FROM s",
    "SELECT a, COUNT(*), SUM(p), MAX(k), MIN(ts), COUNT(DISTINCT k) FROM s WHERE a > 7 GROUP BY a ORDER BY a",
    "SELECT k, COUNT(*), SUM(a), AVG(p) FROM s GROUP BY k HAVING COUNT(*) > 9 ORDER BY 2 DESC, k LIMIT 100",
    "SELECT DISTINCT a FROM s WHERE x > 0 ORDER BY a",
    "SELECT COUNT(DISTINCT k), COUNT(DISTINCT a), SUM(DISTINCT a) FROM s WHERE p BETWEEN 0 AND 1000",
    "SELECT a % 9, COUNT(*) FILTER (WHERE x < 0), SUM(a) FILTER (WHERE a > 9) FROM s GROUP BY 1 ORDER BY 1",
)


@pytest.mark.parametrize("sql", SELECTS)
def test_duckdb_agrees(engine: Engine, database: duckdb.DuckDBPyConnection, sql: str) -> None:
    expected = plain_rows(
        database.sql(sql.replace("FROM s", f"FROM (FROM rows LIMIT {VISIBLE})")).to_arrow_table()
    )
    for answer in answers(engine, sql):
        assert [tuple(round_(value) for value in row) for row in answer] == [
            tuple(round_(value) for value in row) for row in expected
        ]


def round_(value: Any) -> Any:
    return float(f"{value:.12g}") if isinstance(value, float) else value


def test_sums_of_hopping_windows(engine: Engine, database: duckdb.DuckDBPyConnection) -> None:
    sql = (
        "SELECT window_start, COUNT(*), SUM(a), MAX(p) FROM HOP(s, INTERVAL '1' SECOND, INTERVAL '5' SECOND)"
        " WHERE a < 50 GROUP BY window_start"
    )
    expected = database.sql(
        "SELECT make_timestamp_ms(w), COUNT(*), SUM(a)::BIGINT, MAX(p)"
        f" FROM (FROM rows LIMIT {VISIBLE}), range(-5000, {NOW} - 4998, 1000) AS windows(w)"
        " WHERE a < 50 AND epoch_ms(ts) >= w AND epoch_ms(ts) < w + 5000 GROUP BY w ORDER BY w"
    ).to_arrow_table()
    for answer in answers(engine, sql):
        assert answer == plain_rows(expected)


def test_sketches_keep_their_promises(engine: Engine, table: pa.Table) -> None:
    """As their module does: the number within 1.3%, mostly; quantiles by rank within 1%."""
    sql = (
        "SELECT APPROX_COUNT_DISTINCT(k), APPROX_COUNT_DISTINCT(x), APPROX_QUANTILE(x, 0.1),"
        " APPROX_QUANTILE(x, 0.5) FROM s"
    )
    visible = table.slice(0, VISIBLE)
    x = np.sort(visible.column("x").drop_null().to_numpy())
    keys = len(visible.column("k").drop_null().unique())
    every = answers(engine, sql)
    for ((few, many, tenth, half),) in every:
        assert few == pytest.approx(keys, rel=0.02)
        assert many == pytest.approx(len(np.unique(x)), rel=0.02)
        assert np.searchsorted(x, tenth) / len(x) == pytest.approx(0.1, abs=0.01)
        assert np.searchsorted(x, half) / len(x) == pytest.approx(0.5, abs=0.01)
    assert exact_rows(every[0]) == exact_rows(every[1]) == exact_rows(every[2])


def test_a_restart_keeps_the_bits(engine: Engine) -> None:
    sql = "SELECT k, SUM(x), AVG(x), STDDEV(x) FROM s WHERE a > 3 GROUP BY k"
    before = answers(engine, sql)
    store = MemoryState()
    engine.save(store)
    for answer in answers(Engine.restore(store), sql):
        assert exact_rows(answer) == exact_rows(before[0])

"""Hundreds of queries over full segments against DuckDB: what small examples never reach.

Bitmaps of many words, grouped filters with many constants, sealed segments, registrations and removals in
between, one stream in event time whose rows come in order from one partition.
"""

from __future__ import annotations

import random

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from engine.engine import Engine
from engine.model.batch import Batch
from tests.memory_state import MemoryState

COLUMNS = ("a", "b", "c", "d")
BATCH_ROWS = 8_192
CREATE = (
    "CREATE STREAM s (a INTEGER, b INTEGER, c BIGINT, d DOUBLE, k STRING, ts TIMESTAMP NOT NULL)"
    " WITH (topic = 's', timestamp = 'ts', future_max = '1 day') RETAIN 1 DAY"
)


def rows(rng: np.random.Generator, start: int, count: int) -> pa.Table:
    def some(values: np.ndarray, type_: pa.DataType) -> pa.Array:
        return pa.array(values, type_, mask=rng.random(count) < 0.02)

    keys = np.array([f"k{n}" for n in rng.zipf(1.5, count) % 5_000])
    doubles = rng.choice([0.5, 1.0, -0.0, np.nan, np.inf, 100.25, 200.0], count)
    columns = {name: some(rng.integers(0, 256, count), pa.int32()) for name in ("a", "b")}
    columns |= {"c": some(rng.integers(0, 256, count), pa.int64()), "d": some(doubles, pa.float64())}
    columns |= {"k": some(keys, pa.string())}
    columns["ts"] = pa.array(np.arange(start, start + count) // 3, pa.timestamp("ms"))
    return pa.table(columns)


def predicate(rng: random.Random, depth: int = 2) -> str:
    column = rng.choice(COLUMNS)
    low = rng.choice([rng.randrange(0, 256, 32), rng.randrange(256)])
    form = rng.choice(
        ["<", ">=", "between", "between", "in", "key", "keys", "null", "and", "and", "or", "not", "<>"]
    )
    if depth and form in ("and", "or"):
        return f"({predicate(rng, depth - 1)} {form} {predicate(rng, depth - 1)})"
    if depth and form == "not":
        return f"NOT ({predicate(rng, depth - 1)})"
    if form == "between":
        return f"{column} BETWEEN {low} AND {low + rng.choice([0, 31, 64])}"
    if form == "in":
        return f"{column} IN ({low}, {rng.randrange(256)}, {rng.randrange(256)})"
    if form == "key":
        return f"k = 'k{rng.randrange(60)}'"
    if form == "keys":
        return f"k IN ('k1', 'k{rng.randrange(5_000)}', 'absent')"
    if form == "null":
        return f"{column} IS {rng.choice(['', 'NOT '])}NULL"
    return f"{column} {form if form in ('<', '>=', '<>') else '='} {low}"


@pytest.mark.parametrize("seed", [1, 2])
def test_hundreds_of_queries_over_full_segments(seed: int) -> None:
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    engine = Engine()
    engine.create(CREATE)
    schema = engine.catalogue["s"].schema
    queries: dict[str, tuple[str, str]] = {}
    tables: list[pa.Table] = []
    clock = 1_000_000
    for step in range(20):
        for _ in range(rng.choice([5, 40])):
            query_id, where = f"q{len(queries)}-{step}", predicate(rng)
            window = rng.choice(
                ["[UNBOUNDED]", "[UNBOUNDED]", "[RANGE 500 MILLISECONDS]", "[RANGE 30 SECONDS]"]
            )
            queries[query_id] = (window, where)
            engine.register(query_id, f"SELECT c, k, ts FROM s {window} WHERE {where}", clock)
        for query_id in rng.sample(sorted(queries), 3):
            del queries[query_id]
            engine.unregister(query_id, clock)
        start = sum(len(table) for table in tables)
        table = rows(numbers, start, rng.choice([100, BATCH_ROWS]))
        tables.append(table)
        offsets = np.arange(start, start + len(table))
        times = table.column("ts").cast(pa.int64()).to_numpy()
        engine.ingest("s", Batch.from_arrow(schema, table, np.zeros(len(table)), offsets, times), clock)
        if step == 12:
            store = MemoryState()
            engine.save(store)
            engine = Engine.restore(store)
    engine._check()
    compare(engine, queries, pa.concat_tables(tables))


def compare(engine: Engine, queries: dict[str, tuple[str, str]], table: pa.Table) -> None:
    """Each answer against DuckDB over the rows at or before NOW."""
    view = engine.view()
    with duckdb.connect() as database:
        database.execute("SET threads = 1")
        place = pa.array(np.arange(len(table)))
        database.register("rows", table.append_column("place", place))
        for query_id, (window, where) in queries.items():
            answer = view.snapshot(query_id)
            assert answer.now_ms is not None
            begin = {"[RANGE 500 MILLISECONDS]": 500, "[RANGE 30 SECONDS]": 30_000}.get(window)
            first = 0 if begin is None else answer.now_ms - begin
            expected = database.sql(
                f"SELECT c, k, ts FROM rows WHERE epoch_ms(ts) BETWEEN {first} AND {answer.now_ms}"
                f" AND ({where}) ORDER BY place"
            ).to_arrow_table()
            assert answer.table.equals(expected.cast(answer.table.schema)), (window, where)

"""Rows whose strings are of several generations: answers over them are those of the strings."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa

from engine.engine import Engine
from engine.model.batch import BATCH_ROWS_MAX, Batch
from engine.model.source import SourceName
from tests.memory_state import MemoryState

RETAINED = 20_000
ROWS = 280_000
CLOCK_MS = 10**9
QUERIES = {
    "point": "SELECT v FROM s WHERE k = 'k199990'",
    "range": "SELECT k FROM s WHERE k BETWEEN 'k1960' AND 'k1979'",
    "like": "SELECT k FROM s WHERE k LIKE '%77' AND v >= 0",
    "groups": "SELECT g, COUNT(*) AS n FROM s GROUP BY g",
    "many": "SELECT k, COUNT(*) AS n FROM s GROUP BY k HAVING COUNT(*) > 1",
    "distinct": "SELECT DISTINCT g FROM s",
    "pairs": "SELECT a.v FROM s a JOIN s b ON a.k = b.k WHERE a.v < b.v",
}


def _table() -> pa.Table:
    """A row a ms; every tenth has the key of some row before."""
    rng = np.random.default_rng(3)
    number = np.arange(ROWS)
    number[::10] -= rng.integers(0, 9_000, len(number[::10])).clip(0, number[::10])
    group = rng.integers(0, 50, ROWS)
    return pa.table(
        {
            "k": pa.array([f"k{i:06d}" for i in number.tolist()]),
            "g": pa.array([None if g == 0 else "" if g == 1 else f"group {g}" for g in group.tolist()]),
            "v": pa.array(np.arange(ROWS), pa.int32()),
            "ts": pa.array(np.arange(ROWS), pa.timestamp("ms")),
        }
    )


def _check(engine: Engine, rows: pa.Table) -> None:
    view = engine.view()
    source = view.sources()[0]
    assert source.now_ms is not None
    assert source.retained_from_ms is not None
    seen = rows.slice(source.retained_from_ms, source.now_ms + 1 - source.retained_from_ms)
    keys, groups, values = (seen.column(name).to_pylist() for name in ("k", "g", "v"))
    found = {query: view.snapshot(query).table for query in QUERIES}
    assert found["point"]["v"].to_pylist() == [v for k, v in zip(keys, values, strict=True) if k == "k199990"]
    assert found["range"]["k"].to_pylist() == [k for k in keys if "k1960" <= k <= "k1979"]
    assert found["like"]["k"].to_pylist() == [k for k in keys if k.endswith("77")]
    assert dict(zip(*(found["groups"][name].to_pylist() for name in ("g", "n")), strict=True)) == Counter(
        groups
    )
    several = {key: n for key, n in Counter(keys).items() if n > 1}
    assert dict(zip(*(found["many"][name].to_pylist() for name in ("k", "n")), strict=True)) == several
    assert sorted(found["distinct"]["g"].to_pylist(), key=str) == sorted(set(groups), key=str)
    at: dict[str, list[int]] = {}
    pairs = []
    for key, value in zip(keys, values, strict=True):
        pairs += at.get(key, [])
        at.setdefault(key, []).append(value)
    assert sorted(found["pairs"]["v"].to_pylist()) == sorted(pairs)


def test_answers_where_segments_have_tables_of_their_own() -> None:
    engine = Engine()
    columns = "k STRING, g STRING, v INTEGER, ts TIMESTAMP"
    options = f"(timestamp = 'ts', lateness = '2 SECONDS') RETAIN {RETAINED} MILLISECONDS"
    engine.create(f"CREATE STREAM s ({columns}) WITH {options}", CLOCK_MS)
    rows = _table()
    for query, sql in QUERIES.items():
        if query != "range":
            engine.register(query, sql)
    schema = engine.catalogue["s"].schema
    generations = set[int]()
    several = 0
    for low in range(0, ROWS, BATCH_ROWS_MAX):
        piece = rows.slice(low, BATCH_ROWS_MAX)
        places = np.arange(low, low + len(piece))
        engine.ingest("s", Batch.from_arrow(schema, piece, np.zeros(len(piece)), places, places), CLOCK_MS)
        parts = engine._sources[SourceName("s")].rows.rows().parts
        tables = {id(part.columns[0].strings) for part in parts}
        generations |= tables
        if len(tables) > 1:
            several += 1
            if several == 1:
                engine.register("range", QUERIES["range"])
            _check(engine, rows)
    assert several
    assert len(generations) >= 2
    _check(engine, rows)
    state = MemoryState()
    engine.save(state)
    _check(Engine.restore(state), rows)

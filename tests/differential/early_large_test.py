"""Thousands of rows, keys and ever new strings: joins that let go of rows tell what the same joins tell over
streams without constraints, and keep fewer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from engine.dataflow.operators.join import JoinNode
from engine.dataflow.operators.window_join import WindowJoinNode
from engine.engine import Engine
from engine.model.batch import Batch
from engine.model.source import SourceName

ROWS, STEP = 3_000, 250
WIDE, NARROW = "[RANGE 1200 MILLISECONDS]", "[RANGE 600 MILLISECONDS]"
PAIRS = "SELECT o.id AS a, f.id AS b FROM"
THREE = f"p {WIDE} JOIN f {WIDE} ON p.k = f.id JOIN o {WIDE} ON f.k = o.id"
JOINS = {
    "windows": (f"{PAIRS} o {WIDE} JOIN f {NARROW} ON f.k = o.id WHERE o.v < 2 AND f.v < 1", 0.8),
    "rows that come": (f"ISTREAM({PAIRS} o {WIDE} JOIN f {WIDE} ON f.k = o.id)", 0.5),
    "left": (f"{PAIRS} o {NARROW} LEFT JOIN f {WIDE} ON f.k = o.id AND o.v > 7", 1.0),
    "left of some": (f"{PAIRS} f {NARROW} LEFT JOIN o {WIDE} ON f.k = o.id WHERE f.v < 1", 0.8),
    "in": (f"SELECT id FROM o {WIDE} WHERE id IN (SELECT k FROM f {WIDE} WHERE v < 1)", 0.9),
    "three": (f"SELECT o.id AS a, f.id AS b, p.id AS c FROM {THREE} WHERE o.v < 1 AND f.v < 3", 0.85),
    "groups": (f"SELECT o.v AS v, COUNT(*) AS n FROM {THREE} WHERE o.v < 1 GROUP BY o.v", 0.85),
}
"""Queries, and the share of the rows that they may keep, at most."""
LONG = {"groups", "in", "left"}
"""Those that take longest."""


def engine_of(constraints: bool, sql: str) -> Engine:
    engine = Engine()
    above = {"o": None, "f": "o", "p": "f"}
    for name, target in above.items():
        clauses = ", CONSTRAINT UNIQUE (id)"
        if target is not None:
            clauses += f", CONSTRAINT CLUSTERED (k) WITHIN 2 ROWS, CONSTRAINT REFERENCES (k) TO {target} (id)"
        engine.create(
            f"CREATE STREAM {name} (id STRING NOT NULL, k STRING, v BIGINT, ts TIMESTAMP"
            f"{clauses if constraints else ''}) WITH (timestamp = 'ts', future_max = '1000 DAYS')"
        )
    engine.register("q", sql + " EMIT CHANGES WITH (snapshot = false)")
    return engine


def rows_of(engine: Engine) -> Iterator[tuple[str, Batch]]:
    """An order a ms, its two fulfilments a ms later, and a payment of each one ms later."""
    for first in range(0, ROWS, STEP):
        numbers = np.arange(first, first + STEP)
        names = numbers.astype(str)
        twice = np.repeat(numbers, 2)
        which = np.char.add(np.repeat(names, 2), np.tile(["/1", "/2"], STEP))
        paid = np.char.add(which, "p")
        yield "o", _batch(engine, "o", first, names, names, numbers % 11, numbers)
        yield (
            "f",
            _batch(engine, "f", 2 * first, which, np.repeat(names, 2), np.repeat(numbers, 2) % 5, twice + 1),
        )
        yield "p", _batch(engine, "p", 2 * first, paid, which, twice % 3, twice + 2)


def _batch(engine: Engine, name: str, first: int, ids: object, keys: object, v: object, ts: object) -> Batch:
    table = pa.table(
        {
            "id": pa.array(ids, pa.string()),
            "k": pa.array(keys, pa.string()),
            "v": pa.array(v, pa.int64()),
            "ts": pa.array(ts, pa.int64()).cast(pa.timestamp("ms")),
        }
    )
    n = len(table)
    schema = engine.catalogue[SourceName(name)].schema
    return Batch.from_arrow(schema, table, np.zeros(n), np.arange(first, first + n), np.asarray(ts))


def course(constraints: bool, sql: str) -> tuple[Counter[tuple[object, ...]], int]:
    """(what is told, the most rows that joins keep after a step)."""
    engine, told, most = engine_of(constraints, sql), Counter[tuple[object, ...]](), 0
    for name, rows in rows_of(engine):
        result = engine.ingest(name, rows)
        assert not result.violations
        for changes in result.changes:
            lines = zip(
                changes.weights.tolist(), changes.at_ms.tolist(), changes.table.to_pylist(), strict=True
            )
            told.update((weight, at_ms, *row.values()) for weight, at_ms, row in lines)
        kept = [
            node.rows
            for graph in engine._following.graphs.by_set.values()
            for node in graph.nodes.by_key.values()
            if isinstance(node, JoinNode | WindowJoinNode)
        ]
        most = max(most, sum(kept))
    engine._check()
    return told, most


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in LONG else []) for name in sorted(JOINS)]
)
def test_thousands_of_rows(name: str) -> None:
    sql, share = JOINS[name]
    told, kept = course(True, sql)
    without, kept_without = course(False, sql)
    assert told == without
    assert len(told) > 100
    assert kept <= share * kept_without, (kept, kept_without)

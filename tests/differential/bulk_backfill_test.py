"""History of real size: full segments, blocks of partial results, many chunks; held against an engine that
let go of nothing, to the bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from engine.engine import Engine
from engine.model.batch import Batch, concatenate
from engine.model.step import Register, Registration
from engine.model.types import TIMESTAMP_MS_MIN
from tests.differential.agreement import exact_rows
from tests.memory_state import MemoryState

ROWS = 150_000
STEP = 8_192
CREATE = (
    "CREATE STREAM s (a INTEGER, k STRING, x DOUBLE, ts TIMESTAMP NOT NULL)"
    " WITH (topic = 's', timestamp = 'ts', future_max = '1 day') RETAIN {}"
)
WANTS = "SELECT COUNT(*) AS n FROM s [RANGE 1 HOUR]"
QUERIES = {
    "sums": "SELECT COUNT(*) AS n, SUM(x) AS s, AVG(x) AS m, STDDEV_POP(x) AS d, MIN(x) AS lo"
    " FROM s [RANGE 1 HOUR] WHERE a < 100",
    "last": "SELECT SUM(x) AS s FROM s [ROWS 100000] WHERE a >= 17",
    "few": "SELECT a, k, x FROM s [RANGE 1 HOUR] WHERE a = 3 AND k = 'k1'",
    "groups": "SELECT k, COUNT(*) AS n, SUM(x) AS s FROM s [RANGE 1 HOUR] WHERE a < 50 GROUP BY k",
    "joined": "SELECT COUNT(*) AS n FROM s [RANGE 1 HOUR] AS f JOIN s [RANGE 2 SECONDS] AS g ON f.k = g.k"
    " WHERE f.a = 5 AND g.a = 7",
}


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Three rows a millisecond, doubles of very different sizes."""
    rng = np.random.default_rng(7)
    return pa.table(
        {
            "a": pa.array(rng.integers(0, 256, ROWS), pa.int32()),
            "k": pa.array([f"k{n}" for n in rng.integers(0, 40, ROWS)]),
            "x": rng.standard_normal(ROWS) * 10.0 ** rng.integers(-8, 9, ROWS),
            "ts": pa.array(np.arange(ROWS) // 3, pa.timestamp("ms")),
        }
    )


def batch(engine: Engine, table: pa.Table, first: int, stop: int) -> Batch:
    rows = table.slice(first, stop - first)
    times = rows.column("ts").cast(pa.int64()).to_numpy()
    schema = engine.catalogue["s"].schema
    return Batch.from_arrow(schema, rows, np.zeros(len(rows)), np.arange(first, stop), times)


def filled(table: pa.Table, retain: str) -> Engine:
    engine = Engine()
    engine.create(CREATE.format(retain))
    for first in range(0, ROWS, STEP):
        engine.ingest("s", batch(engine, table, first, min(first + STEP, ROWS)), 1_000_000)
    return engine


def register(engine: Engine, mode: str) -> None:
    for name, sql in QUERIES.items():
        body = Register((Registration(f"{name} {mode}", sql, options={"maintenance": mode}),))
        assert not engine._now(body, 0).failed


def answers(engine: Engine, mode: str) -> dict[str, Any]:
    found = {}
    for name in QUERIES:
        answer = engine.view().snapshot(f"{name} {mode}")
        assert answer.complete
        found[name] = answer.table
    return found


@pytest.fixture(scope="module")
def expected(table: pa.Table) -> dict[str, pa.Table]:
    engine = filled(table, "1 DAY")
    register(engine, "none")
    return answers(engine, "none")


@pytest.mark.parametrize("chunks", [1, 5])
def test_every_mode_answers_to_the_bit_as_if_nothing_had_gone(
    table: pa.Table, expected: dict[str, pa.Table], chunks: int
) -> None:
    """Half of the queries come before the history; the store is read back in the middle of it."""
    store = MemoryState()
    engine = filled(table, "1 SECOND")
    register(engine, "eager")
    engine.register("wants", WANTS)
    engine.save(store)
    boundary = engine.view().boundary_ms("s")
    assert boundary is not None
    ends = [boundary * place // chunks for place in range(chunks, 0, -1)]
    for place, until_ms in enumerate(ends):
        from_ms = ends[place + 1] if place + 1 < len(ends) else TIMESTAMP_MS_MIN
        rows = batch(engine, table, 3 * max(0, from_ms), 3 * until_ms)
        engine.backfill("s", rows, from_ms)
        if place == chunks // 2:
            engine.save(store)
            engine = Engine.restore(store)
    engine._check()
    register(engine, "lazy")
    for mode in "eager", "lazy":
        for name, answer in answers(engine, mode).items():
            assert exact(answer) == exact(expected[name]), (name, mode)
    engine.save(store)
    again = Engine.restore(store)
    assert exact(answers(again, "eager")["sums"]) == exact(expected["sums"])


def test_a_late_row_among_those_kept_for_the_last_n_is_in_what_is_kept_of_them(table: pa.Table) -> None:
    engine = filled(table, "1 SECOND")
    for mode in "eager", "none":
        body = Register((Registration(mode, QUERIES["last"], options={"maintenance": mode}),))
        engine._now(body, 0)
    boundary = engine.view().boundary_ms("s")
    assert boundary is not None
    before = batch(engine, table, 3 * 30_000, 3 * 40_000)
    late = late_row(engine, 40_000, 1e9, 0, partition=1)
    after = batch(engine, table, 3 * 40_000 + 3, 3 * boundary)
    same = batch(engine, table, 3 * 40_000, 3 * 40_000 + 3)
    rows = concatenate(before.schema, [before, same, late, after])
    engine.backfill("s", rows, 30_000)
    eager, fresh = (engine.view().snapshot(mode).table for mode in ("eager", "none"))
    assert exact(eager) == exact(fresh)
    engine._check()


def late_row(engine: Engine, ts: int, x: float, offset: int, partition: int = 0) -> Batch:
    rows = pa.table(
        {
            "a": pa.array([200], pa.int32()),
            "k": pa.array(["late"]),
            "x": pa.array([x]),
            "ts": pa.array([ts], pa.timestamp("ms")),
        }
    )
    return Batch.from_arrow(
        engine.catalogue["s"].schema, rows, np.array([partition]), np.array([offset]), np.array([ts])
    )


def exact(table: pa.Table) -> list[tuple[Any, ...]]:
    return exact_rows(zip(*(column.to_pylist() for column in table.columns), strict=True))

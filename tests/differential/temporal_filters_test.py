"""Answers to conditions with NOW() against DuckDB's, with the instant of the answer in NOW()'s place."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.batch import Batch
from engine.model.source import SourceName
from engine.model.step import Heartbeat, Position, Step
from tests.capacities import small_engine
from tests.differential.agreement import EngineSubject, plain_rows

ROWS = st.lists(st.tuples(st.integers(0, 40), st.none() | st.integers(0, 2)), max_size=14)
"""Instant in seconds, in any order of arrival, and a key."""
CONDITIONS = (
    "ts > NOW() - INTERVAL '10' SECOND",
    "ts >= NOW() - INTERVAL '10' SECOND AND k > 0",
    "ts < NOW() - INTERVAL '5' SECOND",
    "ts BETWEEN NOW() - INTERVAL '10' SECOND AND NOW() - INTERVAL '5' SECOND",
    "NOT (NOW() > ts + INTERVAL '7' SECOND)",
    "ts = NOW()",
    "ts > NOW()",
    "ts <= NOW() AND k = 1",
)
TEXTS = tuple(
    text.format(condition)
    for condition in CONDITIONS
    for text in ("SELECT n, ts, k FROM t WHERE {}", "SELECT k, COUNT(*) AS c FROM t WHERE {} GROUP BY k")
)


TEXTS += (
    "SELECT k, COUNT(*) AS c FROM t GROUP BY k HAVING MAX(ts) < NOW() - INTERVAL '5' SECOND",
    "SELECT k, MAX(ts) AS m FROM t GROUP BY k HAVING MAX(ts) >= NOW() - INTERVAL '5' SECOND AND COUNT(*) > 1",
    "SELECT k FROM t GROUP BY k HAVING MIN(ts) > NOW() - INTERVAL '12' SECOND",
    "SELECT k % 2 AS odd FROM t WHERE n > 1 GROUP BY k % 2 HAVING NOW() - MIN(ts) >= INTERVAL '12' SECOND",
    "SELECT COUNT(*) AS c FROM t HAVING MAX(ts) < NOW() - INTERVAL '5' SECOND",
    "SELECT COUNT(*) AS c FROM t HAVING MAX(ts) <= NOW() + INTERVAL '5' SECOND",
)


@pytest.fixture(scope="module")
def database() -> Any:
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        yield connection


@settings(max_examples=max(10, settings.default.max_examples // 4))
@given(ROWS, st.integers(1, 4), st.lists(st.integers(1, 9_000), min_size=1, max_size=2))
def test_answers(database: Any, rows: list[tuple[int, int]], pieces: int, waits: list[int]) -> None:
    subject = EngineSubject(engine := small_engine())
    engine.create(
        "CREATE STREAM t (ts TIMESTAMP NOT NULL, k BIGINT, n BIGINT) WITH (timestamp = 'ts', "
        "lateness = '60 seconds', idle_timeout = '1 second', idle_advances = true) RETAIN 100 DAYS"
    )
    for place, sql in enumerate(TEXTS):
        engine.register(f"lazy{place}", sql)
        subject.register(f"eager{place}", sql, {"maintenance": "eager"})
        engine.follow(f"eager{place}")
    instants = [100_000 + 1_000 * at for at, _ in rows]
    table = pa.table(
        {
            "ts": pa.array(instants, pa.timestamp("ms")),
            "k": pa.array([k for _, k in rows], pa.int64()),
            "n": pa.array(range(len(rows)), pa.int64()),
        }
    )
    schema, clock_ms = engine.catalogue["t"].schema, 100_000
    for some in np.array_split(np.arange(len(rows)), pieces):
        times = np.array(instants, np.int64)[some]
        batch = Batch.from_arrow(schema, table.take(pa.array(some)), np.zeros(len(some)), some, times)
        clock_ms += 1_000
        engine.ingest("t", batch, clock_ms)
    database.register("t", table)
    for wait_ms in waits:
        clock_ms += 20_000 + wait_ms
        engine.enqueue(Step(Position(0, engine.position.sequence + 1), clock_ms, Heartbeat(SourceName("t"))))
        engine.run()
        for place, sql in enumerate(TEXTS):
            found = [subject.answer(f"{way}{place}") for way in ("lazy", "eager")]
            now_ms = found[0].now_ms
            if now_ms is None:
                continue
            now = f"make_timestamp({now_ms} * 1000)"
            seen = f"(SELECT * FROM t WHERE ts <= {now})"
            text = sql.replace("NOW()", now).replace("FROM t ", f"FROM {seen} ")
            theirs = sorted(plain_rows(database.sql(text).to_arrow_table()), key=repr)
            for ours in found:
                assert sorted(ours.rows, key=repr) == theirs, (sql, now_ms)

"""Queries with a preference: DuckDB's answer, or part of it while something is left."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.differential.agreement import exact_rows, plain_rows
from tests.differential.preferred import UNLIMITED, Case, Streams

WINDOW_MS = 200
ROWS = 80
PLAIN = {
    "join": "SELECT a.k, a.v, b.v AS w FROM a, b WHERE a.k = b.k AND a.v < 3",
    "selection": "SELECT k, v FROM a WHERE k IN (1, 4) OR v > 3",
    "aggregates": "SELECT COUNT(*) AS n, SUM(k) AS s, MAX(v) AS m FROM a WHERE k BETWEEN 1 AND 3",
}


def preferred(name: str, order: str) -> str:
    """With a preference for what comes often."""
    sources = "ab" if name == "join" else "a"
    estimates = ", ".join(f"SUMMARY.Estimate.Count({one}.k)" for one in sources)
    return (
        f"{PLAIN[name]} WITH PREFERENCE {order} {estimates} FADE FACTOR 0.7 WINDOW {WINDOW_MS} MILLISECONDS"
    )


def draw(rng: Random) -> dict[str, list[tuple[int, tuple[Any, ...]]]]:
    """Rows (timestamp, (k, v)) of both streams, with ties, by a law in which few keys are most of them."""
    drawn = {}
    for name in "ab":
        at, rows = 1_000, []
        for _ in range(ROWS):
            at += rng.choice((0, 0, 1, 2, 5))
            key = rng.choice((None, int(rng.paretovariate(0.8)) % 50))
            rows.append((at, (key, float(rng.randrange(5)))))
        drawn[name] = rows
    return drawn


def of_duckdb(drawn: dict[str, list[tuple[int, tuple[Any, ...]]]], text: str, now_ms: int) -> Counter[Any]:
    """The answer over the rows of the windows at NOW."""
    with duckdb.connect() as connection:
        for name, rows in drawn.items():
            inside = [values for at, values in rows if now_ms - WINDOW_MS <= at <= now_ms]
            columns = list(zip(*inside, strict=True)) or [(), ()]
            table = pa.table({"k": pa.array(columns[0], pa.int64()), "v": pa.array(columns[1], pa.float64())})
            connection.register(name, table)
        found = connection.execute(text).fetchall()
    return Counter(exact_rows([tuple(row) for row in found]))


@given(order=st.sampled_from(["desc", "asc", "weighted"]), seed=st.integers(0, 2**32 - 1))
def test_answers_are_those_of_duckdb_once_nothing_is_left(order: str, seed: int) -> None:
    rng = Random(seed)
    drawn = draw(rng)
    streams = Streams("BIGINT", "WITH GRANULARITY 50 MILLISECONDS AND COLLAPSE (2, 3)", refers=False)
    for name in PLAIN:
        streams.register(name, Case(preferred(name, order), PLAIN[name]))
    sent = dict.fromkeys(drawn, 0)
    while any(sent[name] < ROWS for name in sent):
        name = rng.choice([name for name in sent if sent[name] < ROWS])
        stop = min(ROWS, sent[name] + rng.choice((1, 20, 60)))
        rows = [(0, at, values) for at, values in drawn[name][sent[name] : stop]]
        streams.put(name, rows, rng.choice((0, 3, 100)))
        sent[name] = stop
    for grant in (50, UNLIMITED):
        streams.beat("a", 0, grant)
        for name in PLAIN:
            answer = streams.engine.view().snapshot(name)
            assert answer.now_ms is not None
            mine = Counter(exact_rows(plain_rows(answer.table)))
            due = of_duckdb(drawn, PLAIN[name], answer.now_ms)
            assert mine == due or (answer.approximate and (name == "aggregates" or mine <= due)), name
    assert not streams.engine.needs.preference_work()

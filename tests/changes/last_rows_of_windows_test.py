"""The last rows of windows: equal rows leave in the order in which they came; first groups depend on that."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.model.batch import Batch
from engine.model.step import StepResult
from tests.capacities import small_engine

TUMBLE = "TUMBLE(s, INTERVAL '10' MILLISECOND)"
SESSION = "SESSION(s, INTERVAL '3' MILLISECOND)"
QUERIES = (
    f"SELECT window_end, k, COUNT(*) AS n FROM {TUMBLE} [ROWS 4] GROUP BY 1, 2 LIMIT 1",
    f"SELECT k FROM (SELECT window_end, k, COUNT(*) AS n FROM {TUMBLE} [ROWS 5] GROUP BY 1, 2 LIMIT 2)",
    f"SELECT window_end, k, COUNT(*) AS n FROM {SESSION} [ROWS 4] GROUP BY 1, 2 LIMIT 1",
    f"SELECT DISTINCT k FROM {TUMBLE} [ROWS 4] LIMIT 1",
)
ROWS = [(2, 2), (0, 0), (7, 0), (0, 1), (0, 2), (0, 1), (1, 1), (7, 1), (7, 1)]


def told(result: StepResult) -> Counter[str]:
    found = Counter[str]()
    for changes in result.changes:
        for row, weight in zip(changes.table.to_pylist(), changes.weights.tolist(), strict=True):
            found[repr(row)] += weight
    return found


@pytest.mark.parametrize("sql", QUERIES)
@given(
    rows=st.lists(st.tuples(st.sampled_from([0, 0, 1, 3, 7]), st.integers(0, 2)), max_size=30),
    size=st.integers(1, 4),
)
@example(rows=ROWS, size=3)
def test_what_is_told_adds_up_to_the_answer(sql: str, rows: list[tuple[int, int]], size: int) -> None:
    engine = small_engine()
    engine.create("CREATE STREAM s (k INTEGER, ts TIMESTAMP) WITH (timestamp = 'ts') RETAIN 100 SECONDS")
    answer = told(engine.register("q", f"{sql} EMIT CHANGES"))
    stamps = 1_020 + np.cumsum([gap for gap, _ in rows])
    for first in range(0, len(rows), size):
        part, at = rows[first : first + size], stamps[first : first + size]
        table = pa.table(
            {"k": pa.array([k for _, k in part], pa.int32()), "ts": pa.array(at, pa.timestamp("ms"))}
        )
        places = np.arange(first, first + len(part))
        batch = Batch.from_arrow(engine.catalogue["s"].schema, table, np.zeros(len(part)), places, at)
        answer.update(told(engine.ingest("s", batch, 2_000)))
        expected = Counter(map(repr, engine.view().snapshot("q").table.to_pylist()))
        assert +answer == expected

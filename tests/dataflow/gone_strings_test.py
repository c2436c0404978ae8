"""Strings of which most come once and go, so that those of others get new codes all the time: what is told
stays true, whenever its values are read.
"""

from __future__ import annotations

from collections import Counter

import pytest

from engine.model.step import Register, Registration
from tests.engine.feed import Feed

TEXTS = (
    "SELECT v, ARRAY_AGG(k) AS c FROM s [RANGE 20 MILLISECONDS] GROUP BY v",
    "SELECT v, APPROX_COUNT_DISTINCT(k) AS c FROM s [RANGE 20 MILLISECONDS] GROUP BY v",
    "SELECT v, COUNT(DISTINCT k) AS c, MAX(k) AS m FROM s [RANGE 20 MILLISECONDS] GROUP BY v",
    "SELECT k, v FROM s [ROWS 7]",
    "SELECT k, v FROM s [PARTITION BY v ROWS 3]",
    "SELECT k, v FROM s [RANGE 20 MILLISECONDS] ORDER BY k LIMIT 3",
    """SELECT k, n FROM (SELECT k, ROW_NUMBER() OVER (PARTITION BY v ORDER BY k DESC) AS n
    FROM s [RANGE 20 MILLISECONDS]) AS x WHERE n <= 2""",
    "SELECT DISTINCT k FROM s [RANGE 20 MILLISECONDS]",
    "SELECT k FROM s [RANGE 20 MILLISECONDS] EXCEPT ALL SELECT k FROM s [RANGE 9 MILLISECONDS]",
    """SELECT a.k AS k, b.k AS l FROM s [RANGE 9 MILLISECONDS] AS a
    JOIN s [RANGE 9 MILLISECONDS] AS b ON a.v = b.v""",
    "SELECT k, v FROM s [RANGE 20 MILLISECONDS] WHERE k NOT IN (SELECT k FROM s [RANGE 9 MILLISECONDS])",
)


@pytest.mark.parametrize("strategy", ["", "nt", "upa"])
@pytest.mark.parametrize("text", TEXTS)
def test_strings_that_leave_take_no_others_with_them(text: str, strategy: str) -> None:
    feed = Feed()
    options = {"strategy": strategy} if strategy else {}
    asked = Registration("q0", f"{text} EMIT CHANGES", options=options)
    feed.engine._now(Register((asked,)), feed.clock_ms)
    held = Counter[tuple[str, ...]]()
    for step in range(25):
        feed.put(*((1_000 + 7 * step + row, f"k{step}-{row}", float(row % 2)) for row in range(5)))
        for changes in feed.told[-1].changes:
            for row, weight in zip(changes.table.to_pylist(), changes.weights.tolist(), strict=True):
                held[tuple(map(str, row.values()))] += weight
        answer = feed.answer().table.to_pylist()
        assert +held == Counter(tuple(map(str, row.values())) for row in answer), step
        assert not -held
    feed.engine._check()

"""Whether the clock alone may change an answer: only then is a quiet stream given it."""

from __future__ import annotations

import pytest

from engine.model.source import SourceName
from tests.capacities import small_engine
from tests.engine.feed import Feed

S = SourceName("s")


@pytest.mark.parametrize(
    ("sql", "needed"),
    [
        ("SELECT k FROM s", False),
        ("SELECT k, COUNT(*) AS n FROM s [UNBOUNDED] GROUP BY k", False),
        ("SELECT k FROM s [ROWS 10]", False),
        ("SELECT k FROM s [PARTITION BY k ROWS 2]", False),
        ("SELECT k FROM s EMIT CHANGES", False),
        ("SELECT k FROM s [RANGE 1 SECOND]", True),
        ("SELECT k FROM s [NOW]", True),
        ("SELECT k FROM s [UNBOUNDED SLIDE 1 MINUTE]", True),
        ("SELECT window_end, COUNT(*) AS n FROM TUMBLE(s, INTERVAL '1' MINUTE) GROUP BY window_end", True),
        ("SELECT k FROM s WHERE k IN (SELECT k FROM s [RANGE 1 SECOND])", True),
    ],
)
def test_windows_that_move_need_the_clock_while_their_queries_stand(sql: str, needed: bool) -> None:
    engine = small_engine()
    engine.create("CREATE STREAM s (k STRING, v DOUBLE)")
    assert not engine.needs.clock(S)
    engine.register("plain", "SELECT v FROM s")
    assert not engine.needs.clock(S)
    engine.register("q", sql)
    assert engine.needs.clock(S) == needed
    engine.unregister("q")
    assert not engine.needs.clock(S)


def test_rows_that_wait_need_the_clock() -> None:
    feed = Feed("SELECT k FROM s")
    feed.put((1_000, "a", 1.0))
    assert feed.engine.needs.clock(S)  # the row is not visible yet
    feed.now(1_000)
    assert not feed.engine.needs.clock(S)


def test_a_join_needs_the_clock_of_each_source() -> None:
    engine = small_engine()
    for name in ("s", "t"):
        engine.create(f"CREATE STREAM {name} (k STRING, v DOUBLE)")
    engine.register("q", "SELECT s.v FROM s JOIN t ON s.k = t.k")
    assert engine.needs.clock(S)
    assert engine.needs.clock(SourceName("t"))

"""Conditions with NOW() are the windows that they mean, in every place where they may stand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.language.query import Query
from tests.language.fixtures import bind

SAME = (
    ("FROM flights WHERE ts >= NOW() - INTERVAL '10' MINUTE", "FROM flights [RANGE 10 MINUTES]"),
    ("FROM flights WHERE ts > NOW() - INTERVAL '10' MINUTE", "FROM flights [RANGE 599999 MS]"),
    ("FROM flights WHERE NOT ts < NOW() - INTERVAL '10' MINUTE", "FROM flights [RANGE 10 MINUTES]"),
    ("FROM flights WHERE NOT (NOT (ts >= NOW() - INTERVAL '1' DAY))", "FROM flights [RANGE 1 DAY]"),
    ("FROM flights WHERE NOW() <= ts + INTERVAL '5' MINUTE", "FROM flights [RANGE 5 MINUTES]"),
    ("FROM flights WHERE EPOCH_MS(NOW()) - EPOCH_MS(ts) <= 5000", "FROM flights [RANGE 5 SECONDS]"),
    ("FROM flights WHERE ts = CURRENT_TIMESTAMP", "FROM flights [NOW]"),
    ("FROM flights WHERE ts >= LOCALTIMESTAMP", "FROM flights [NOW]"),
    ("FROM flights WHERE ts <= GETDATE()", "FROM flights"),
    ("FROM flights WHERE ts < NOW() + INTERVAL '1' DAY", "FROM flights"),
    ("FROM flights WHERE ts > NOW()", "FROM flights WHERE FALSE"),
    (
        "FROM flights WHERE ts > NOW() - INTERVAL '1' HOUR AND ts < NOW() - INTERVAL '2' HOUR",
        "FROM flights [RANGE 3599999 MS] WHERE FALSE",
    ),
    (
        "FROM flights WHERE ts BETWEEN NOW() - INTERVAL '10' MINUTE AND NOW() - INTERVAL '5' MINUTE",
        "FROM flights BEGIN NOW - 10 MINUTES END NOW - 5 MINUTES",
    ),
    (
        "FROM flights WHERE ts < NOW() - INTERVAL '5' MINUTE",
        "FROM flights BEGIN TIMESTAMP '0001-01-01' END NOW - 300001",
    ),
    (
        "FROM flights [RANGE 1 HOUR] WHERE ts >= NOW() - INTERVAL '10' MINUTE AND delay > 3",
        "FROM flights [RANGE 10 MINUTES] WHERE delay > 3",
    ),
    ("FROM flights [RANGE 1 MINUTE] WHERE ts >= NOW() - INTERVAL '1' HOUR", "FROM flights [RANGE 1 MINUTE]"),
    ("FROM late WHERE ts >= NOW() - INTERVAL '1' HOUR", "FROM late [RANGE 1 HOUR]"),
    (
        "FROM TUMBLE(flights, INTERVAL '1' MINUTE) WHERE window_end > NOW() - INTERVAL '1' HOUR",
        "FROM TUMBLE(flights, INTERVAL '1' MINUTE) [RANGE 1 HOUR]",
    ),
    (
        "FROM flights f JOIN weather w ON f.dest = w.dest AND w.ts = NOW() WHERE f.ts = NOW()",
        "FROM flights [NOW] f JOIN weather [NOW] w ON f.dest = w.dest",
    ),
    (
        "FROM flights f JOIN weather w ON f.dest = w.dest WHERE w.ts >= NOW() - INTERVAL '1' HOUR",
        "FROM flights f JOIN weather [RANGE 1 HOUR] w ON f.dest = w.dest",
    ),
    (
        "FROM flights f LEFT JOIN weather w ON f.dest = w.dest AND w.ts = NOW() WHERE f.ts = NOW()",
        "FROM flights [NOW] f LEFT JOIN weather [NOW] w ON f.dest = w.dest",
    ),
    (
        "FROM flights f SEMI JOIN weather w ON f.dest = w.dest AND w.ts >= NOW() - INTERVAL '1' HOUR",
        "FROM flights f SEMI JOIN weather [RANGE 1 HOUR] w ON f.dest = w.dest",
    ),
    (
        "FROM flights WHERE dest IN (SELECT dest FROM weather WHERE ts >= NOW() - INTERVAL '1' HOUR)",
        "FROM flights WHERE dest IN (SELECT dest FROM weather [RANGE 1 HOUR])",
    ),
)


@pytest.mark.parametrize(("condition", "window"), SAME)
@pytest.mark.parametrize("select", ["SELECT 1 AS one", "SELECT COUNT(*) AS n"])
def test_a_condition_is_a_window(select: str, condition: str, window: str) -> None:
    one, other = bind(f"{select} {condition}"), bind(f"{select} {window}")
    assert isinstance(one, Query)
    assert isinstance(other, Query)
    assert _plain(one) == _plain(other)


def _plain(query: Query) -> Query:
    """Without its text, and those of its inner queries."""
    stages = tuple(
        stage if stage.right_input is None else stage.with_right_input(_plain(stage.right_input))
        for stage in query.stages
    )
    return replace(query, sql="", stages=stages)

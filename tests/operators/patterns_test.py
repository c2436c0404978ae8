"""Update patterns of plans, edge by edge: what EXPLAIN shows."""

from __future__ import annotations

import pytest

from engine.language.query import Query
from engine.operators.patterns import update_patterns
from tests.language.fixtures import bind

TUMBLE = "TUMBLE(flights, INTERVAL '1' MINUTE)"
HOUR = "[RANGE 1 HOUR]"


def patterns(sql: str) -> list[str]:
    query = bind(sql)
    assert isinstance(query, Query)
    found = update_patterns(query)
    assert len(found) == 1 + len(query.stages)
    return [pattern.name for pattern in found]


@pytest.mark.parametrize(
    ("window", "pattern"),
    [
        ("flights", "MON"),
        ("flights [UNBOUNDED SLIDE 1 HOUR]", "MON"),
        ("flights BEGIN TIMESTAMP '2013-01-01' END NOW", "MON"),
        ("flights BEGIN TIMESTAMP '2013-01-01' END TIMESTAMP '2013-01-02'", "MON"),
        ("flights BEGIN NOW - 5 END NOW", "WKS"),
        ("flights BEGIN NOW - 5 END TIMESTAMP '2013-01-02'", "WKS"),
        ("flights BEGIN NOW - 5 END NOW - 2", "WKS"),
        ("flights [NOW]", "WKS"),
        ("flights [RANGE 1 HOUR SLIDE 1 MINUTE]", "WKS"),
        ("flights [ROWS 5]", "STR"),
        ("flights [PARTITION BY carrier ROWS 5]", "STR"),
        ("flights [ROWS 5 WHERE delay > 3]", "STR"),
        (TUMBLE, "MON"),
        (f"{TUMBLE} {HOUR}", "WKS"),
        (f"{TUMBLE} [ROWS 5]", "STR"),
        ("SESSION(flights PARTITION BY carrier, INTERVAL '1' MINUTE)", "MON"),
    ],
)
def test_leaves_and_what_passes_them_on(window: str, pattern: str) -> None:
    assert set(patterns(f"SELECT carrier, delay FROM {window}")) == {pattern}


@pytest.mark.parametrize("window", ["", HOUR, "[ROWS 5]"])
def test_groups_are_weak_whatever_they_are_made_of(window: str) -> None:
    sql = f"SELECT carrier, COUNT(*) AS n FROM flights {window} GROUP BY carrier HAVING COUNT(*) > 2"
    assert set(patterns(sql)[1:]) == {"WK"}


@pytest.mark.parametrize(("window", "pattern"), [("", "MON"), (HOUR, "WK"), ("[ROWS 5]", "STR")])
def test_distinct_needs_state(window: str, pattern: str) -> None:
    assert patterns(f"SELECT DISTINCT carrier FROM flights {window}")[-1] == pattern


@pytest.mark.parametrize(("window", "pattern"), [("", "MON"), (HOUR, "WKS"), ("[ROWS 5]", "WK")])
def test_groups_of_a_closed_window_come_whole(window: str, pattern: str) -> None:
    sql = f"SELECT window_end, carrier, COUNT(*) AS n FROM {TUMBLE} {window} GROUP BY window_end, carrier"
    assert patterns(sql)[-1] == pattern
    again = f"SELECT n, COUNT(*) FROM ({sql}) GROUP BY n"
    assert patterns(again)[-1] == "WK"
    ends = f"SELECT window_end, MAX(n) FROM ({sql}) GROUP BY window_end"
    assert patterns(ends)[-1] == pattern


def test_the_start_tells_a_window_of_one_size_but_not_a_session() -> None:
    by_start = "SELECT window_start, COUNT(*) FROM {} GROUP BY window_start"
    session = "SESSION(flights PARTITION BY carrier, INTERVAL '1' MINUTE)"
    assert patterns(by_start.format(TUMBLE))[-1] == "MON"
    assert patterns(by_start.format(session))[-1] == "WK"
    assert patterns(f"SELECT window_end, COUNT(*) FROM {session} GROUP BY window_end")[-1] == "MON"


def test_a_column_that_only_bears_the_name_is_no_window() -> None:
    sql = f"SELECT window_end, COUNT(*) FROM (SELECT delay AS window_end FROM {TUMBLE}) GROUP BY window_end"
    assert patterns(sql)[-1] == "WK"


@pytest.mark.parametrize(
    ("clauses", "pattern"),
    [
        ("FROM flights LIMIT 5", "MON"),
        (f"FROM flights {HOUR} LIMIT 5", "WK"),
        ("FROM flights ORDER BY delay", "MON"),
        ("FROM flights ORDER BY delay LIMIT 5", "STR"),
        (f"FROM flights {HOUR} ORDER BY delay LIMIT 5", "STR"),
    ],
)
def test_the_first_rows(clauses: str, pattern: str) -> None:
    assert patterns(f"SELECT carrier, delay {clauses}")[-1] == pattern


@pytest.mark.parametrize(
    ("outer", "inner", "pattern"),
    [
        ("carrier IN", "", "MON"),
        ("carrier IN", HOUR, "WK"),
        ("carrier IN", "[ROWS 3]", "STR"),
        ("carrier NOT IN", "", "STR"),
    ],
)
def test_semi_joins(outer: str, inner: str, pattern: str) -> None:
    sql = f"SELECT delay FROM flights WHERE {outer} (SELECT carrier FROM flights {inner} WHERE delay > 60)"
    assert patterns(sql)[-1] == pattern

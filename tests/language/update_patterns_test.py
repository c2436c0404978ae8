"""Update patterns of plans, edge by edge: what EXPLAIN shows."""

from __future__ import annotations

import pytest

from engine.language.query import CreateStream, Query
from engine.language.statements import parse
from engine.language.update_patterns import update_patterns
from engine.model.limits import Limits
from engine.model.source import Derived, Stream
from tests.language.fixtures import CATALOGUE

TUMBLE = "TUMBLE(flights, INTERVAL '1' MINUTE)"
HOUR = "[RANGE 1 HOUR]"


def sources() -> dict[str, Stream | Derived]:
    """Those of the language tests, and two tables."""
    found = dict(CATALOGUE)
    columns = "(carrier STRING PRIMARY KEY, seats INTEGER, ts TIMESTAMP NOT NULL) WITH (timestamp = 'ts')"
    for name, kind in (("fleets", ""), ("tariffs", "NON RETROACTIVE")):
        statement = parse(f"CREATE TABLE {name} {columns} {kind}", {}, Limits())
        assert isinstance(statement, CreateStream)
        found[name] = statement.stream
    return found


SOURCES = sources()
TABLES = {"fleets", "tariffs"}


def patterns(sql: str) -> list[str]:
    query = parse(sql, SOURCES, Limits())
    assert isinstance(query, Query)
    found = update_patterns(query, TABLES)
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
        (f"FROM flights {HOUR} ORDER BY ts FETCH FIRST 5 ROWS WITH TIES", "STR"),
        ("FROM flights, UNNEST(ARRAY[1, flight]) AS x", "MON"),
        (f"FROM flights {HOUR}, UNNEST(ARRAY[1, flight]) AS x", "WKS"),
        (f"FROM flights {HOUR} LEFT JOIN UNNEST(ARRAY[1, flight]) AS x ON TRUE", "WKS"),
        ("FROM flights [ROWS 3], UNNEST(ARRAY[1, flight]) AS x", "STR"),
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


# --- joins ----------------------------------------------------------------------------------------

GROWING, SLIDING, COUNTED = "flights {}", "flights [RANGE 1 HOUR] {}", "flights [ROWS 5] {}"
GROUPED = "(SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier) {}"
TABLE = "fleets {}"


def joined(left: str, kind: str, right: str, on: str = "a.carrier = b.carrier", rest: str = "") -> str:
    sql = f"SELECT a.carrier FROM {left.format('a')} {kind} {right.format('b')} ON {on} {rest}"
    return patterns(sql)[-1]


@pytest.mark.parametrize(
    ("left", "right", "pattern"),
    [
        (GROWING, GROWING, "MON"),
        (GROWING, SLIDING, "WK"),
        (SLIDING, GROWING, "WK"),
        (SLIDING, SLIDING, "WK"),
        (SLIDING, GROUPED, "WK"),
        (SLIDING, COUNTED, "STR"),
        (COUNTED, GROWING, "STR"),
        (TABLE, SLIDING, "STR"),
        (GROWING, TABLE, "STR"),
    ],
)
@pytest.mark.parametrize("kind", ["JOIN", "SEMI JOIN"])
def test_a_joined_row_goes_with_the_first_of_its_parts(
    kind: str, left: str, right: str, pattern: str
) -> None:
    assert joined(left, kind, right) == pattern


@pytest.mark.parametrize("kind", ["LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "ANTI JOIN"])
@pytest.mark.parametrize("right", [GROWING, SLIDING])
def test_a_row_without_a_partner_goes_when_one_comes(kind: str, right: str) -> None:
    assert joined(GROWING, kind, right) == "STR"


def test_a_later_row_takes_the_place_of_the_latest() -> None:
    on = "a.carrier = b.carrier AND a.ts >= b.ts"
    assert joined(GROWING, "ASOF JOIN", GROWING, on) == "STR"


@pytest.mark.parametrize(("left", "pattern"), [(GROWING, "MON"), (SLIDING, "WKS"), (COUNTED, "STR")])
@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN", "SEMI JOIN", "ANTI JOIN"])
def test_versions_as_of_each_row_change_nothing(kind: str, left: str, pattern: str) -> None:
    assert joined(left, kind, "tariffs {}") == pattern


def test_a_table_alone_may_lose_any_row() -> None:
    assert patterns("SELECT carrier FROM fleets")[-1] == "STR"
    assert patterns("SELECT carrier FROM tariffs")[-1] == "STR"


@pytest.mark.parametrize("kind", ["JOIN", "SEMI JOIN", "LEFT JOIN", "ANTI JOIN"])
@pytest.mark.parametrize(
    ("left", "right", "pattern"),
    [
        ("", "", "MON"),
        (HOUR, "", "WKS"),
        (HOUR, HOUR, "WKS or STR"),
        ("", "[ROWS 9]", "STR"),
    ],
)
def test_rows_of_windows_that_close_together_meet_at_once(
    kind: str, left: str, right: str, pattern: str
) -> None:
    one, other = (f"TUMBLE(flights, INTERVAL '1' MINUTE) {window} {{}}" for window in (left, right))
    on = "a.window_end = b.window_end AND a.carrier = b.carrier"
    expected = pattern.split(" or ")[-1 if kind in ("LEFT JOIN", "ANTI JOIN") else 0]
    assert joined(one, kind, other, on) == expected


def test_windows_that_close_apart_are_rows_like_others() -> None:
    minute, hour = (f"TUMBLE(flights, INTERVAL '1' {unit}) {{}}" for unit in ("MINUTE", "HOUR"))
    assert joined(minute, "LEFT JOIN", hour, "a.window_end = b.window_end") == "MON"
    assert joined(minute, "LEFT JOIN", minute, "a.window_start = b.window_start") == "MON"
    assert joined(minute, "LEFT JOIN", hour, "a.window_start = b.window_start") == "STR"


def test_joined_rows_are_in_no_order_of_time() -> None:
    assert joined(GROWING, "JOIN", GROWING, rest="LIMIT 5") == "STR"
    assert joined(GROWING, "JOIN", "tariffs {}", rest="LIMIT 5") == "MON"
    by_end = "SELECT window_end, COUNT(*) FROM (SELECT a.window_end FROM {} a {} b ON {}) GROUP BY window_end"
    assert patterns(by_end.format(TUMBLE, "JOIN flights", "a.carrier = b.carrier"))[-1] == "WK"
    together = by_end.format(TUMBLE, f"JOIN {TUMBLE}", "a.window_end = b.window_end")
    assert patterns(together)[-1] == "MON"


# --- set operations -------------------------------------------------------------------------------

TWO_HOURS = "[RANGE 2 HOURS]"


@pytest.mark.parametrize(
    ("left", "right", "union", "intersect"),
    [
        ("flights", "weather", "MON", "MON"),
        (f"flights {HOUR}", f"weather {HOUR}", "WKS", "WK"),
        (f"flights {HOUR}", f"weather {TWO_HOURS}", "WK", "WK"),
        (f"flights {HOUR}", "weather", "WK", "WK"),
        ("flights", f"weather {HOUR}", "WK", "WK"),
        (f"flights {HOUR}", "weather [ROWS 5]", "STR", "STR"),
        ("flights", "fleets", "STR", "STR"),
        (f"{TUMBLE} {HOUR}", f"weather {HOUR}", "WKS", "WK"),
    ],
)
def test_set_operations(left: str, right: str, union: str, intersect: str) -> None:
    column = "carrier" if right == "fleets" else "dest"
    text = f"SELECT carrier FROM {left} {{}} SELECT {column} FROM {right}"
    assert patterns(text.format("UNION ALL"))[-1] == union
    assert patterns(text.format("UNION"))[-1] == (union if union in ("MON", "STR") else "WK")
    for word in ("INTERSECT", "INTERSECT ALL"):
        assert patterns(text.format(word))[-1] == intersect
    for word in ("EXCEPT", "EXCEPT ALL"):
        assert patterns(text.format(word))[-1] == "STR"


def test_what_goes_with_the_shorter_of_two_windows_has_neither() -> None:
    pair = (
        f"(SELECT window_end FROM {TUMBLE} [RANGE {{}} HOURS] INTERSECT SELECT window_end FROM {TUMBLE} {{}})"
    )
    apart, other = pair.format(2, "[RANGE 3 HOURS]"), pair.format(4, "[RANGE 5 HOURS]")
    assert patterns(f"SELECT window_end FROM {apart}")[-1] == "WKS"
    assert patterns(f"{apart} UNION ALL {other}")[-1] == "WK"
    together = pair.format(2, "")
    assert patterns(f"{together} UNION ALL {together}")[-1] == "WKS"


def test_groups_stay_weak_through_a_union() -> None:
    grouped = "SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier"
    assert patterns(f"{grouped} UNION ALL SELECT dest, 1 FROM weather")[-1] == "WK"


@pytest.mark.parametrize(
    ("left", "right", "intersect", "except_"),
    [
        ("", "", "MON", "MON"),
        (HOUR, "", "WKS", "WKS"),
        ("", HOUR, "WKS", "STR"),
        ("[ROWS 5]", "", "STR", "STR"),
    ],
)
def test_closed_windows_are_compared_at_once(left: str, right: str, intersect: str, except_: str) -> None:
    one = f"SELECT window_end, carrier, delay FROM {TUMBLE} {left}"
    other = f"SELECT window_end, dest, 2 AS delay FROM TUMBLE(weather, INTERVAL '1' MINUTE) {right}"
    assert patterns(f"{one} INTERSECT {other}")[-1] == intersect
    assert patterns(f"{one} EXCEPT {other}")[-1] == except_
    assert patterns(f"{one} EXCEPT ALL ON (window_end) {other}")[-1] == except_
    assert patterns(f"{one} EXCEPT ALL ON (delay) {other}")[-1] == "STR"
    counted = f"SELECT window_end, COUNT(*) FROM ({one} EXCEPT {other}) GROUP BY window_end"
    assert patterns(counted)[-1] == ("WK" if except_ == "STR" else except_)


def test_windows_are_told_above_a_union_where_both_sides_tell_them() -> None:
    text = "SELECT {}, COUNT(*) FROM ({}) GROUP BY 1"
    both = f"SELECT window_end, carrier FROM {TUMBLE} UNION ALL SELECT window_end, dest FROM {TUMBLE}"
    crossed = f"SELECT window_end, carrier FROM {TUMBLE} UNION ALL SELECT ts, dest FROM weather"
    assert patterns(text.format("window_end", both))[-1] == "MON"
    assert patterns(text.format("window_end", crossed))[-1] == "WK"


@pytest.mark.parametrize(
    ("left", "right", "pattern"),
    [
        ("flights", "weather", "MON"),
        (f"flights {HOUR}", f"weather {TWO_HOURS}", "WK"),
        ("flights", "weather BEGIN TIMESTAMP '2013-01-01' END NOW - 5", "STR"),
        (TUMBLE, TUMBLE, "STR"),
    ],
)
def test_the_first_rows_of_a_union_stay_where_rows_come_in_their_order(
    left: str, right: str, pattern: str
) -> None:
    assert patterns(f"SELECT dest FROM {left} UNION ALL SELECT dest FROM {right} LIMIT 5")[-1] == pattern

"""What refusals advise works: each piece of advice is carried out."""

from __future__ import annotations

import re
from typing import Any

import pytest

from engine.engine import Engine
from engine.language.notices import notices, of_windows
from engine.language.query import Query
from engine.model.source import SourceName
from tureen.errors import NotSupported, TureenError


@pytest.fixture
def engine() -> Engine:
    made = Engine()
    made.create("CREATE STREAM s (k BIGINT, v DOUBLE, n STRING, ts TIMESTAMP) WITH (timestamp = 'ts')")
    return made


def hint_of(engine: Engine, sql: str) -> str:
    with pytest.raises(TureenError) as refused:
        engine.prepare(sql)
    return refused.value.hint or ""


X_AND_Y = "FROM (SELECT v AS x, ts AS y FROM s)"
FIRST_THREE = "RANK() OVER (ORDER BY v) < 3"


@pytest.mark.parametrize(
    ("written", "advised", "completed"),
    [
        ("SELECT LAG(v) FROM s", "LAG(x) OVER (PARTITION BY x ORDER BY y)", f"SELECT {{}} {X_AND_Y}"),
        (
            "SELECT NTILE(3) FROM s",
            "NTILE(n) OVER (PARTITION BY x ORDER BY y)",
            "SELECT NTILE(3) OVER () FROM s",
        ),
        (
            "SELECT v FROM s WHERE RANK() OVER (ORDER BY v) < 3",
            "QUALIFY",
            f"SELECT v FROM s {{}} {FIRST_THREE}",
        ),
        (
            "SELECT MAX(v) FROM s HAVING RANK() OVER (ORDER BY v) < 3",
            "QUALIFY",
            f"SELECT v FROM s {{}} {FIRST_THREE}",
        ),
        ("SELECT v FROM s [RANGE '2 years']", "30 DAYS", "SELECT v FROM s [RANGE {}]"),
        ("PRINT s", "SELECT * FROM s [ROWS 10]", "{}"),
        ("SHOW TOPICS", "SHOW SOURCES", "{}"),
        ("CREATE CONTINUOUS QUERY q AS SELECT v FROM s", "CREATE QUERY name AS SELECT ", "{}v FROM s"),
    ],
)
def test_what_is_advised_is_understood(engine: Engine, written: str, advised: str, completed: str) -> None:
    assert advised in hint_of(engine, written)
    sql = completed.format(advised)
    engine.prepare(sql)
    if sql.startswith("SELECT"):
        engine.register("q", sql)


@pytest.mark.parametrize("written", ["SHOW TOPICS", "PRINT s"])
def test_commands_that_are_named_exist(engine: Engine, written: str) -> None:
    from tureen.cli import main

    (words,) = re.findall(r"tureen ((?:[a-z]+ ?)+)", hint_of(engine, written))
    command: Any = main
    for word in words.split()[: 2 if words.startswith("topic") else 1]:
        command = command.get_command(None, word)
        assert command is not None, words


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ("CREATE STREAM j (id BIGINT, a VARIANT)", "write JSON"),
        ("CREATE STREAM j (id BIGINT, a STRUCT)", "write STRUCT<name STRING"),
        ("SELECT n -> 'b' = 5 FROM s", "write j ->> 'name'"),
        ("SELECT GET_JSON_OBJECT(n, '$.a') FROM s", "write JSON_EXTRACT_STRING"),
        ("SELECT s.n.b FROM s", "only a STRUCT has members"),
        ("SELECT UNNEST(n) FROM s", "UNNEST(STRING_TO_ARRAY(s, ','))"),
        ("SELECT n FROM s WHERE UNNEST(n) = 1", "CROSS JOIN UNNEST(s.a) AS t(x)"),
    ],
)
def test_what_is_nested_is_told_how_it_is_read(engine: Engine, written: str, instead: str) -> None:
    assert instead in hint_of(engine, written)


def test_a_comparison_with_null_is_told() -> None:
    sql = "SELECT a FROM s WHERE b = NULL AND c <> null OR NULL = d OR e != NULL"
    told = notices(sql)
    assert [one.hint for one in told] == [f"write {is_}" for is_ in
                                          ("IS NULL", "IS NOT NULL", "IS NULL", "IS NOT NULL")]  # fmt: skip
    assert [one.column for one in told] == [sql.index(" = N") + 2, sql.index("<>") + 1,
                                            sql.index("= d") + 1, sql.index("!=") + 1]  # fmt: skip
    assert not notices("SELECT a IS NULL, COALESCE(b, NULL), '= NULL' FROM s WHERE a = b -- = NULL")


def test_a_column_of_windows_is_no_string(engine: Engine) -> None:
    written = "SELECT window_start, COUNT(*) AS n FROM s GROUP BY window_start"
    hint = hint_of(engine, written)
    assert "single quotes" not in hint
    assert "TUMBLE(s, INTERVAL '1 minute')" in hint
    engine.prepare(written.replace("FROM s", "FROM TUMBLE(s, INTERVAL '1 minute')"))


@pytest.mark.parametrize("clause", ["GROUP BY zz", "ORDER BY zz"])
def test_what_is_grouped_or_ordered_by_is_no_string(engine: Engine, clause: str) -> None:
    hint = hint_of(engine, f"SELECT 1 AS one FROM s {clause}")
    assert "single quotes" not in hint
    assert "there are " in hint


def test_brackets_stand_where_the_hint_has_them(engine: Engine) -> None:
    without = "FROM s BEGIN NOW - 10 MINUTES END NOW"
    for written in ("SELECT v FROM s [BEGIN NOW - 1 HOUR END NOW]", "SELECT CLOCK_TIMESTAMP() FROM s"):
        assert f"without brackets{':' if '[' in written else ''} {without}" in hint_of(engine, written)
    engine.prepare(f"SELECT v {without}")


def test_windows_that_are_longer_than_retention_are_told(engine: Engine) -> None:
    sql = "SELECT window_end, COUNT(*) AS n FROM TUMBLE(s, INTERVAL '30' DAY) GROUP BY window_end"
    query = engine.prepare(sql)
    assert isinstance(query, Query)
    (told,) = of_windows(sql, query.scans(), {SourceName("s"): 3_600_000})
    assert (told.code, told.column) == ("window_beyond_retention", sql.index("TUMBLE") + 1)
    assert "30 days" in told.message
    assert "1 hour" in told.message
    assert not of_windows(sql, query.scans(), {SourceName("s"): 30 * 86_400_000})


def test_a_comparison_with_null_still_stands(engine: Engine) -> None:
    engine.register("q", "SELECT v FROM s WHERE v = NULL")
    with pytest.raises(NotSupported):
        engine.prepare("SELECT LAG(v) FROM s")

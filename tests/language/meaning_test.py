"""Texts that say the same thing are bound to the same query."""

from __future__ import annotations

import pytest

from engine.language.query import Query
from engine.language.statements import parse
from engine.model.limits import Limits
from tests.language.fixtures import CATALOGUE
from tests.language.meaning import meaning
from tureen.errors import LimitExceeded

SAME = {
    "a selection in FROM": (
        "SELECT d + 1 AS x FROM (SELECT delay * 2 AS d FROM flights WHERE delay > 3) WHERE d < 9",
        "SELECT delay * 2 + 1 AS x FROM flights WHERE delay > 3 AND delay * 2 < 9",
    ),
    "selections in a row": (
        "SELECT c FROM (SELECT b AS c FROM (SELECT a AS b FROM (SELECT carrier AS a FROM flights)))",
        "SELECT carrier AS c FROM flights",
    ),
    "the window of a selection": (
        "SELECT carrier FROM (SELECT * FROM flights WHERE delay > 3) [RANGE 1 HOUR]",
        "SELECT carrier FROM flights [RANGE 1 HOUR] WHERE delay > 3",
    ),
    "a window of rows of a selection": (
        "SELECT carrier FROM (SELECT * FROM flights WHERE delay > 3) [ROWS 5] WHERE dest = 'JFK'",
        "SELECT carrier FROM flights [ROWS 5 WHERE delay > 3] WHERE dest = 'JFK'",
    ),
    "a window inside a selection": (
        "SELECT carrier FROM (SELECT * FROM flights [ROWS 5]) WHERE delay > 3",
        "SELECT carrier FROM flights [ROWS 5] WHERE delay > 3",
    ),
    "PRECEDING behind a width": (
        "SELECT carrier FROM flights [RANGE 15 MINUTES PRECEDING SLIDE 5 MINUTES WHERE delay > 3]",
        "SELECT carrier FROM flights [RANGE 15 MINUTES SLIDE 5 MINUTES WHERE delay > 3]",
    ),
    "PRECEDING behind UNBOUNDED": (
        "SELECT carrier FROM flights [RANGE UNBOUNDED PRECEDING]",
        "SELECT carrier FROM flights [ROWS UNBOUNDED PRECEDING]",
        "SELECT carrier FROM flights [UNBOUNDED PRECEDING]",
        "SELECT carrier FROM flights",
    ),
    "PRECEDING behind a number of rows": (
        "SELECT carrier FROM flights f [PARTITION BY f.carrier, f.dest ROWS 9 PRECEDING WHERE delay > 3]",
        "SELECT carrier FROM flights [PARTITION BY carrier, dest ROWS 9 WHERE delay > 3]",
    ),
    "groups of a selection": (
        "SELECT c, SUM(d) AS s FROM (SELECT UPPER(carrier) AS c, delay + 1 AS d FROM flights) GROUP BY c",
        "SELECT UPPER(carrier) AS c, SUM(delay + 1) AS s FROM flights GROUP BY UPPER(carrier)",
    ),
    "WITH and FROM": (
        "WITH n AS (SELECT carrier, COUNT(*) AS k FROM flights GROUP BY 1) SELECT MAX(k) FROM n WHERE k > 2",
        "SELECT MAX(k) FROM (SELECT carrier, COUNT(*) AS k FROM flights GROUP BY 1) WHERE k > 2",
    ),
    "WITH that hides a stream": (
        "WITH flights AS (SELECT * FROM flights WHERE delay > 3) SELECT carrier FROM flights",
        "SELECT carrier FROM flights WHERE delay > 3",
    ),
    "WITH and a view": (
        "WITH l(a, b) AS (SELECT carrier, twice FROM late) SELECT a FROM l WHERE b > 30",
        "SELECT carrier AS a FROM flights WHERE delay > 10 AND delay * 2 > 30",
    ),
    "a view of a view": (
        "SELECT n FROM carriers WHERE most > 3",
        (
            "SELECT n FROM (SELECT carrier, COUNT(*) AS n, MAX(delay * 2) AS most FROM flights "
            "WHERE delay > 10 GROUP BY carrier) WHERE most > 3"
        ),
    ),
    "keys by number, name and expression": (
        "SELECT UPPER(dest) AS d, COUNT(*) FROM flights GROUP BY 1",
        "SELECT UPPER(dest) AS d, COUNT(*) FROM flights GROUP BY d",
        "SELECT UPPER(dest) AS d, COUNT(*) FROM flights GROUP BY UPPER(dest)",
        "SELECT UPPER(f.dest) AS d, COUNT(*) FROM flights f GROUP BY (UPPER(dest)), d, 1",
    ),
    "order by number, name and expression": (
        "SELECT delay * 2 AS d FROM flights ORDER BY 1 DESC",
        "SELECT delay * 2 AS d FROM flights ORDER BY d DESC",
        "SELECT delay * 2 AS d FROM flights ORDER BY delay * 2 DESC NULLS FIRST",
    ),
    "HAVING by name and by aggregate": (
        "SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier HAVING n > 2 ORDER BY n",
        "SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier HAVING COUNT(*) > 2 ORDER BY COUNT(*)",
    ),
    "HAVING and WHERE around": (
        "SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier HAVING COUNT(*) > 2",
        "SELECT * FROM (SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier) WHERE n > 2",
    ),
    "LIMIT and FETCH": (
        "SELECT carrier FROM flights LIMIT 3 OFFSET 2",
        "SELECT carrier FROM flights OFFSET 2 LIMIT 3",
        "SELECT carrier FROM flights OFFSET 2 ROWS FETCH NEXT 3 ROWS ONLY",
    ),
    "no LIMIT": ("SELECT carrier FROM flights", "SELECT ALL carrier FROM flights LIMIT ALL OFFSET 0"),
    "other names of aggregates": (
        "SELECT STDDEV_SAMP(delay) AS a, VAR_SAMP(flight) AS b, FIRST(delay) AS d FROM flights",
        "SELECT STDDEV(delay) AS a, VARIANCE(flight) AS b, ANY_VALUE(delay) AS d FROM flights",
    ),
    "DISTINCT that changes nothing": (
        "SELECT MIN(delay) AS a, BOOL_OR(cancelled) AS b FROM flights",
        "SELECT MIN(DISTINCT delay) AS a, BOOL_OR(ALL cancelled) AS b FROM flights",
    ),
    "NOT around and inside": (
        "SELECT carrier FROM flights WHERE dest NOT IN (SELECT dest FROM flights)",
        "SELECT carrier FROM flights WHERE NOT (dest IN (SELECT dest FROM flights))",
        "SELECT carrier FROM flights WHERE NOT NOT NOT dest IN (SELECT dest FROM flights)",
    ),
    "sides of a correlation": (
        "SELECT carrier FROM flights a WHERE EXISTS (SELECT 1 FROM flights b WHERE a.dest = b.dest)",
        (
            "SELECT carrier FROM flights a WHERE EXISTS (SELECT DISTINCT delay FROM flights b "
            "WHERE (b.dest) = (a.dest))"
        ),
    ),
    "IN and EXISTS": (
        (
            "SELECT carrier FROM flights a WHERE EXISTS "
            "(SELECT 1 FROM flights b WHERE a.dest = b.dest AND b.delay > 3)"
        ),
        "SELECT carrier FROM flights WHERE dest IN (SELECT dest AS equal_1 FROM flights WHERE delay > 3)",
    ),
    "the first of each": (
        (
            "SELECT dest FROM (SELECT dest, ROW_NUMBER() OVER (PARTITION BY carrier ORDER BY ts) AS n "
            "FROM flights) WHERE n <= 3"
        ),
        (
            "SELECT dest FROM (SELECT dest, ROW_NUMBER() OVER (PARTITION BY carrier ORDER BY ts) AS n "
            "FROM flights) WHERE n < 4"
        ),
        (
            "SELECT dest FROM (SELECT dest, ROW_NUMBER() OVER (PARTITION BY carrier ORDER BY ts) AS n "
            "FROM flights) WHERE 4 > n"
        ),
    ),
    "windows in FROM and in GROUP BY": (
        (
            "SELECT window_end, carrier, COUNT(*) AS n FROM TUMBLE(flights, 1 HOUR) WHERE delay > 3 "
            "GROUP BY carrier, window_start, window_end"
        ),
        (
            "SELECT TUMBLE_END(ts, 1 HOUR) AS window_end, carrier, COUNT(*) AS n FROM flights "
            "WHERE delay > 3 GROUP BY carrier, TUMBLE(ts, 1 HOUR)"
        ),
        (
            "SELECT w.end AS window_end, carrier, n FROM (SELECT carrier, TUMBLE(1 HOUR) AS w, COUNT(*) AS n "
            "FROM flights WHERE delay > 3 GROUP BY carrier, w)"
        ),
    ),
    "sessions in FROM and in GROUP BY": (
        (
            "SELECT carrier, window_start, window_end FROM SESSION(late PARTITION BY carrier, 5 SECONDS) "
            "GROUP BY carrier, window_start, window_end"
        ),
        "SELECT carrier, SESSION(5 SECONDS) FROM flights WHERE delay > 10 GROUP BY 1, 2",
    ),
}


@pytest.mark.parametrize("name", [name for name in SAME if name != "windows in FROM and in GROUP BY"])
def test_the_same_is_meant(name: str) -> None:
    first, *others = (meaning(sql) for sql in SAME[name])
    assert all(other == first for other in others)


def test_windows_in_group_by_are_the_table_functions() -> None:
    """But for the names of columns on the way."""
    queries = [meaning(sql) for sql in SAME["windows in FROM and in GROUP BY"]]
    assert len({query.scan for query in queries}) == 1
    assert len({query.columns for query in queries}) == 1


DIFFERENT = {
    "a window of rows before and after WHERE": (
        "SELECT carrier FROM flights [ROWS 5] WHERE delay > 3",
        "SELECT carrier FROM flights [ROWS 5 WHERE delay > 3]",
    ),
    "LIMIT before and after WHERE": (
        "SELECT carrier FROM (SELECT * FROM flights LIMIT 5) WHERE delay > 3",
        "SELECT carrier FROM flights WHERE delay > 3 LIMIT 5",
    ),
    "numbers before and after WHERE": (
        "SELECT ROW_NUMBER() OVER (ORDER BY ts) AS n FROM (SELECT * FROM flights) WHERE delay > 3",
        "SELECT n FROM (SELECT delay, ROW_NUMBER() OVER (ORDER BY ts) AS n FROM flights) WHERE delay > 3",
    ),
    "WHERE and a session": (
        "SELECT carrier FROM SESSION(flights, 5 SECONDS) WHERE delay > 10",
        "SELECT carrier FROM SESSION(late, 5 SECONDS)",
    ),
    "NOT IN and NOT EXISTS": (
        "SELECT carrier FROM flights WHERE dest NOT IN (SELECT dest AS equal_1 FROM flights)",
        "SELECT carrier FROM flights a WHERE NOT EXISTS (SELECT 1 FROM flights b WHERE a.dest = b.dest)",
    ),
    "distinct and plain sums": (
        "SELECT SUM(DISTINCT delay) AS s FROM flights",
        "SELECT SUM(delay) AS s FROM flights",
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_the_same_is_not_meant(name: str) -> None:
    left, right = (meaning(sql) for sql in DIFFERENT[name])
    assert left != right


def test_a_query_tells_what_it_uses() -> None:
    def uses(sql: str) -> tuple[str, ...]:
        query = parse(sql, CATALOGUE, Limits())
        assert isinstance(query, Query)
        return query.uses

    assert uses("SELECT carrier FROM flights") == ()
    assert uses("SELECT carrier FROM carriers") == ("carriers", "late")
    both = uses("SELECT carrier FROM late WHERE carrier IN (SELECT carrier FROM carriers)")
    assert both == ("late", "carriers")
    assert uses("WITH late AS (SELECT * FROM flights) SELECT carrier FROM late") == ()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT carrier FROM flights ORDER BY {}",
        "SELECT carrier, ROW_NUMBER() OVER (PARTITION BY carrier ORDER BY {}) AS n FROM flights",
    ],
)
def test_a_sort_has_so_many_keys(sql: str) -> None:
    """Each is a column of all rows, so that a text of some KiB would take gigabytes."""
    keys = [f"delay + {place}" for place in range(101)]
    assert meaning(sql.format(", ".join(keys[:100])))
    with pytest.raises(LimitExceeded, match="order_keys_max is 100, asked for 101"):
        meaning(sql.format(", ".join(keys)))

"""Rows of constants against DuckDB, the reference and the changes that are told: alone, joined with streams
and tables, in subqueries, beneath groups and set operations.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.differential.duckdb_selects import Row
from tests.differential.duckdb_world import STEPS, compare_on_the_way

NUMBERS = ("NULL", "0", "1", "2", "3", "1 + 1", "2.5", "-1")


class Constants:
    """Writes SELECTs with rows of constants in them."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def pick(self, *choices: str) -> str:
        return self.draw(st.sampled_from(choices))

    def rows(self, width: int = 2, choices: Sequence[str] = NUMBERS) -> str:
        count = self.draw(st.integers(1, 4))
        rows = [", ".join(self.pick(*choices) for _ in range(width)) for _ in range(count)]
        return f"VALUES {', '.join(f'({row})' for row in rows)}"

    def item(self) -> str:
        """Rows of constants with columns k and v."""
        return (
            f"({self.series()}) AS c (k, v)" if self.draw(st.booleans()) else f"({self.rows()}) AS c (k, v)"
        )

    def series(self) -> str:
        """A series, as columns k and v."""
        name, step = self.pick("GENERATE_SERIES", "RANGE"), self.pick("", ", 1", ", 2", ", -1", ", -3")
        bounds = f"{self.pick('0', '1', '3', '-1')}, {self.pick('0', '1 + 2', '4', '-2')}{step}"
        return f"SELECT g AS k, g % 3 AS v FROM {name}({bounds}) AS x (g)"

    def select(self) -> str:
        source = self.pick("s", "u", "t")
        match self.pick("alone", "join", "first", "semi", "member", "value", "sets", "groups", "plain"):
            case "alone":
                return f"SELECT c.k, c.v + 1 AS o FROM {self.item()} WHERE c.k IS NOT NULL"
            case "join":
                kind = self.pick("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
                on = self.pick("a.k = c.k", "a.k = c.k AND a.v > c.v")
                return f"SELECT a.k, a.v, c.v AS o FROM {source} a {kind} {self.item()} ON {on}"
            case "first":
                kind = self.pick("JOIN", "LEFT JOIN")
                return f"SELECT c.k, a.v FROM {self.item()} {kind} {source} a ON a.k = c.k"
            case "semi":
                kind = self.pick("SEMI", "ANTI")
                return f"SELECT a.k, a.v FROM {source} a {kind} JOIN {self.item()} ON a.k = c.k"
            case "member":
                word, within = self.pick("", "NOT "), f"SELECT 1 FROM {source} a WHERE a.k = c.k"
                return self.pick(
                    f"SELECT a.k, a.v FROM {source} a WHERE a.k {word}IN ({self.rows(1)})",
                    f"SELECT a.k, a.v FROM {source} a WHERE (a.k, a.v) IN ({self.rows(2)})",
                    f"SELECT c.k FROM {self.item()} WHERE {word}EXISTS ({within})",
                    f"SELECT a.k FROM {source} a WHERE a.v > ANY ({self.rows(1)})",
                )
            case "value":
                return self.pick(
                    f"SELECT a.k, (SELECT MAX(c.v) FROM {self.item()} WHERE c.k = a.k) AS o FROM {source} a",
                    f"SELECT a.k, (SELECT 1 + 1) AS o FROM {source} a",
                    f"SELECT c.k, (SELECT COUNT(*) FROM {source} a WHERE a.k = c.k) AS o FROM {self.item()}",
                )
            case "sets":
                word = self.pick("UNION", "UNION ALL", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL")
                sides = [f"SELECT a.k, a.v FROM {source} a", self.rows(), "SELECT 1 AS k, 2 AS v"]
                one, other = self.draw(st.permutations(sides))[:2]
                return f"{one} {word} {other}"
            case "groups":
                return (
                    f"SELECT c.k, COUNT(a.v) AS n, SUM(c.v) AS o FROM {self.item()} "
                    f"LEFT JOIN {source} a ON a.k = c.k GROUP BY {self.pick('c.k', 'ROLLUP (c.k)')}"
                )
            case _:
                return self.pick(
                    "SELECT 1 + 1 AS a, NULL AS b, 'x' AS c",
                    "SELECT COUNT(*) AS n FROM (VALUES (1), (2)) AS v (x) WHERE x > 1",
                    "WITH w (a) AS (VALUES (1), (2)) SELECT w.a, t.v FROM w LEFT JOIN t ON t.k = w.a",
                    "SELECT DISTINCT a.k, 1 AS o FROM s a, (VALUES (1), (2)) AS v (x)",
                    "SELECT SUM(x) OVER (ORDER BY x) AS o FROM (VALUES (1), (2), (2)) AS v (x)",
                )


@settings(max_examples=max(20, settings.default.max_examples))
@given(steps=STEPS, data=st.data())
def test_constants(
    database: duckdb.DuckDBPyConnection, steps: list[tuple[str, list[Row], int]], data: st.DataObject
) -> None:
    text, begin = Constants(data.draw).select(), data.draw(st.integers(0, len(steps)))
    compare_on_the_way(database, steps, text, begin)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 + 1 AS two, DATE '2024-02-29' AS d, TIMESTAMP '2024-02-29 10:00:00' AS t, 1e0 / 3 AS x",
        "VALUES (1, 'a', 2.50, DATE '2024-01-01', NULL), (NULL, NULL, 3, NULL, NULL)",
        "SELECT * FROM RANGE(3), GENERATE_SERIES(4, 1, -2)",
        "SELECT * FROM GENERATE_SERIES(DATE '2024-01-31', DATE '2024-12-31', INTERVAL '1' MONTH) AS d (t)",
        "SELECT * FROM RANGE(DATE '2024-02-01', TIMESTAMP '2024-02-02 12:00:00', INTERVAL '6' HOUR) AS d (t)",
        "SELECT * FROM GENERATE_SERIES(NULL, 3) AS d (x)",
        "SELECT * FROM RANGE(0) AS d (x)",
        "SELECT EXTRACT(HOUR FROM x) AS h FROM (VALUES (INTERVAL '5 hours'), (NULL)) AS v (x)",
        "VALUES (TRUE, 3000000000), (NULL, 1), (FALSE, -1)",
        "SELECT * FROM (VALUES (1, 1e300), (2, CAST('Infinity' AS DOUBLE)), (2, NULL)) AS v (a, b)",
    ],
)
def test_values_of_every_type(database: duckdb.DuckDBPyConnection, text: str) -> None:
    compare_on_the_way(database, [], text, 0)

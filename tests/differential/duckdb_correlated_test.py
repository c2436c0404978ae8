"""Subqueries that use columns around them elsewhere than in equalities: inequalities, over two levels, in
SELECT and in aggregates, in ON; against DuckDB, the reference and the changes that are told.
"""

from __future__ import annotations

import duckdb
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.differential.duckdb_selects import Row
from tests.differential.duckdb_world import STEPS, compare_on_the_way

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
AGGREGATES = (
    "COUNT(*)",
    "SUM(b.v)",
    "MAX(b.v) - COUNT(*)",
    "COALESCE(SUM(b.v), 7)",
    "a.w + COUNT(*)",
    "SUM(b.v * a.k)",
    "COALESCE(a.v, 9) + MAX(b.w)",
)


class Correlated:
    """Writes SELECTs over ``a`` with subqueries over ``b`` and, in these, over ``c``."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def pick(self, *choices: str) -> str:
        return self.draw(st.sampled_from(choices))

    def source(self) -> str:
        return self.pick("s", "u", "t")

    def select(self) -> str:
        source = self.source()
        match self.pick("output", "output", "where", "or", "exists", "lateral", "total", "on", "on"):
            case "output":
                return f"SELECT a.k, a.v, ({self.value()}) AS o FROM {source} a"
            case "where":
                value, more = self.value(), self.pick("", " AND a.w < 3")
                return f"SELECT a.k, a.v FROM {source} a WHERE a.v {self.pick(*COMPARISONS)} ({value}){more}"
            case "or":
                test = self.test()
                return f"SELECT a.k, a.v FROM {source} a WHERE {test} {self.pick('OR a.w = 1', 'IS NULL')}"
            case "exists":
                word = self.pick("", "NOT ")
                return f"SELECT a.k, a.v FROM {source} a WHERE {word}EXISTS ({self.nested()})"
            case "lateral":
                inner, join = self.pick(self.value(), self.rows()), self.pick("CROSS JOIN", "LEFT JOIN")
                on = " ON TRUE" if join == "LEFT JOIN" else ""
                return f"SELECT a.k, a.v, l.o FROM {source} a {join} LATERAL ({inner}) AS l(o){on}"
            case "on":
                return self.joined()
            case _:
                return f"SELECT SUM(({self.value()})) AS n FROM {source} a"

    def joined(self) -> str:
        """A subquery in ON of a join."""
        kind = self.pick("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN")
        equal = self.pick("a.k = b.k", "a.k = b.k AND a.v > b.w")
        test = self.member("b") if kind == "LEFT JOIN" else self.member("a")
        if kind == "JOIN":
            test = self.pick(
                test,
                f"a.v > (SELECT MAX(c.v) FROM {self.source()} c WHERE c.k = b.v)",
                f"EXISTS (SELECT 1 FROM {self.source()} c WHERE c.v < a.v AND c.w > b.w)",
            )
        more = self.pick("", " LEFT JOIN s d ON d.k = a.k")
        sides = f"{self.source()} a {kind} {self.source()} b"
        return f"SELECT a.k, a.v, b.w FROM {sides} ON {equal} AND {test}{more}"

    def member(self, item: str) -> str:
        """A condition of one item with a subquery."""
        source, word = self.source(), self.pick("", "NOT ")
        return self.pick(
            f"{item}.v {word}IN (SELECT c.v FROM {source} c)",
            f"{word}EXISTS (SELECT 1 FROM {source} c WHERE c.v = {item}.v AND c.w <> {item}.w)",
            f"{item}.w >= (SELECT MIN(c.w) FROM {source} c WHERE c.k < {item}.k)",
            f"({item}.w = 1 OR ({item}.k, {item}.v) {word}IN (SELECT c.k, c.v FROM {source} c))",
        )

    def mixed(self, inner: str = "b") -> str:
        """A condition of columns of both, with an equality or without."""
        tests = [
            f"{inner}.{self.pick('v', 'w')} {self.pick(*COMPARISONS)} a.{self.pick('k', 'v', 'w')}",
            self.pick(
                f"{inner}.k = a.k", f"({inner}.v > a.v OR a.w IS NULL)", f"{inner}.w + a.w > 3", "TRUE"
            ),
        ]
        return " AND ".join(tests[: self.draw(st.integers(1, 2))])

    def value(self) -> str:
        source = self.source()
        where = self.mixed()
        match self.pick("whole", "whole", "first", "groups", "two", "having"):
            case "whole":
                return f"SELECT {self.pick(*AGGREGATES)} AS o FROM {source} b WHERE {where}"
            case "first":
                order = self.pick("b.v NULLS LAST, b.w NULLS LAST, b.k NULLS LAST", "b.w DESC NULLS FIRST")
                return f"SELECT b.w AS o FROM {source} b WHERE {where} ORDER BY {order} LIMIT 1"
            case "groups":
                return (
                    f"SELECT MAX(b.v) AS o FROM {source} b WHERE {where} GROUP BY b.w "
                    "ORDER BY MAX(b.v) NULLS LAST, b.w NULLS LAST LIMIT 1"
                )
            case "having":
                return f"SELECT COUNT(*) AS o FROM {source} b WHERE {where} HAVING COUNT(*) > 1"
            case _:
                inner = f"SELECT COUNT(*) FROM {self.source()} c WHERE c.k = b.k AND {self.mixed('c')}"
                return f"SELECT SUM(b.v) AS o FROM {source} b WHERE b.w < ({inner})"

    def rows(self) -> str:
        limit = self.pick("1", "2")
        return (
            f"SELECT b.v AS o FROM {self.source()} b WHERE {self.mixed()} "
            f"ORDER BY b.v NULLS LAST, b.w NULLS LAST LIMIT {limit}"
        )

    def nested(self) -> str:
        """A subquery in which another one is over ``a`` too."""
        word, source = self.pick("", "NOT "), self.source()
        equal = self.pick("b.k = a.k AND ", "")
        return f"SELECT 1 FROM {self.source()} b WHERE {equal}" + self.pick(
            f"{word}EXISTS (SELECT 1 FROM {source} c WHERE c.v = b.v AND {self.mixed('c')})",
            f"b.v {word}IN (SELECT c.v FROM {source} c WHERE {self.mixed('c')})",
            f"b.v >= (SELECT MAX(c.v) FROM {source} c WHERE {self.mixed('c')})",
        )

    def test(self) -> str:
        """IN, EXISTS or ANY with an inequality."""
        source, word = self.source(), self.pick("", "NOT ")
        where, compared = self.mixed(), self.pick(*COMPARISONS)
        return self.pick(
            f"({word}EXISTS (SELECT * FROM {source} b WHERE {where}))",
            f"(a.v {word}IN (SELECT b.v FROM {source} b WHERE {where}))",
            f"((a.k, a.v) {word}IN (SELECT b.k, b.v FROM {source} b))",
            f"(a.v {compared} ANY (SELECT b.v FROM {source} b WHERE {where}))",
            f"(a.v {compared} ALL (SELECT b.v FROM {source} b WHERE {where}))",
        )


@settings(max_examples=max(20, settings.default.max_examples // 2))
@given(steps=STEPS, data=st.data())
def test_correlated(
    database: duckdb.DuckDBPyConnection, steps: list[tuple[str, list[Row], int]], data: st.DataObject
) -> None:
    text, begin = Correlated(data.draw).select(), data.draw(st.integers(0, len(steps)))
    compare_on_the_way(database, steps, text, begin)


IN_ROWS = "(a.w, a.v + 1) IN (SELECT b.v, b.w FROM {source} b WHERE {where})"
THE_SAME = """CASE
WHEN EXISTS (SELECT 1 FROM {source} b WHERE {where} AND b.v = a.w AND b.w = a.v + 1) THEN TRUE
WHEN EXISTS (
    SELECT 1 FROM {source} b WHERE {where} AND COALESCE(b.v = a.w, TRUE) AND COALESCE(b.w = a.v + 1, TRUE)
) THEN NULL ELSE FALSE END"""
"""DuckDB has no IN of several columns that uses columns around."""


@settings(max_examples=max(10, settings.default.max_examples // 4))
@given(steps=STEPS, data=st.data())
def test_rows_among_correlated_rows(
    database: duckdb.DuckDBPyConnection, steps: list[tuple[str, list[Row], int]], data: st.DataObject
) -> None:
    writer, begin = Correlated(data.draw), data.draw(st.integers(0, len(steps)))
    facts = {"source": writer.source(), "where": writer.mixed()}
    ours, theirs = (f"SELECT a.k, a.v, {text.format(**facts)} AS o FROM s a" for text in (IN_ROWS, THE_SAME))
    compare_on_the_way(database, steps, ours, begin, theirs)

"""Subqueries in the place of values, and correlated ones in conditions, against DuckDB, the reference and the
changes that are told.

Rows come to two streams and to a table, whose rows change and go, in random order. What a subquery gives of
several rows is an error here, counted and passed over; DuckDB then refuses the whole query.
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
    "COUNT(b.v)",
    "COUNT(DISTINCT b.v) + 1",
    "SUM(b.v)",
    "MAX(b.v)",
    "MIN(b.w)",
    "COALESCE(SUM(b.v), 7)",
    "MAX(b.v) - COUNT(*)",
)


class Subqueries:
    """Writes SELECTs over ``a`` with subqueries over ``b``."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def pick(self, *choices: str) -> str:
        return self.draw(st.sampled_from(choices))

    def source(self) -> str:
        return self.pick("s", "u", "t")

    def select(self) -> str:
        form = self.pick(
            "output", "condition", "condition", "otherwise", "groups", "total", "join", "member", "test", "or"
        )
        source = self.source()
        match form:
            case "output":
                where = self.pick("", " WHERE a.v > 0")
                return f"SELECT a.k, a.v, ({self.value()}) AS o FROM {source} a{where}"
            case "condition":
                more = self.pick("", " AND a.w < 3", f" AND a.w >= ({self.value()})")
                return f"SELECT a.k, a.v FROM {source} a WHERE {self.compared()}{more}"
            case "otherwise":
                return f"SELECT a.k, a.v FROM {source} a WHERE {self.otherwise()}"
            case "groups":
                value, other = self.value("a.k"), self.value("a.k")
                having = self.pick("", f" HAVING COUNT(*) {self.pick(*COMPARISONS)} ({other})")
                return f"SELECT a.k, COUNT(*) AS n, ({value}) AS o FROM {source} a GROUP BY a.k{having}"
            case "total":
                test = self.compared()
                return f"SELECT SUM(CASE WHEN {test} THEN 1 ELSE 0 END) AS n FROM {source} a"
            case "join":
                kind = self.pick("JOIN", "LEFT JOIN")
                test = self.compared()
                return f"SELECT a.k, a.v, c.w FROM {source} a {kind} u c ON a.k = c.k WHERE {test}"
            case "member":
                return f"SELECT a.k, a.v FROM {source} a WHERE {self.member()}"
            case "test":
                return f"SELECT a.k, a.v, {self.test()} AS o FROM {source} a"
            case _:
                joined = self.pick("OR a.w = 1", "IS NULL", "= (a.w = 2)")
                return f"SELECT a.k, a.v FROM {source} a WHERE ({self.test()}) {joined}"

    def compared(self) -> str:
        return self.pick(
            f"a.v {self.pick(*COMPARISONS)} ({self.value()})",
            f"({self.value()}) {self.pick(*COMPARISONS)} a.v + 1",
            f"a.v BETWEEN ({self.value()}) AND 4",
        )

    def otherwise(self) -> str:
        value = self.value()
        return self.pick(
            f"({value}) IS NULL",
            f"COALESCE(({value}), 0) {self.pick(*COMPARISONS)} a.v",
            f"(a.w = 1 OR a.v = ({value}))",
            f"NOT (a.v < ({value}))",
        )

    def member(self) -> str:
        source, equal = self.source(), self.equal("a.k", "a.v")
        first = (
            f"SELECT b.v FROM {source} b WHERE {equal} ORDER BY b.v NULLS LAST LIMIT {self.pick('1', '2')}"
        )
        groups = f"SELECT b.w FROM {source} b WHERE {equal} GROUP BY b.w HAVING COUNT(*) > 1"
        word = self.pick("", "NOT ")
        return self.pick(
            f"{word}EXISTS ({groups})",
            f"a.w {word}IN ({groups})",
            f"a.v {word}IN ({first})",
            f"{word}EXISTS ({first})",
            f"{word}a.v {self.quantified()} (SELECT b.w FROM {source} b WHERE {equal})",
            f"{word}EXISTS (SELECT b.v FROM {source} b WHERE {equal} AND b.v <> a.v)",
        )

    def quantified(self) -> str:
        return f"{self.pick(*COMPARISONS)} {self.pick('ANY', 'ALL')}"

    def test(self) -> str:
        """IN, EXISTS or ANY, correlated or not."""
        source, word = self.source(), self.pick("", "NOT ")
        tests = [self.equal("a.k", "a.v")] * self.draw(st.integers(0, 1)) + [self.pick("b.v > 1", "b.w < 3")]
        where = " AND ".join(tests)
        return self.pick(
            f"{word}EXISTS (SELECT * FROM {source} b WHERE {where})",
            f"a.v {word}IN (SELECT b.v FROM {source} b WHERE {where})",
            f"a.v + 1 {word}IN (SELECT b.w FROM {source} b)",
            f"a.v {self.quantified()} (SELECT b.v FROM {source} b WHERE {where})",
        )

    def value(self, *around: str) -> str:
        """A query of one column, correlated by these columns around it, or by nothing."""
        source = self.source()
        tests = [self.equal(*(around or ("a.k", "a.v")))] if self.draw(st.integers(0, 3)) else []
        tests += [self.pick("b.v > 1", "b.w < 3", "b.v > (SELECT MIN(c.v) FROM u c)")] * self.draw(
            st.integers(0, 1)
        )
        where = f" WHERE {' AND '.join(tests)}" if tests else ""
        match self.pick("whole", "whole", "rows", "distinct", "first", "groups", "key"):
            case "whole":
                having = self.pick("", "", " HAVING COUNT(*) > 1")
                return f"SELECT {self.pick(*AGGREGATES)} FROM {source} b{where}{having}"
            case "rows":
                return f"SELECT b.v FROM {source} b{where}"
            case "distinct":
                return f"SELECT DISTINCT b.v FROM {source} b{where}"
            case "first":
                order = self.pick("b.v NULLS LAST", "b.v DESC NULLS FIRST")
                skipped = self.pick("", " OFFSET 1")
                return f"SELECT b.v FROM {source} b{where} ORDER BY {order} LIMIT 1{skipped}"
            case "groups":
                return f"SELECT MAX(b.v) FROM {source} b{where} GROUP BY b.w"
            case _:
                return f"SELECT b.v FROM t b WHERE b.k = {self.pick(*(around or ('a.k', 'a.v')))}"

    def equal(self, *around: str) -> str:
        outer = self.pick(*around)
        return self.pick(f"b.k = {outer}", f"{outer} = b.v", f"b.k = {outer} + 1", f"b.k + 1 = {outer}")


@settings(max_examples=max(20, settings.default.max_examples // 2))
@given(steps=STEPS, data=st.data())
def test_subqueries(
    database: duckdb.DuckDBPyConnection, steps: list[tuple[str, list[Row], int]], data: st.DataObject
) -> None:
    text, begin = Subqueries(data.draw).select(), data.draw(st.integers(0, len(steps)))
    compare_on_the_way(database, steps, text, begin)

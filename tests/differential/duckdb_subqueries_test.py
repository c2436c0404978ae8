"""Subqueries in the place of values, and correlated ones in conditions, against DuckDB, the reference and the
changes that are told.

Rows come to two streams and to a table, whose rows change and go, in random order. What a subquery gives of
several rows is an error here, counted and passed over; DuckDB then refuses the whole query.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.language.query import CreateStream
from engine.language.statements import parse
from engine.model.batch import Batch, versions
from engine.model.limits import Limits
from engine.model.source import SourceName, Stream
from engine.model.step import CreateSource, Heartbeat, Records, Register, Registration
from engine.reference import Reference
from tests.differential.agreement import EngineSubject, exact_rows, plain_rows
from tests.differential.duckdb_selects import Row, assert_same_bag

COLUMNS = ("k", "v", "w")
SOURCES = {
    "s": "CREATE STREAM s (k INTEGER, v INTEGER, w INTEGER) WITH (topic = 's')",
    "u": "CREATE STREAM u (k INTEGER, v INTEGER, w INTEGER) WITH (topic = 'u')",
    "t": "CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER, w INTEGER) WITH (topic = 't')",
}
SCHEMA = pa.schema([(name, pa.int32()) for name in COLUMNS])
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


class World:
    """The same rows in the engine, in the reference and as tables of DuckDB."""

    def __init__(self) -> None:
        self.subject, self.reference = EngineSubject(), Reference()
        self.rows: dict[str, list[Row]] = {name: [] for name in SOURCES}
        self.clock_ms = 0
        self.changes: Counter[Row] = Counter()
        for sql in SOURCES.values():
            made = parse(sql, {}, Limits())
            assert isinstance(made, CreateStream)
            self.apply(CreateSource(made.stream, sql))

    def apply(self, body: Any) -> None:
        step = self.subject.next_step(self.clock_ms, body)
        told = self.subject.apply(step).changes
        self.reference.apply(step)
        for changes in told:
            for weight, row in zip(changes.weights.tolist(), plain_rows(changes.table), strict=True):
                self.changes[row] += weight

    def bring(self, name: str, rows: list[Row], gone: bool) -> None:
        """Rows to a stream or a table; gone: that their keys go."""
        self.clock_ms += 10
        stream = self.subject.engine.catalogue[name]
        assert isinstance(stream, Stream)
        held = self.rows[name]
        if stream.is_table:
            rows = [(place % 5 if row[0] is None else row[0], *row[1:]) for place, row in enumerate(rows)]
            keys = {row[0] for row in rows}
            held[:] = [row for row in held if row[0] not in keys]
            rows = list({row[0]: row for row in rows}.values())
        if not gone or not stream.is_table:
            held += rows
        columns = table_of(rows, stream.schema.arrow)
        places = self.clock_ms * 100 + np.arange(len(rows))
        batch = Batch.from_arrow(
            stream.schema, columns, np.zeros(len(rows)), places, np.full(len(rows), self.clock_ms - 1)
        )
        batch = versions(stream, batch, np.full(len(rows), gone)) if stream.is_table else batch
        self.apply(Records(SourceName(name), batch, {}, frozenset()))
        for source in SOURCES:
            self.apply(Heartbeat(SourceName(source)))


VALUES = st.none() | st.integers(0, 2) | st.integers(0, 4)
STEPS = st.lists(
    st.tuples(
        st.sampled_from([*SOURCES]),
        st.lists(st.tuples(VALUES, VALUES, VALUES), min_size=1, max_size=6),
        st.integers(0, 3),
    ),
    min_size=3,
    max_size=9,
)


@settings(max_examples=max(20, settings.default.max_examples // 2))
@given(steps=STEPS, data=st.data())
def test_subqueries(
    database: duckdb.DuckDBPyConnection, steps: list[tuple[str, list[Row], int]], data: st.DataObject
) -> None:
    world, text = World(), Subqueries(data.draw).select()
    begin = data.draw(st.integers(0, len(steps)))
    for place, (name, rows, chance) in enumerate(steps):
        if place == begin:
            follow(world, text)
        world.bring(name, rows, gone=chance == 0)
        if place >= begin:
            check(database, world, text)
    if begin == len(steps):
        follow(world, text)
        check(database, world, text)


def table_of(rows: list[Row], schema: pa.Schema) -> pa.Table:
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
    return pa.Table.from_arrays([pa.array(column, pa.int32()) for column in columns], schema=schema)


def follow(world: World, text: str) -> None:
    world.apply(Register((Registration("q", text),)))
    world.subject.engine.follow("q")
    world.changes = Counter(world.subject.answer("q").rows)


def check(database: duckdb.DuckDBPyConnection, world: World, text: str) -> None:
    answer, expected = world.subject.answer("q"), world.reference.answer("q")
    assert exact_rows(answer.rows) == exact_rows(expected.rows), text
    assert answer.errors == expected.errors, text
    assert Counter(answer.rows) == +world.changes, text
    for name, rows in world.rows.items():
        database.register(name, table_of(rows, SCHEMA))
    try:
        theirs = plain_rows(database.sql(text).to_arrow_table())
    except duckdb.InvalidInputException:
        return
    finally:
        for name in world.rows:
            database.unregister(name)
    assert not answer.errors, text
    assert_same_bag(answer.rows, theirs, text)

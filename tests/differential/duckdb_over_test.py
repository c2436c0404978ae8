"""Window functions against DuckDB, over the rows that a window holds.

Where rows that are equal in ORDER BY would matter, all columns are sorted by: then equal rows alone tie, and
which of them is first is nothing that an answer tells. Answers are compared as bags, doubles with a
tolerance. NULLs are put first or last by a word, since DuckDB has another rule without.
"""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.source import Field, Stream
from engine.model.step import Step
from engine.model.types import Kind
from tests.differential.agreement import EngineSubject, plain_rows
from tests.differential.duckdb_selects import assert_same_bag, nothing
from tests.strategies import journeys, tame_nullable

STEPS = journeys(nothing, legs=3, favourites=tame_nullable)
NUMBERS = (Kind.INTEGER, Kind.BIGINT)


@given(steps=STEPS, data=st.data())
def test_over(database: duckdb.DuckDBPyConnection, steps: list[Step], data: st.DataObject) -> None:
    check(database, steps, data)


@pytest.mark.slow
@settings(max_examples=2_000)
@given(steps=STEPS, data=st.data())
def test_over_at_length(database: duckdb.DuckDBPyConnection, steps: list[Step], data: st.DataObject) -> None:
    check(database, steps, data)


def check(database: duckdb.DuckDBPyConnection, steps: list[Step], data: st.DataObject) -> None:
    """Ask both."""
    subject = EngineSubject()
    for step in steps:
        subject.apply(step)
    stream = subject.engine.catalogue["s"]
    assert isinstance(stream, Stream)
    text = Over(data.draw, list(stream.schema)).select()
    window = data.draw(st.sampled_from(["", "[ROWS 40]", "[RANGE 60 MILLISECONDS]"]))
    subject.register("held", f"SELECT * FROM s {window}", {})
    subject.register("asked", text.replace("@rows@", f"s {window}"), {})
    answer = subject.answer("asked")
    if answer.errors:
        return
    held = subject.engine.view().snapshot("held").table
    database.register("held", held)
    try:
        theirs = database.sql(text.replace("@rows@", "held")).to_arrow_table()
    except duckdb.OutOfRangeException:
        return  # a total or a distance beyond its type
    finally:
        database.unregister("held")
    assert_same_bag(answer.rows, plain_rows(theirs), text)


class Over:
    """Writes SELECTs with window functions that both understand alike."""

    def __init__(self, draw: st.DrawFn, fields: list[Field]) -> None:
        self.draw = draw
        self.fields = fields

    def pick(self, *choices: str) -> str:
        return self.draw(st.sampled_from(choices))

    def select(self) -> str:
        calls = [f"{self.call(among_equals=not n)} AS w{n}" for n in range(self.draw(st.integers(1, 3)))]
        columns = ", ".join(f'"{field.name}"' for field in self.fields)
        qualify = self.pick("", "", "QUALIFY w0 IS NOT NULL")
        return f"SELECT {columns}, {', '.join(calls)} FROM @rows@ {qualify}".strip()

    def column(self, *kinds: Kind) -> str:
        fields = [field for field in self.fields if not kinds or field.type.kind in kinds]
        return f'"{self.draw(st.sampled_from(fields)).name}"' if fields else "1"

    def key(self, column: str) -> str:
        return f"{column}{self.pick(' ASC', ' DESC')}{self.pick(' NULLS FIRST', ' NULLS LAST')}"

    def call(self, *, among_equals: bool) -> str:
        """among_equals: it may give rows that are equal different values. Which has which is open, so
        one call of a SELECT may: with two, it would be open which values stand beside each other.
        """
        partition = self.pick("", f"PARTITION BY {self.column()}")
        if not among_equals or self.draw(st.booleans()):
            name = self.pick("RANK()", "DENSE_RANK()", "PERCENT_RANK()", "CUME_DIST()", self.aggregate())
            order = self.key(self.column())
            frame = self.by_value(order) if "_" not in name and name != "RANK()" else ""
            return f"{name} OVER ({partition} ORDER BY {order} {frame})"
        column = self.column()
        name = self.pick(
            "ROW_NUMBER()",
            f"NTILE({self.draw(st.integers(1, 4))})",
            f"LAG({column}, {self.draw(st.integers(1, 3))})",
            f"LEAD({column}, 2, {column})",
            f"LAG({column} IGNORE NULLS)",
            f"FIRST_VALUE({column})",
            f"LAST_VALUE({column} IGNORE NULLS)",
            f"NTH_VALUE({column}, 2)",
            self.aggregate(),
        )
        rest = [f'"{field.name}"' for field in self.fields]
        order = ", ".join(map(self.key, self.draw(st.permutations(rest))))
        frame = "" if name.startswith(("ROW", "NTILE", "LAG", "LEAD")) else self.by_rows("ROWS")
        return f"{name} OVER ({partition} ORDER BY {order} {frame})"

    def aggregate(self) -> str:
        number = self.column(*NUMBERS)
        condition = self.pick("", "", f" FILTER (WHERE {self.column()} IS NOT NULL)")
        name = self.pick(
            "COUNT(*)", f"COUNT({self.column()})", f"SUM({number})", f"MIN({number})", f"MAX({number})"
        )
        return f"{name}{condition}"

    def by_value(self, order: str) -> str:
        """A frame whose ends are between groups of peers."""
        if self.draw(st.booleans()):
            return self.pick("", self.by_rows("GROUPS"))
        return f"RANGE BETWEEN {self.ends('CURRENT ROW', 'CURRENT ROW')}{self.exclude()}"

    def by_rows(self, unit: str) -> str:
        start, end = self.draw(st.integers(0, 3)), self.draw(st.integers(0, 3))
        ends = self.ends(f"{start} PRECEDING", f"{end} FOLLOWING")
        ends = self.pick(ends, ends, f"{start} FOLLOWING AND {start + end} FOLLOWING")
        return f"{unit} BETWEEN {ends}{self.exclude()}"

    def ends(self, start: str, end: str) -> str:
        return f"{self.pick(start, 'UNBOUNDED PRECEDING')} AND {self.pick(end, 'UNBOUNDED FOLLOWING')}"

    def exclude(self) -> str:
        return self.pick("", "", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES")

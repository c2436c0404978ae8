"""Data and helpers that ``duckdb_selects_test.py`` shares with other tests."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from engine.model.source import Stream
from tests.differential.duckdb import Twins, in_duckdb
from tests.sql_selects import Item, Selects
from tests.sql_strategies import Writer

ROWS, ENDS = "@rows@", "@ends@"

FIRST_PLACE = re.compile(r"ORDER BY (\d+)[^()]*$")

Row = tuple[Any, ...]


class TwinSelects(Selects):
    """SELECTs that both understand alike, over one item, which stands in them as a mark."""

    expressions = Twins
    set_operations = Selects.set_operations[:-1]

    def __init__(self, draw: st.DrawFn, stream: Stream) -> None:
        super().__init__(draw, stream)
        self.base = self.window()

    def window(self) -> Item:
        """The stream under a window, or in windows."""
        form = self.pick("brackets", "brackets", "ends", "function")
        if form == "function":
            return self.table_function()
        if form == "ends":
            return Item(self.name, self.stream.schema, self.ends())
        return Item(f"{self.name} {self.brackets()}", self.stream.schema)

    def ours(self, text: str) -> str:
        return text.replace(ROWS, self.base.text).replace(ENDS, self.base.at_end)

    def theirs(self, text: str) -> str:
        return in_duckdb(text.replace(ROWS, "held").replace(ENDS, ""))

    def source(self, depth: int) -> Item:
        if depth > 0 and self.chance(3):
            return self.subquery(self.sets() if self.chance(2) else self.select(0))
        return Item(ROWS, self.base.schema, ENDS)

    def named(self, text: str, inner: str) -> Item:
        item = super().named("", self.ours(inner))
        return Item(text, item.schema, whole=item.whole)

    def membership(self, writer: Writer) -> str:
        field, inner = writer.pick(*writer.schema), self.writer(self.base.schema)
        negated, where = self.pick("", "NOT "), self.pick("", f"WHERE {inner.predicate(1)}")
        same = [f for f in self.base.schema if f.type == field.type]
        if not same:
            return f"{negated}EXISTS (SELECT 1 FROM {ROWS} {where} {ENDS})"
        column = f'"{inner.pick(*same).name}"'
        if self.chance(2):
            return f'"{field.name}" {negated}IN (SELECT {column} FROM {ROWS} {where} {ENDS})'
        on = f'x.{column} = outside."{field.name}"'
        return f"{negated}EXISTS (SELECT 1 FROM {ROWS} AS x WHERE {on} {ENDS})"

    def aggregate(self, writer: Writer) -> str:
        text = super().aggregate(writer)
        return "COUNT(*)" if text.startswith(("FIRST", "LAST", "ARRAY_AGG")) else text

    def of_all_values(self, writer: Writer) -> str:
        """Types and ties differ there: ``duckdb_statements_test.py`` compares these."""
        return "COUNT(*)"

    def limit(self, order: str) -> str:
        return ""


def nothing(draw: st.DrawFn, stream: Stream) -> str:
    return f'SELECT 1 AS o FROM "{stream.name}" [NOW]'


def close(mine: Any, theirs: Any) -> bool:
    """Whether two values are one, up to the rounding of doubles."""
    if isinstance(mine, float) or isinstance(theirs, float):
        if mine is None or theirs is None:
            return mine is theirs
        return (mine != mine and theirs != theirs) or math.isclose(mine, theirs, rel_tol=1e-9, abs_tol=1e-9)
    return bool(mine == theirs)


def rough(row: Row) -> list[str]:
    """A key by which close rows are sorted alike."""
    return [
        f"{value + 0.0:.5g}" if isinstance(value, float | int | Decimal) else repr(value)
        for value in numbers(row)
    ]


def numbers(row: Row) -> list[Any]:
    return [float(value) if isinstance(value, Decimal) else value for value in row]


def assert_same_bag(mine: list[Row], theirs: list[Row], text: str) -> None:
    assert len(mine) == len(theirs), text
    for one, other in zip(sorted(mine, key=rough), sorted(theirs, key=rough), strict=True):
        assert all(close(a, b) for a, b in zip(one, other, strict=True)), (text, one, other)

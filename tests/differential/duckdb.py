"""Data and helpers that ``duckdb_test.py`` shares with other tests."""

from __future__ import annotations

from engine.model.types import BIGINT, DATE, DOUBLE, INTEGER, STRING, TIMESTAMP, Kind, Type
from tests.sql_strategies import Writer


class Twins(Writer):
    """Expressions that both understand alike and that seldom err."""

    def number(self, type_: Type, depth: int) -> str:
        if type_.kind is Kind.DOUBLE:
            operands = [self.expression(DOUBLE, depth - 1) for _ in range(2)]
            return f"({operands[0]} {self.pick('+', '-', '*')} {operands[1]})"
        if not type_.is_integer:
            return self.column(type_) or self.constant(type_)
        small = self.column(INTEGER) or str(self.pick(0, 1, -3, 7))
        wide = f"CAST({small} AS BIGINT)"
        return self.pick(
            f"({wide} {self.pick('+', '-', '*')} {self.pick(2, 3, 100)})",
            f"({wide} {self.pick('/', '%')} {self.pick(2, 3, 7, '(-2)')})",
            f"(-{wide})",
            f"LENGTH({self.expression(STRING, depth - 1)})",
            f"ABS({wide})",
        )

    def cast(self, type_: Type, depth: int) -> str:
        if type_.kind is Kind.STRING:
            return f"CAST({self.expression(self.pick(INTEGER, BIGINT, DATE), depth - 1)} AS STRING)"
        if type_.kind is Kind.BIGINT:
            return f"CAST({self.expression(INTEGER, depth - 1)} AS BIGINT)"
        if type_.kind is Kind.DOUBLE:
            return f"CAST({self.expression(self.pick(INTEGER, BIGINT), depth - 1)} AS DOUBLE)"
        return self.column(type_) or self.constant(type_)

    def erring(self) -> str:
        return "TRUE"

    def instant_of(self, depth: int) -> str:
        if self.pick(True, False):
            return self.moved(depth)
        part = self.pick("YEAR", "MONTH", "DAY", "HOUR")
        return f"DATE_TRUNC('{part}', {self.expression(TIMESTAMP, depth - 1)})"

    def string(self, depth: int) -> str:
        one, other = self.expression(STRING, depth - 1), self.expression(STRING, depth - 1)
        return self.pick(f"({one} || {other})", f"LOWER({one})", f"COALESCE({one}, {other})")


def in_duckdb(text: str) -> str:
    """Translate a text in which the dialects differ in nothing but names."""
    return text.replace(" / ", " // ").replace("REGEXP_LIKE(", "REGEXP_MATCHES(")

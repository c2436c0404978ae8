"""INTERVAL and TIME as the whole numbers of milliseconds that they are."""

from __future__ import annotations

from engine.model.expressions import Arithmetic, Cast, Expression, Literal
from engine.model.types import BIGINT, INTERVAL, STRING, TIME

PARTS: dict[str, tuple[int, int | None]] = {
    "DAY": (86_400_000, None),
    "HOUR": (3_600_000, 24),
    "MINUTE": (60_000, 60),
    "SECOND": (1_000, 60),
    "MILLISECOND": (1, 60_000),
    "EPOCH": (1_000, None),
}
"""Parts of an INTERVAL: how many ms one has, and how many of them the part above."""


def in_ms(expression: Expression) -> Expression:
    """An INTERVAL or a TIME as a BIGINT, in milliseconds; all else as it is."""
    if expression.type not in (INTERVAL, TIME):
        return expression
    if expression.type == INTERVAL and isinstance(expression, Cast) and expression.operand.type == BIGINT:
        return expression.operand
    if isinstance(expression, Literal):
        return expression.through(_as_number)
    return Cast(expression, BIGINT)


def _as_number(literal: Literal) -> Literal:
    return Literal(literal.value, BIGINT)


def of_ms(expression: Expression) -> Expression:
    """A number of milliseconds as an INTERVAL, rounded where it is no whole one."""
    return Cast(expression if expression.type == BIGINT else Cast(expression, BIGINT), INTERVAL)


def as_answered(expression: Expression) -> Expression:
    """As it is in an answer: an INTERVAL a BIGINT, a TIME a STRING."""
    return Cast(expression, STRING) if expression.type == TIME else in_ms(expression)


def time_of_day(ms: Expression) -> Expression:
    """Milliseconds, before or behind a day, as a TIME: the hours go round."""
    day = Literal(86_400_000, BIGINT)
    rest = Arithmetic("%", Arithmetic("+", Arithmetic("%", ms, day, BIGINT), day, BIGINT), day, BIGINT)
    return Cast(rest, TIME)


def part_of(part: str, length: Expression) -> Expression:
    """EXTRACT(part FROM length): what is left of it behind the part above, with its sign."""
    size, most = PARTS[part]
    found = in_ms(length)
    if size > 1:
        found = Arithmetic("/", found, Literal(size, BIGINT), BIGINT)
    return found if most is None else Arithmetic("%", found, Literal(most, BIGINT), BIGINT)

"""Give a literal the type of what it is compared with, where the comparison stays the same.

``integer > 2.5`` becomes ``integer > 2``: between 2 and 2.5 there is no integer. An equality with such a
number is left alone. ``date < TIMESTAMP`` becomes ``date < DATE`` in the same way.
A BIGINT compares with a DOUBLE as double, so only numbers that a double holds exactly are narrowed there.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

from engine.language.instants import DAY_MS
from engine.language.literals import typed
from engine.language.rules.tree import transform
from engine.model.expressions import Compare, CompareOp, Expression, Literal
from engine.model.types import BIGINT, DATE, DAY_MAX, TIMESTAMP, Type

_EXACT_MAX = 2**53


def narrow_literals(expression: Expression) -> Expression:
    """Apply the rule."""
    return transform(expression, _narrow)


def _narrow(expression: Expression) -> Expression:
    if not isinstance(expression, Compare) or not isinstance(expression.right, Literal):
        return expression
    column, literal = expression.left, expression.right
    if column.type == literal.type or literal.is_null:
        return expression
    new = literal.through(_narrowed, expression.op, column.type)
    return expression if new.type != column.type else Compare(expression.op, column, new)


def _narrowed(literal: Literal, op: CompareOp, type_: Type) -> Literal:
    """What ``x op literal`` turns on for an x of this type; of another type where there is no such value."""
    new = typed(literal, type_)
    if new.type != type_ and type_.is_integer and isinstance(literal.value, float | Decimal):
        rounded = _rounded(op, literal.value)
        if rounded is not None:
            new = typed(Literal(rounded, BIGINT), type_)
    if type_ == DATE and literal.type == TIMESTAMP and isinstance(literal.value, int):
        day = _rounded(op, Fraction(literal.value, DAY_MS))
        if day is not None and day <= DAY_MAX:
            return Literal(day, DATE)
    return new


def _rounded(op: CompareOp, value: float | Decimal | Fraction) -> int | None:
    """The integer that the comparison turns on, None if there is none."""
    if not -_EXACT_MAX < value < _EXACT_MAX:  # NaN and infinity too
        return None
    if value == int(value):
        return int(value)
    if op in (">", "<="):
        return math.floor(value)
    return math.ceil(value) if op in ("<", ">=") else None

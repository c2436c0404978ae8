"""Give a literal the type of what it is compared with, where the comparison stays the same.

``integer > 2.5`` becomes ``integer > 2``: between 2 and 2.5 there is no integer. An equality with such a
number is left alone.
A BIGINT compares with a DOUBLE as double, so only numbers that a double holds exactly are narrowed there.
"""

from __future__ import annotations

import math
from decimal import Decimal

from engine.language.bind.literals import typed
from engine.language.expressions import Compare, CompareOp, Expression, Literal
from engine.language.rules.tree import transform
from engine.model.types import BIGINT, Kind

_EXACT_MAX = 2**53


def narrow_literals(expression: Expression) -> Expression:
    """Apply the rule."""
    return transform(expression, _narrow)


def _narrow(expression: Expression) -> Expression:
    if not isinstance(expression, Compare) or not isinstance(expression.right, Literal):
        return expression
    column, literal = expression.left, expression.right
    if column.type == literal.type or literal.value is None:
        return expression
    new = typed(literal, column.type)
    if new.type != column.type and column.type.is_integer and isinstance(literal.value, float | Decimal):
        rounded = _rounded(expression.op, literal.value)
        if rounded is not None:
            new = typed(Literal(rounded, BIGINT), column.type)
    if new.type != column.type and column.type.kind is Kind.TIMESTAMP:
        return expression
    return expression if new.type != column.type else Compare(expression.op, column, new)


def _rounded(op: CompareOp, value: float | Decimal) -> int | None:
    """The integer that the comparison turns on, None if there is none."""
    if not -_EXACT_MAX < value < _EXACT_MAX:  # NaN and infinity too
        return None
    if value == int(value):
        return int(value)
    if op in (">", "<="):
        return math.floor(value)
    return math.ceil(value) if op in ("<", ">=") else None

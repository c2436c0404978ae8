"""Which type two types have in common, and what arithmetic makes of them.

INTEGER < BIGINT < DECIMAL < DOUBLE; DATE < TIMESTAMP; NULL fits everything.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.model.expressions import ArithmeticOp
from engine.model.types import (
    BIGINT,
    DECIMAL_DIGITS_MAX,
    DOUBLE,
    INTEGER,
    NULL,
    STRING,
    TIMESTAMP,
    Kind,
    Logical,
    Type,
    array,
    decimal,
)

_RANK = {Kind.INTEGER: 0, Kind.BIGINT: 1, Kind.DECIMAL: 2, Kind.DOUBLE: 3}
_TO_TIME = (Kind.TIME, Kind.STRING, Kind.NULL)
_DIGITS = {Kind.INTEGER: 10, Kind.BIGINT: 19}


def common(types: Iterable[Type]) -> Type | None:
    """The narrowest type that all fit, None if there is none. All NULL: NULL."""
    result = NULL
    for type_ in types:
        joined = _join(result, type_)
        if joined is None:
            return None
        result = joined
    return result


def _join(left: Type, right: Type) -> Type | None:
    if left == right or right.kind is Kind.NULL:
        return left
    if left.kind is Kind.NULL:
        return right
    if left.is_numeric and right.is_numeric:
        if Kind.DOUBLE in (left.kind, right.kind):
            return DOUBLE
        if Kind.DECIMAL in (left.kind, right.kind):
            scale = max(left.scale, right.scale)
            digits = max(_whole_digits(left), _whole_digits(right))
            return decimal(min(DECIMAL_DIGITS_MAX, max(1, digits + scale)), scale)
        return BIGINT
    if {left.kind, right.kind} == {Kind.DATE, Kind.TIMESTAMP}:
        return TIMESTAMP
    if left.logical is right.logical is Logical.ARRAY and left.element and right.element:
        element = _join(left.element, right.element)
        return None if element is None else array(element)
    return None


def _whole_digits(type_: Type) -> int:
    return type_.precision - type_.scale if type_.kind is Kind.DECIMAL else _DIGITS[type_.kind]


def comparable(left: Type, right: Type) -> bool:
    """Whether values of the two can be compared."""
    return _join(left, right) is not None


def arithmetic(op: ArithmeticOp, left: Type, right: Type) -> Type | None:
    """The type of ``left op right`` for numeric operands; None where a DECIMAL would need more than 18
    places.
    """
    if Kind.DOUBLE in (left.kind, right.kind):
        return DOUBLE
    if Kind.DECIMAL in (left.kind, right.kind):
        if op == "/":
            return DOUBLE
        scale = left.scale + right.scale if op == "*" else max(left.scale, right.scale)
        return decimal(DECIMAL_DIGITS_MAX, scale) if scale <= DECIMAL_DIGITS_MAX else None
    return BIGINT if Kind.BIGINT in (left.kind, right.kind) else INTEGER


def castable(source: Type, target: Type) -> bool:
    """Whether CAST knows a way from one to the other."""
    if source.logical is not None or target.logical is not None:
        return _castable(source, target)
    if Kind.TIME in (source.kind, target.kind):
        other = target if source.kind is Kind.TIME else source
        return other.is_integer or other.kind in _TO_TIME or source.kind is Kind.TIMESTAMP
    if Kind.INTERVAL in (source.kind, target.kind):
        other = target if source.kind is Kind.INTERVAL else source
        return other.is_integer or other.kind in (Kind.INTERVAL, Kind.NULL) or target.kind is Kind.STRING
    if source.kind in (Kind.NULL, Kind.STRING) or target.kind is Kind.STRING or source.kind is target.kind:
        return True
    if {source.kind, target.kind} == {Kind.DATE, Kind.TIMESTAMP}:
        return True
    plain = (Kind.BOOLEAN, *_RANK)
    return source.kind in plain and target.kind in plain


def _castable(source: Type, target: Type) -> bool:
    """One of the two has a logical type."""
    if source.kind is Kind.NULL or STRING in (source, target) or source == target:
        return True
    return (
        source.logical is Logical.JSON or target.logical is Logical.JSON or source.logical is target.logical
    )

"""Type rules of aggregates: from the arguments to the types they are converted to, and that of the result."""

from __future__ import annotations

from collections.abc import Sequence

from engine.language.signatures import Types, Unfit, fits, number, typed
from engine.model.expressions import Expression, Literal
from engine.model.types import (
    BIGINT,
    BOOLEAN,
    DECIMAL_DIGITS_MAX,
    DOUBLE,
    INTEGER,
    STRING,
    Kind,
    Type,
    array,
    decimal,
)  # fmt: skip

spread = typed(DOUBLE, DOUBLE)
bits = typed(BIGINT, BIGINT)
pairs = typed(DOUBLE, DOUBLE)
counted_pairs = typed(BIGINT, DOUBLE)
condition = typed(BOOLEAN, BOOLEAN)


def anything(arguments: Sequence[Expression]) -> Type:
    """The type of the first argument; INTEGER for a bare NULL."""
    type_ = arguments[0].type
    return INTEGER if type_.kind is Kind.NULL else type_


def counted(arguments: Sequence[Expression]) -> Types:
    """Anything, to BIGINT."""
    return [anything([argument]) for argument in arguments], BIGINT


def same(arguments: Sequence[Expression]) -> Types:
    """Anything, to the same type."""
    type_ = anything(arguments)
    return [type_], type_


def ordered(arguments: Sequence[Expression]) -> Types:
    """Anything that has an order, to the same type."""
    type_ = anything(arguments)
    if type_.is_nested:
        raise Unfit(0, f"{type_} has no order", "take a part of it")
    return [type_], type_


def total(arguments: Sequence[Expression]) -> Types:
    """A number: BIGINT of whole ones, DECIMAL(18, places), else DOUBLE."""
    type_ = number(arguments, 0)
    if type_.kind is Kind.DECIMAL:
        return [type_], decimal(DECIMAL_DIGITS_MAX, type_.scale)
    return [type_], DOUBLE if type_ == DOUBLE else BIGINT


def mean(arguments: Sequence[Expression]) -> Types:
    """A number, to DOUBLE."""
    return [number(arguments, 0)], DOUBLE


def fraction(arguments: Sequence[Expression]) -> Type:
    """The type of an argument from 0 to 1."""
    fraction = arguments[1]
    value = fraction.value if isinstance(fraction, Literal) else None
    if isinstance(value, bool | str) or value is None or not 0 <= value <= 1:
        raise Unfit(1, "needs a number literal from 0 to 1", "write APPROX_QUANTILE(x, 0.99)")
    return fraction.type


def quantile(arguments: Sequence[Expression]) -> Types:
    """(DOUBLE, a fraction) to DOUBLE."""
    fraction(arguments)
    return [fits(arguments, 0, DOUBLE), DOUBLE], DOUBLE


def interpolated(arguments: Sequence[Expression]) -> Types:
    """(DOUBLE [, a fraction [, direction]]) to DOUBLE."""
    literals = [fraction(arguments), *direction(arguments)] if len(arguments) > 1 else []
    return [fits(arguments, 0, DOUBLE), *literals], DOUBLE


def chosen(arguments: Sequence[Expression]) -> Types:
    """(anything, a fraction [, direction]) to the type of the first."""
    type_ = anything(arguments)
    return [type_, fraction(arguments), *direction(arguments)], type_


def direction(arguments: Sequence[Expression]) -> list[Type]:
    """WITHIN GROUP (ORDER BY x DESC) has a third argument; no text writes it."""
    return [BOOLEAN] * (len(arguments) - 2)


def joined(arguments: Sequence[Expression]) -> Types:
    """(STRING [, a separator]) to STRING."""
    for argument in arguments[1:]:
        if not isinstance(argument, Literal) or not isinstance(argument.value, str):
            raise Unfit(1, "needs the separator as a string literal", "write STRING_AGG(x, ',')")
    return [STRING] * len(arguments), STRING


def at_extreme(arguments: Sequence[Expression]) -> Types:
    """(anything, anything that has an order) to the type of the first."""
    type_ = anything(arguments)
    return [type_, *ordered(arguments[1:])[0]], type_


def listed(arguments: Sequence[Expression]) -> Types:
    """Anything, to an ARRAY of it."""
    type_ = anything(arguments)
    return [type_], array(type_)

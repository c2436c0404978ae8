"""What a value can be in the reference, whether one fits a type, and how two stand to each other."""

from __future__ import annotations

import math
import struct
from collections.abc import Hashable
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any, Literal

from engine.model.expressions import Value
from engine.model.types import DECIMAL_DIGITS_MAX, Kind, Type


class Failure(Enum):
    """The one value that stands for every error."""

    ERROR = "ERROR"


ERROR: Literal[Failure.ERROR] = Failure.ERROR

Outcome = Value | Literal[Failure.ERROR]

DAY_MS = 86_400_000

BOUNDS = {
    Kind.INTEGER: (-(2**31), 2**31 - 1),
    Kind.BIGINT: (-(2**63), 2**63 - 1),
    Kind.DATE: (-(2**31), 2**31 - 1),
    Kind.TIMESTAMP: (-(2**63), 2**63 - 1),
    Kind.INTERVAL: (-(2**63), 2**63 - 1),
    Kind.TIME: (0, 86_399_999),
}


def fit(value: int | float | Fraction, type_: Type) -> Outcome:
    """The value as one of ``type_``, an error where it lies outside; a DECIMAL must be exact at its scale."""
    if type_.kind is Kind.DOUBLE:
        return float(value)
    if type_.kind is Kind.DECIMAL:
        unscaled = Fraction(value) * 10**type_.scale
        assert unscaled.denominator == 1, f"{value} has more digits than {type_}"
        if abs(unscaled) >= 10**DECIMAL_DIGITS_MAX:
            return ERROR
        return decimal_of(int(unscaled), type_.scale)
    lowest, highest = BOUNDS[type_.kind]
    assert isinstance(value, int)
    return value if lowest <= value <= highest else ERROR


def decimal_of(unscaled: int, scale: int) -> Decimal:
    """unscaled / 10**scale with exactly ``scale`` digits behind the point."""
    digits = tuple(int(digit) for digit in str(abs(unscaled)))
    return Decimal((int(unscaled < 0), digits, -scale))


def order(a: Outcome, a_type: Type, b: Outcome, b_type: Type) -> int:
    """-1, 0 or 1: how two values that are neither NULL nor errors stand to each other."""
    if a_type.is_numeric and b_type.is_numeric:
        assert isinstance(a, int | float | Decimal)
        assert isinstance(b, int | float | Decimal)
        if Kind.DOUBLE in (a_type.kind, b_type.kind):
            a, b = float(a), float(b)
            if math.isnan(a) or math.isnan(b):
                return int(math.isnan(a)) - int(math.isnan(b))
            return int(a > b) - int(a < b)
        a, b = Decimal(a), Decimal(b)
        return int(a > b) - int(a < b)
    if {a_type.kind, b_type.kind} == {Kind.DATE, Kind.TIMESTAMP}:
        assert isinstance(a, int)
        assert isinstance(b, int)
        if a_type.kind is Kind.DATE:
            a *= DAY_MS
        else:
            b *= DAY_MS
    elif a_type.kind is not b_type.kind:
        raise NotImplementedError(f"{a_type} compared with {b_type}")
    if isinstance(a, str) and isinstance(b, str):
        return int(a > b) - int(a < b)
    assert isinstance(a, int)  # BOOLEAN, DATE, TIMESTAMP
    assert isinstance(b, int)
    return int(a > b) - int(a < b)


Identity = Hashable


def identity(value: Any) -> Identity:
    """Something equal exactly where two values, or rows of values, are one in GROUP BY and DISTINCT.

    NULL equals NULL, NaN equals NaN, -0.0 equals 0.0. For values of one type.
    """
    if isinstance(value, list | tuple):
        return tuple(identity(part) for part in value)
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def one_zero(value: Any) -> Any:
    """The value with 0.0 in place of -0.0."""
    return value + 0.0 if isinstance(value, float) else value


def in_years(ms: int) -> bool:
    """Whether an instant lies in the years 1 to 9999, those that have a text and a calendar."""
    return -719_162 * DAY_MS <= ms < 2_932_897 * DAY_MS


def exactly(value: Any) -> Hashable:
    """Something equal exactly where two values, or rows of values, are the same to the bit."""
    if isinstance(value, list | tuple):
        return tuple(exactly(part) for part in value)
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else struct.pack(">d", value)
    return value.as_tuple() if isinstance(value, Decimal) else value

"""Functions of numbers over plain Python values, by their texts in :mod:`engine.language.functions`."""

from __future__ import annotations

import math
from collections.abc import Callable

from engine.model.types import Type
from engine.reference.values import ERROR, Outcome

DEGREE = math.pi / 180
BIGINT_MAX = 2**63 - 1


def _double(function: Callable[..., float], *, overflow: Outcome = ERROR) -> Callable[..., Outcome]:
    """Outside of its domain a function is an error; where it is too large, it is ``overflow`` with the sign
    of its argument.
    """

    def of(type_: Type, *values: float) -> Outcome:
        try:
            return function(*values)
        except OverflowError:
            return math.copysign(overflow, values[0]) if isinstance(overflow, float) else overflow
        except (ValueError, ZeroDivisionError):
            return ERROR

    return of


def _whole(function: Callable[..., int | None]) -> Callable[..., Outcome]:
    def of(type_: Type, *values: int) -> Outcome:
        result = function(*values)
        return result if result is not None and -BIGINT_MAX - 1 <= result <= BIGINT_MAX else ERROR

    return of


def _shifted(x: int, places: int) -> int | None:
    if places < 0:
        return None
    return x << min(places, 200)


def _shifted_back(x: int, places: int) -> int | None:
    return None if places < 0 else x >> min(places, 200)


def _factorial(x: int) -> int | None:
    return math.prod(range(1, x + 1)) if 0 <= x < 100 else None


def _logarithm(*values: float) -> float:
    if len(values) == 1:
        return math.log10(values[0])
    base, x = values
    return math.log(x) / math.log(base)


MATHEMATICS: dict[str, Callable[..., Outcome]] = {
    "GCD": _whole(math.gcd),
    "LCM": _whole(math.lcm),
    "FACTORIAL": _whole(_factorial),
    "CBRT": _double(math.cbrt),
    "LOG": _double(_logarithm),
    "LOG10": _double(math.log10),
    "LOG2": _double(math.log2),
    "GAMMA": _double(math.gamma),
    "LGAMMA": _double(math.lgamma),
    "SIN": _double(math.sin),
    "COS": _double(math.cos),
    "TAN": _double(math.tan),
    "COT": _double(lambda x: 1 / math.tan(x)),
    "ASIN": _double(math.asin),
    "ACOS": _double(math.acos),
    "ATAN": _double(math.atan),
    "ATAN2": _double(math.atan2),
    "SIND": _double(lambda x: math.sin(x * DEGREE)),
    "COSD": _double(lambda x: math.cos(x * DEGREE)),
    "TAND": _double(lambda x: math.tan(x * DEGREE)),
    "ASIND": _double(lambda x: math.asin(x) / DEGREE),
    "ACOSD": _double(lambda x: math.acos(x) / DEGREE),
    "ATAND": _double(lambda x: math.atan(x) / DEGREE),
    "ATAN2D": _double(lambda y, x: math.atan2(y, x) / DEGREE),
    "SINH": _double(math.sinh, overflow=math.inf),
    "COSH": _double(lambda x: math.cosh(abs(x)), overflow=math.inf),
    "TANH": _double(math.tanh),
    "ASINH": _double(math.asinh),
    "ACOSH": _double(math.acosh),
    "ATANH": _double(math.atanh),
    "DEGREES": _double(lambda x: x / DEGREE),
    "RADIANS": _double(lambda x: x * DEGREE),
    "&": _whole(lambda x, y: x & y),
    "|": _whole(lambda x, y: x | y),
    "#": _whole(lambda x, y: x ^ y),
    "~": _whole(lambda x: -x - 1),
    "<<": _whole(_shifted),
    ">>": _whole(_shifted_back),
}

"""Functions of angles, by pyarrow, which calls the C library as Python's math does: the same bits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.language.evaluation.arithmetic import as_double
from engine.language.evaluation.vector import Array, Vector, height, spread, strict
from engine.model.types import DOUBLE, Type

DEGREE = math.pi / 180

DOCUMENTED: Mapping[str, str] = {
    "SIN": "the sine of an angle in radians; an error for infinity",
    "COS": "the cosine of an angle in radians; an error for infinity",
    "TAN": "the tangent of an angle in radians; an error for infinity",
    "COT": "the cotangent of an angle in radians; an error at 0 and for infinity",
    "ASIN": "the angle of a sine, in radians; an error outside of -1 to 1",
    "ACOS": "the angle of a cosine, in radians; an error outside of -1 to 1",
    "ATAN": "the angle of a tangent, in radians",
    "SIND": "the sine of an angle in degrees; an error for infinity",
    "COSD": "the cosine of an angle in degrees; an error for infinity",
    "TAND": "the tangent of an angle in degrees; an error for infinity",
    "ASIND": "the angle of a sine, in degrees; an error outside of -1 to 1",
    "ACOSD": "the angle of a cosine, in degrees; an error outside of -1 to 1",
    "ATAND": "the angle of a tangent, in degrees",
    "SINH": "the hyperbolic sine; infinity where it is too large",
    "COSH": "the hyperbolic cosine; infinity where it is too large",
    "TANH": "the hyperbolic tangent",
    "ASINH": "the inverse of SINH",
    "ACOSH": "the inverse of COSH; an error below 1",
    "ATANH": "the inverse of TANH; an error outside of -1 to 1, and there",
    "DEGREES": "an angle in radians, in degrees",
    "RADIANS": "an angle in degrees, in radians",
}


def _pyarrow(name: str) -> Callable[[Array], Array]:
    function = getattr(pc, name)
    return lambda values: np.asarray(function(pa.array(values)).to_numpy(zero_copy_only=False))


_SIN, _COS, _TAN = _pyarrow("sin"), _pyarrow("cos"), _pyarrow("tan")
_ASIN, _ACOS, _ATAN = _pyarrow("asin"), _pyarrow("acos"), _pyarrow("atan")


def _everywhere(values: Array) -> Array:
    return np.zeros(len(values), np.bool_)


def _beyond_one(values: Array) -> Array:
    return np.abs(values) > 1


_COMPUTED: Mapping[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "SIN": (_SIN, np.isinf),
    "COS": (_COS, np.isinf),
    "TAN": (_TAN, np.isinf),
    "COT": (lambda values: 1 / _TAN(values), lambda values: np.isinf(values) | (values == 0)),
    "ASIN": (_ASIN, _beyond_one),
    "ACOS": (_ACOS, _beyond_one),
    "ATAN": (_ATAN, _everywhere),
    "SIND": (lambda values: _SIN(values * DEGREE), np.isinf),
    "COSD": (lambda values: _COS(values * DEGREE), np.isinf),
    "TAND": (lambda values: _TAN(values * DEGREE), np.isinf),
    "ASIND": (lambda values: _ASIN(values) / DEGREE, _beyond_one),
    "ACOSD": (lambda values: _ACOS(values) / DEGREE, _beyond_one),
    "ATAND": (lambda values: _ATAN(values) / DEGREE, _everywhere),
    "SINH": (_pyarrow("sinh"), _everywhere),
    "COSH": (_pyarrow("cosh"), _everywhere),
    "TANH": (_pyarrow("tanh"), _everywhere),
    "ASINH": (_pyarrow("asinh"), _everywhere),
    "ACOSH": (_pyarrow("acosh"), lambda values: values < 1),
    "ATANH": (_pyarrow("atanh"), lambda values: np.abs(values) >= 1),
    "DEGREES": (lambda values: values / DEGREE, _everywhere),
    "RADIANS": (lambda values: values * DEGREE, _everywhere),
}
"""Name -> (the values, where they are errors), each of float64[n]."""


def one(name: str) -> Callable[[Sequence[Vector], Type, int], Vector]:
    """The kernel of a function of one angle or ratio."""
    computed, wrong = _COMPUTED[name]

    def kernel(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
        values = as_double(arguments[0])
        return strict(arguments, DOUBLE, computed(values), wrong(values))

    return kernel


def atan2(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """ATAN2(y, x)."""
    return strict(arguments, DOUBLE, _angles(arguments))


def atan2d(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """ATAN2D(y, x)."""
    return strict(arguments, DOUBLE, _angles(arguments) / DEGREE)


def _angles(arguments: Sequence[Vector]) -> Array:
    size = height(arguments)
    y, x = (pa.array(np.ascontiguousarray(spread(as_double(one), size))) for one in arguments)
    found: Any = pc.atan2(y, x)
    return np.asarray(found.to_numpy(zero_copy_only=False))

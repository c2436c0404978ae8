"""``+ - * / %`` and the sign, for each numeric type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from engine.language.evaluation.vector import Array, Vector, either, exact_rows, strict
from engine.model.batch import BoolArray
from engine.model.expressions import ArithmeticOp
from engine.model.types import DOUBLE, Kind, Type

INT64_MAX = 2**63 - 1
DECIMAL_MAX = 10**18 - 1


def as_double(vector: Vector) -> Array:
    """float64 values of a numeric vector, correctly rounded."""
    if vector.type.kind is not Kind.DECIMAL:
        return vector.values.astype(np.float64, copy=False)
    values = vector.values
    result = values.astype(np.float64) / 10.0**vector.type.scale
    rough = np.abs(values) > 2**53
    if rough.any():
        scale = 10**vector.type.scale
        for row in np.flatnonzero(rough):
            result[row] = int(values[row]) / scale
    return result


def arithmetic(op: ArithmeticOp, left: Vector, right: Vector, type_: Type) -> Vector:
    """A strict operator in the type that the binder chose."""
    if type_.kind is Kind.DOUBLE:
        return _double(op, left, right)
    if type_.kind is Kind.INTEGER:
        return _integer(op, left, right, type_)
    if op in ("/", "%"):
        return _divide(op, left, right, type_)
    return _wide(op, left, right, type_)


def _double(op: ArithmeticOp, left: Vector, right: Vector) -> Vector:
    a, b = as_double(left), as_double(right)
    error: BoolArray | None = None
    if op in ("/", "%"):
        zero = b == 0
        error = zero if zero.any() else None
    return strict([left, right], DOUBLE, _DOUBLE[op](a, b), error)


_DOUBLE: dict[ArithmeticOp, Callable[..., Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "%": np.fmod,
}


def _integer(op: ArithmeticOp, left: Vector, right: Vector, type_: Type) -> Vector:
    """INTEGER by way of int64, where nothing overflows."""
    a, b = left.values.astype(np.int64), right.values.astype(np.int64)
    error: BoolArray | None = None
    if op in ("/", "%"):
        values, error = _quotient(op, a, b)
    else:
        values = _WIDE[op](a, b)
    beyond = (values > 2**31 - 1) | (values < -(2**31))
    if beyond.any():
        error = either(error, beyond)
    return strict([left, right], type_, values.astype(np.int32), error)


_WIDE: dict[ArithmeticOp, Callable[..., Any]] = {"+": np.add, "-": np.subtract, "*": np.multiply}
_EXACT: dict[ArithmeticOp, Callable[[int, int], int]] = {
    "+": int.__add__,
    "-": int.__sub__,
    "*": int.__mul__,
}


def _quotient(op: ArithmeticOp, a: Array, b: Array) -> tuple[Array, BoolArray | None]:
    """Division towards zero, or its remainder; the least int64 divided by -1 wraps and is left to the
    caller.
    """
    zero = b == 0
    divisor = np.where(zero, 1, b)
    values = np.fmod(a, np.where(divisor == -1, 1, divisor)) if op == "%" else _towards_zero(a, divisor)
    error = np.broadcast_to(zero, values.shape) if zero.any() else None
    return values, error


def _towards_zero(a: Array, b: Array) -> Array:
    quotient = np.floor_divide(a, b)
    inexact = np.fmod(a, np.where(b == -1, 1, b)) != 0
    return np.asarray(quotient + (inexact & ((a < 0) != (b < 0))))


def _divide(op: ArithmeticOp, left: Vector, right: Vector, type_: Type) -> Vector:
    """BIGINT / and %, DECIMAL %."""
    if type_.kind is Kind.DECIMAL:
        return _decimal_modulo(left, right, type_)
    a, b = left.values.astype(np.int64), right.values.astype(np.int64)
    values, error = _quotient(op, a, b)
    if op == "/":
        overflow = (b == -1) & (a == -INT64_MAX - 1)
        if overflow.any():
            error = either(error, overflow)
    return strict([left, right], type_, values, error)


def _wide(op: ArithmeticOp, left: Vector, right: Vector, type_: Type) -> Vector:
    """BIGINT and DECIMAL: int64, repaired where a double's estimate says that it may have wrapped."""
    limit, left_factor, right_factor = INT64_MAX, 1, 1
    if type_.kind is Kind.DECIMAL:
        limit = DECIMAL_MAX
        if op != "*":
            left_factor = 10 ** (type_.scale - left.type.scale)
            right_factor = 10 ** (type_.scale - right.type.scale)
    a, b = left.values.astype(np.int64, copy=False), right.values.astype(np.int64, copy=False)
    values = _WIDE[op](a * np.int64(left_factor), b * np.int64(right_factor))
    x, y = a.astype(np.float64) * left_factor, b.astype(np.float64) * right_factor
    size = (
        np.abs(x) * np.abs(y)
        if op == "*"
        else np.maximum(np.maximum(np.abs(x), np.abs(y)), np.abs(x) + np.abs(y))
    )
    every_a, every_b = np.broadcast_arrays(a, b)

    def exact(row: int) -> int | None:
        result = _EXACT[op](int(every_a[row]) * left_factor, int(every_b[row]) * right_factor)
        if limit == DECIMAL_MAX and result == -DECIMAL_MAX - 1:
            return None
        return result

    values, error = exact_rows(size, values, exact, limit)
    return strict([left, right], type_, values, error)


def _decimal_modulo(left: Vector, right: Vector, type_: Type) -> Vector:
    left_factor = 10 ** (type_.scale - left.type.scale)
    right_factor = 10 ** (type_.scale - right.type.scale)
    a, b = left.values.astype(np.int64, copy=False), right.values.astype(np.int64, copy=False)
    values, _ = _quotient("%", a * np.int64(left_factor), b * np.int64(right_factor))
    size = np.maximum(np.abs(a.astype(np.float64)) * left_factor, np.abs(b.astype(np.float64)) * right_factor)
    every_a, every_b = np.broadcast_arrays(a, b)

    def exact(row: int) -> int | None:
        x, y = int(every_a[row]) * left_factor, int(every_b[row]) * right_factor
        if y == 0:
            return None
        result: int = abs(x) % abs(y)
        return -result if x < 0 else result

    values, beyond = exact_rows(size, values, exact, DECIMAL_MAX)
    zero = b == 0
    return strict([left, right], type_, values, either(beyond, zero if zero.any() else None))


def negate(operand: Vector) -> Vector:
    """The number with the other sign; the least INTEGER or BIGINT has none."""
    values = operand.values
    if operand.type.kind is Kind.DOUBLE or operand.type.kind is Kind.DECIMAL:
        return strict([operand], operand.type, -values)
    least = values == np.iinfo(values.dtype).min
    return strict([operand], operand.type, -values, least if least.any() else None)

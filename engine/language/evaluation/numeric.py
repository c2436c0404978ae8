"""Functions of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.language.evaluation.arithmetic import as_double, negate
from engine.language.evaluation.vector import Array, Vector, height, spread, strict
from engine.model.types import BIGINT, DOUBLE, Kind, Type

FACTORIAL_MAX = 20
"""The last whose factorial is a BIGINT."""


def absolute(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """ABS."""
    operand = arguments[0]
    if type_.is_integer:
        turned = negate(operand)
        error = None if turned.error is None else turned.error
        return strict([operand], type_, np.abs(operand.values), error)
    return strict([operand], type_, np.abs(operand.values))


def sign(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """SIGN."""
    return strict(arguments, type_, np.sign(arguments[0].values).astype(type_.dtype))


def floor(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """FLOOR."""
    return _whole(arguments[0], type_, np.floor, lambda values, factor: values // factor)


def ceil(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """CEIL."""
    return _whole(arguments[0], type_, np.ceil, lambda values, factor: -(-values // factor))


def _whole(
    operand: Vector, type_: Type, double: Callable[[Any], Any], scaled: Callable[[Any, Any], Any]
) -> Vector:
    if type_.kind is Kind.DOUBLE:
        return strict([operand], type_, double(operand.values))
    if type_.kind is Kind.DECIMAL:
        return strict([operand], type_, scaled(operand.values, np.int64(10**operand.type.scale)))
    return strict([operand], type_, operand.values)


def half_away(values: Array) -> Array:
    """float64 rounded to whole numbers, halves away from zero."""
    whole = np.trunc(values)
    return np.asarray(np.where(np.abs(values - whole) >= 0.5, whole + np.copysign(1.0, values), whole))


def divide_half_away(values: Array, factor: int) -> Array:
    """int64 / factor (a power of ten), halves away from zero."""
    if factor == 1:
        return values
    size = np.abs(values)
    quotient = size // factor
    quotient = quotient + (size - quotient * factor >= factor - factor // 2)
    return np.asarray(np.where(values < 0, -quotient, quotient))


def divide_to_zero(values: Array, factor: int) -> Array:
    """int64 / factor (a power of ten), toward zero."""
    return np.asarray(np.sign(values) * (np.abs(values) // factor))


@dataclass(frozen=True, slots=True)
class _Way:
    """How digits go. double: float64[n] to whole numbers; divided: int64[n] by a power of ten; up: whether
    half of a unit and more makes a whole one.
    """

    double: Callable[[Array], Array]
    divided: Callable[[Array, int], Array]
    up: bool


_HALF_AWAY = _Way(half_away, divide_half_away, up=True)
_TO_ZERO = _Way(np.trunc, divide_to_zero, up=False)


def rounded(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """ROUND, halves away from zero."""
    return _to_places(arguments, type_, _HALF_AWAY)


def truncated(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """TRUNC, toward zero."""
    return _to_places(arguments, type_, _TO_ZERO)


def _to_places(arguments: Sequence[Vector], type_: Type, way: _Way) -> Vector:
    operand = arguments[0]
    if len(arguments) == 1:
        if type_.kind is Kind.DOUBLE:
            return strict(arguments, type_, way.double(operand.values))
        if type_.kind is Kind.DECIMAL:
            values = way.divided(operand.values, 10**operand.type.scale)
            return strict(arguments, type_, values)
        return operand
    places = arguments[1].values
    if type_.kind is Kind.DOUBLE:
        return strict(arguments, type_, _double_to_places(operand.values, places, way))
    scale = operand.type.scale
    size = height(arguments)
    values = spread(operand.values, size).astype(np.int64)
    result = np.zeros(size, np.int64)
    wanted = spread(places, size)
    for digits in np.unique(wanted):
        rows = wanted == digits
        drop = scale - min(int(digits), scale)  # digits that go, of the unscaled integer
        if drop <= 18:
            factor = 10**drop
            kept = way.divided(values[rows], factor)
            back = drop - (scale - type_.scale)  # zeros that stand for them again
            limit = 2**63 - 1
            size_limit = limit // 10**back if back <= 18 else 0
            over = np.abs(kept) > size_limit
            result[rows] = np.where(over, 0, kept) * np.int64(10 ** min(back, 18))
            # Too large a multiple of ten cannot be held: marked by a value beyond every type.
            result[np.flatnonzero(rows)[over]] = np.iinfo(np.int64).min
        elif drop == 19 and way.up:  # half of 10**19 and more is 10**19, which cannot be held; less is 0
            half = 5 * 10**18
            result[rows & ((values >= half) | (values <= -half))] = np.iinfo(np.int64).min
    least = result == np.iinfo(np.int64).min
    bounds = {Kind.INTEGER: 2**31 - 1, Kind.BIGINT: 2**63 - 1, Kind.DECIMAL: 10**18 - 1}
    error = least | (np.abs(np.where(least, 0, result)) > bounds[type_.kind])
    untouched = wanted >= scale
    error = error & ~untouched
    return strict(
        arguments, type_, np.where(error, 0, result).astype(type_.dtype), error if error.any() else None
    )


def _double_to_places(values: Array, places: Array, way: _Way) -> Array:
    """round(x * 10^p) / 10^p, or x itself where that is not finite."""
    places = np.clip(places, -400, 400)
    factor = np.power(10.0, np.abs(places).astype(np.float64))
    up = way.double(values * factor) / factor
    down = way.double(values / factor) * factor
    down = np.where(np.isinf(factor), 0.0, down)
    up = np.where(np.isfinite(up), up, values)
    return np.where(np.isfinite(values), np.where(places >= 0, up, down), values)


def sqrt(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """SQRT; an error below zero."""
    values = as_double(arguments[0])
    return strict(arguments, DOUBLE, np.sqrt(values), values < 0)


def ln(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """LN; an error at zero and below."""
    values = as_double(arguments[0])
    return strict(arguments, DOUBLE, np.log(values), values <= 0)


def exp(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """EXP; infinity where it is too large."""
    return strict(arguments, DOUBLE, np.exp(as_double(arguments[0])))


def power(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """POWER; an error where there is no real result."""
    base, exponent = (as_double(argument) for argument in arguments)
    error = ((base == 0) & (exponent < 0)) | (
        (base < 0) & np.isfinite(base) & np.isfinite(exponent) & (exponent != np.floor(exponent))
    )
    return strict(arguments, DOUBLE, np.power(base, exponent), error)


def _whole_by_row(arguments: Sequence[Vector], one: Callable[..., int | None]) -> Vector:
    """A function of whole numbers row by row, of any size; None and what is no BIGINT are errors."""
    size = height(arguments)
    columns = [spread(argument.values, size).tolist() for argument in arguments]
    results = [one(*row) for row in zip(*columns, strict=True)]
    wrong = np.array([result is None or abs(result) >= 2**63 for result in results], np.bool_)
    values = np.array([0 if bad else result for bad, result in zip(wrong, results, strict=True)], np.int64)
    return strict(arguments, BIGINT, values, wrong)


def greatest_divisor(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """GCD."""
    return _whole_by_row(arguments, math.gcd)


def least_multiple(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """LCM."""
    return _whole_by_row(arguments, math.lcm)


def factorial(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """FACTORIAL."""
    return _whole_by_row(arguments, lambda x: math.factorial(x) if 0 <= x <= FACTORIAL_MAX else None)


def _double_by_row(arguments: Sequence[Vector], one: Callable[[float], float]) -> Vector:
    """A function of Python's math row by row; ValueError and OverflowError are errors."""
    values = np.empty(len(arguments[0].values), np.float64)
    wrong = np.zeros(len(values), np.bool_)
    for row, x in enumerate(as_double(arguments[0]).tolist()):
        try:
            values[row] = one(x)
        except (ValueError, OverflowError):
            values[row], wrong[row] = 0.0, True
    return strict(arguments, DOUBLE, values, wrong)


def gamma(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """GAMMA."""
    return _double_by_row(arguments, math.gamma)


def log_gamma(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """LGAMMA."""
    return _double_by_row(arguments, math.lgamma)


def cube_root(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """CBRT."""
    return strict(arguments, DOUBLE, np.cbrt(as_double(arguments[0])))


def logarithm(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """LOG and LOG10: LOG(base, x) is LN(x) / LN(base)."""
    values = as_double(arguments[-1])
    if len(arguments) == 1:
        return strict(arguments, DOUBLE, np.log10(values), values <= 0)
    base = as_double(arguments[0])
    wrong = (values <= 0) | (base <= 0) | (base == 1)
    return strict(arguments, DOUBLE, np.log(values) / np.log(base), wrong)


def binary_logarithm(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """LOG2."""
    values = as_double(arguments[0])
    return strict(arguments, DOUBLE, np.log2(values), values <= 0)

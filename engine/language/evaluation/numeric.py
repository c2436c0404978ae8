"""Functions of numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engine.language.evaluation.arithmetic import as_double, negate
from engine.language.evaluation.vector import Array, Vector, height, spread, strict
from engine.model.types import DOUBLE, Kind, Type


def unreachable(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """The binder turns this function into an operator."""
    raise AssertionError("bound as an operator")


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


def rounded(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """ROUND, halves away from zero."""
    operand = arguments[0]
    if len(arguments) == 1:
        if type_.kind is Kind.DOUBLE:
            return strict(arguments, type_, half_away(operand.values))
        if type_.kind is Kind.DECIMAL:
            values = divide_half_away(operand.values, 10**operand.type.scale)
            return strict(arguments, type_, values)
        return operand
    places = arguments[1].values
    if type_.kind is Kind.DOUBLE:
        return strict(arguments, type_, _round_double(operand.values, places))
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
            kept = divide_half_away(values[rows], factor)
            back = drop - (scale - type_.scale)  # zeros that stand for them again
            limit = 2**63 - 1
            size_limit = limit // 10**back if back <= 18 else 0
            over = np.abs(kept) > size_limit
            result[rows] = np.where(over, 0, kept) * np.int64(10 ** min(back, 18))
            # Too large a multiple of ten cannot be held: marked by a value beyond every type.
            result[np.flatnonzero(rows)[over]] = np.iinfo(np.int64).min
        elif drop == 19:  # half of 10**19 and more is 10**19, which cannot be held; less is 0
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


def _round_double(values: Array, places: Array) -> Array:
    """round(x * 10^p) / 10^p, or x itself where that is not finite."""
    places = np.clip(places, -400, 400)
    factor = np.power(10.0, np.abs(places).astype(np.float64))
    up = half_away(values * factor) / factor
    down = half_away(values / factor) * factor
    down = np.where(np.isinf(factor), 0.0, down)
    up = np.where(np.isfinite(up), up, values)
    return np.where(np.isfinite(values), np.where(places >= 0, up, down), values)


def sqrt(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """SQRT; an error below zero."""
    values = as_double(arguments[0])
    return strict(arguments, DOUBLE, np.sqrt(values), _some(values < 0))


def ln(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """LN; an error at zero and below."""
    values = as_double(arguments[0])
    return strict(arguments, DOUBLE, np.log(values), _some(values <= 0))


def exp(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """EXP; infinity where it is too large."""
    return strict(arguments, DOUBLE, np.exp(as_double(arguments[0])))


def power(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """POWER; an error where there is no real result."""
    base, exponent = (as_double(argument) for argument in arguments)
    error = ((base == 0) & (exponent < 0)) | (
        (base < 0) & np.isfinite(base) & np.isfinite(exponent) & (exponent != np.floor(exponent))
    )
    return strict(arguments, DOUBLE, np.power(base, exponent), _some(error))


def _some(mask: Array) -> Array | None:
    return mask if mask.any() else None

"""CAST: what does not convert is an error.

DOUBLE to a whole number rounds halves to even, DECIMAL rounds halves away from zero. Strings convert per
distinct value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from engine.language.evaluation.arithmetic import as_double
from engine.language.evaluation.nested import cast_nested
from engine.language.evaluation.numeric import divide_half_away
from engine.language.evaluation.vector import Array, Vector, constant, from_texts, over_dictionary, strict
from engine.language.instants import (
    DAY_MS,
    date_text,
    interval_text,
    parse_date,
    parse_time,
    parse_timestamp,
    time_text,
    timestamp_text,
)
from engine.model.types import DAY_MAX, DAY_MIN, STRING, TIMESTAMP_MS_MAX, TIMESTAMP_MS_MIN, Kind, Type

_WHOLE_MAX = {Kind.INTEGER: 2**31 - 1, Kind.BIGINT: 2**63 - 1}
_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,5})?")
_SPECIAL = {
    "nan": float("nan"),
    "inf": float("inf"),
    "infinity": float("inf"),
    "-inf": float("-inf"),
    "-infinity": float("-inf"),
    "+inf": float("inf"),
    "+infinity": float("inf"),
}
_TRUE = {"true", "t", "yes", "y", "on", "1"}
_FALSE = {"false", "f", "no", "n", "off", "0"}


def cast(operand: Vector, target: Type, lenient: bool) -> Vector:
    """Strict; where ``lenient`` a value that does not convert is NULL. Errors of the operand itself stay."""
    result = _cast(operand, target)
    if not lenient or result.error is None:
        return result
    own = operand.error
    failed = result.error if own is None else result.error & ~own
    null = failed if result.null is None else result.null | failed
    return Vector(target, result.values, null, own, result.dictionary)


def _cast(operand: Vector, target: Type) -> Vector:
    source = operand.type
    if source == target:
        return operand
    if source.kind is Kind.NULL:
        return constant(None, target)
    if source.logical is not None or target.logical is not None:
        return cast_nested(operand, target)
    if source.kind is Kind.STRING:
        return over_dictionary(operand, target, lambda strings: _parse_all(strings, target))
    if target.kind is Kind.STRING:
        return _to_text(operand)
    values = operand.values
    if target.kind is Kind.INTERVAL:
        return strict([operand], target, values.astype(np.int64))
    if target.kind is Kind.TIME:
        if source.kind is Kind.TIMESTAMP:
            return strict([operand], target, values % DAY_MS)
        outside = (values < 0) | (values >= DAY_MS)
        return strict([operand], target, values.astype(np.int64), outside if outside.any() else None)
    if target.kind is Kind.BOOLEAN:
        return strict([operand], target, values != 0)
    if target.kind is Kind.DOUBLE:
        return strict([operand], target, as_double(operand))
    if target.kind is Kind.TIMESTAMP:
        return strict([operand], target, values.astype(np.int64) * DAY_MS)
    if target.kind is Kind.DATE:
        return strict([operand], target, np.floor_divide(values, DAY_MS).astype(np.int32))
    if target.kind is Kind.DECIMAL:
        return _to_decimal(operand, target)
    return _to_whole(operand, target)


def _to_whole(operand: Vector, target: Type) -> Vector:
    values = operand.values
    bound = _WHOLE_MAX[target.kind]
    if operand.type.kind is Kind.DOUBLE:
        whole = np.rint(values)
        error = ~((whole >= -float(bound) - 1) & (whole < float(bound) + (1 if bound < 2**53 else 0)))
        result = np.where(error, 0.0, whole).astype(np.int64)
    else:
        result = values.astype(np.int64)
        if operand.type.kind is Kind.DECIMAL:
            result = divide_half_away(result, 10**operand.type.scale)
        error = (result > bound) | (result < -bound - 1)
    return strict([operand], target, result.astype(target.dtype), error if error.any() else None)


def _to_decimal(operand: Vector, target: Type) -> Vector:
    limit = 10**target.precision
    if operand.type.kind is Kind.DOUBLE:
        scaled = operand.values * 10.0**target.scale
        nearest = np.where(np.abs(scaled) < 2.0**52, np.trunc(scaled + np.copysign(0.5, scaled)), scaled)
        error = ~(np.abs(nearest) < limit)
        result = np.where(error, 0.0, nearest).astype(np.int64)
        return strict([operand], target, result, error if error.any() else None)
    source_scale = operand.type.scale
    values = operand.values.astype(np.int64)
    if target.scale < source_scale:
        result = divide_half_away(values, 10 ** (source_scale - target.scale))
        error = np.abs(result) >= limit
    else:
        factor = 10 ** (target.scale - source_scale)
        most = (limit - 1) // factor
        error = (values > most) | (values < -most)
        result = np.where(error, 0, values) * np.int64(factor)
    return strict([operand], target, result, error if error.any() else None)


# --- from strings


def _parse_all(strings: pa.StringArray, target: Type) -> tuple[Any, Array | None]:
    parse = _PARSERS[target.kind]
    results = [parse(text, target) for text in strings.to_pylist()]
    wrong = np.array([result is None for result in results], np.bool_)
    values = np.array([0 if result is None else result for result in results], target.dtype)
    return values, wrong if wrong.any() else None


def _parse_whole(text: str, target: Type) -> int | None:
    text = text.strip()
    if not _INTEGER.fullmatch(text):
        return None
    value = int(text)
    bound = _WHOLE_MAX[target.kind]
    return value if -bound - 1 <= value <= bound else None


def _parse_double(text: str, target: Type) -> float | None:
    text = text.strip()
    if len(text) <= 400 and _NUMBER.fullmatch(text):
        value = float(text)
        return value if value not in (float("inf"), float("-inf")) else None
    return _SPECIAL.get(text.lower())


def _parse_decimal(text: str, target: Type) -> int | None:
    text = text.strip()
    if len(text) > 100 or not _NUMBER.fullmatch(text):
        return None
    value = Decimal(text)
    if value and value.adjusted() > 20:
        return None
    if not value or value.adjusted() < -20:
        return 0
    scaled = (
        int(value.scaleb(target.scale).quantize(Decimal(1), ROUND_HALF_UP))
        if _short(value)
        else _long(value, target)
    )
    return scaled if abs(scaled) < 10**target.precision else None


def _short(value: Decimal) -> bool:
    return len(value.as_tuple().digits) <= 25 and value.adjusted() <= 8


def _long(value: Decimal, target: Type) -> int:
    """Beyond the 28 digits that Decimal computes with: by whole numbers."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    whole = int("".join(map(str, digits)))
    shift = exponent + target.scale
    size: int = whole * 10**shift if shift >= 0 else (whole + 10**-shift // 2) // 10**-shift
    return -size if sign else size


def _parse_boolean(text: str, target: Type) -> bool | None:
    text = text.strip().lower()
    return True if text in _TRUE else False if text in _FALSE else None


def _parse_date(text: str, target: Type) -> int | None:
    days = parse_date(text)
    if days is None:
        ms = parse_timestamp(text)
        days = None if ms is None else ms // DAY_MS
    return days


_PARSERS: dict[Kind, Callable[[str, Type], Any]] = {
    Kind.INTEGER: _parse_whole,
    Kind.BIGINT: _parse_whole,
    Kind.DOUBLE: _parse_double,
    Kind.DECIMAL: _parse_decimal,
    Kind.BOOLEAN: _parse_boolean,
    Kind.DATE: _parse_date,
    Kind.TIMESTAMP: lambda text, target: parse_timestamp(text),
    Kind.TIME: lambda text, target: parse_time(text),
}


# --- to strings


def double_text(value: float) -> str:
    """The shortest text that reads back as the same number."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(float(value))


def decimal_text(value: int, scale: int) -> str:
    """An unscaled integer with its places."""
    if not scale:
        return str(value)
    digits = str(abs(value)).rjust(scale + 1, "0")
    return f"{'-' if value < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"


def _to_text(operand: Vector) -> Vector:
    distinct, places = np.unique(operand.values, return_inverse=True)
    kind = operand.type.kind
    write = _WRITERS[kind]
    if kind is Kind.DOUBLE and (operand.values == 0).any():
        # -0.0 and 0.0 are one value to numpy, but two texts.
        every = pa.array([double_text(value) for value in operand.values.tolist()], pa.string())
        return from_texts([operand], STRING, every)
    scale = operand.type.scale
    words = pa.array([write(value, scale) for value in distinct.tolist()], pa.string())
    error: Array | None = None
    if kind in (Kind.DATE, Kind.TIMESTAMP):
        outside = np.array([not word for word in words.to_pylist()], np.bool_)
        error = outside[places] if outside.any() else None
    encoded = words.dictionary_encode()
    if not len(encoded.dictionary):
        return strict(
            [operand], STRING, np.zeros(len(operand.values), np.int32), error, pa.array([""], pa.string())
        )
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32)
    return strict([operand], STRING, codes[places], error, encoded.dictionary)


_WRITERS: dict[Kind, Callable[[Any, int], str]] = {
    Kind.INTEGER: lambda value, scale: str(value),
    Kind.BIGINT: lambda value, scale: str(value),
    Kind.BOOLEAN: lambda value, scale: "true" if value else "false",
    Kind.DOUBLE: lambda value, scale: double_text(value),
    Kind.DECIMAL: decimal_text,
    Kind.INTERVAL: lambda value, scale: interval_text(value),
    Kind.TIME: lambda value, scale: time_text(value),
    Kind.DATE: lambda value, scale: date_text(value) if DAY_MIN <= value <= DAY_MAX else "",
    Kind.TIMESTAMP: lambda value, scale: (
        timestamp_text(value) if TIMESTAMP_MS_MIN <= value <= TIMESTAMP_MS_MAX else ""
    ),
}

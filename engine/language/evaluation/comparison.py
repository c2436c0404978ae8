"""Comparison, across types where the language allows it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.language.evaluation.arithmetic import as_double
from engine.language.evaluation.vector import Array, Vector, height, over_dictionary, strict, texts
from engine.language.instants import DAY_MS
from engine.model.expressions import TURNED, CompareOp, Literal
from engine.model.types import BOOLEAN, Kind

_ARROW: dict[CompareOp, Any] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def compare(op: CompareOp, left: Vector, right: Vector) -> Vector:
    """BOOLEAN, strict."""
    kinds = {left.type.kind, right.type.kind}
    if Kind.STRING in kinds:
        return _strings(op, left, right)
    if Kind.DOUBLE in kinds:
        return strict([left, right], BOOLEAN, _doubles(op, as_double(left), as_double(right)))
    if kinds == {Kind.DATE, Kind.TIMESTAMP}:
        a, b = (
            v.values.astype(np.int64) * DAY_MS if v.type.kind is Kind.DATE else v.values
            for v in (left, right)
        )
        return strict([left, right], BOOLEAN, _plain(op, a, b))
    if Kind.DECIMAL in kinds and left.type.scale != right.type.scale:
        return strict([left, right], BOOLEAN, _scaled(op, left, right))
    return strict([left, right], BOOLEAN, _plain(op, left.values, right.values))


def _plain(op: CompareOp, a: Array, b: Array) -> Array:
    result: Array
    match op:
        case "=":
            result = a == b
        case "<>":
            result = a != b
        case "<":
            result = a < b
        case "<=":
            result = a <= b
        case ">":
            result = a > b
        case ">=":
            result = a >= b
    return result


def _doubles(op: CompareOp, a: Array, b: Array) -> Array:
    """NaN equals NaN and is above every other number."""
    match op:
        case "=":
            return np.asarray((a == b) | (np.isnan(a) & np.isnan(b)))
        case "<>":
            return ~_doubles("=", a, b)
        case "<":
            return np.asarray((a < b) | (np.isnan(b) & ~np.isnan(a)))
        case ">":
            return _doubles("<", b, a)
        case "<=":
            return ~_doubles("<", b, a)
        case ">=":
            return ~_doubles("<", a, b)


def _scaled(op: CompareOp, left: Vector, right: Vector) -> Array:
    """Different scales: whole quotients first, then what is left over, so that nothing overflows."""
    if left.type.scale > right.type.scale:
        return _scaled(TURNED[op], right, left)
    factor = 10 ** (right.type.scale - left.type.scale)
    a = left.values.astype(np.int64, copy=False)
    whole, rest = np.divmod(right.values.astype(np.int64, copy=False), np.int64(factor))
    equal = (a == whole) & (rest == 0)
    below = (a < whole) | ((a == whole) & (rest > 0))
    result: Array
    match op:
        case "=":
            result = equal
        case "<>":
            result = ~equal
        case "<":
            result = below
        case "<=":
            result = below | equal
        case ">":
            result = ~(below | equal)
        case ">=":
            result = ~below
    return result


def _strings(op: CompareOp, left: Vector, right: Vector) -> Vector:
    if len(left.values) == 1 and len(right.values) != 1:
        return _strings(TURNED[op], right, left)
    if len(right.values) == 1 and right.null is None and right.error is None:
        assert right.dictionary is not None
        value = right.dictionary[int(right.values[0])]
        return over_dictionary(
            left, BOOLEAN, lambda strings: (_ARROW[op](strings, value).to_numpy(False), None)
        )
    n = height([left, right])
    a, b = (_rows(vector, n) for vector in (left, right))
    result = _ARROW[op](a, b).fill_null(False).to_numpy(zero_copy_only=False)
    return strict([left, right], BOOLEAN, result)


def _rows(vector: Vector, n: int) -> pa.Array:
    strings = texts(vector)
    return strings if len(strings) == n else pa.repeat(strings[0], n)


def is_in(operand: Vector, choices: tuple[Literal, ...]) -> Vector:
    """TRUE where a choice matches, else NULL where the list holds a NULL. Choices are of the operand's
    type.
    """
    wanted = [choice.value for choice in choices if choice.value is not None]
    if operand.type.kind is Kind.STRING:
        values = pa.array(wanted, pa.string())
        found = over_dictionary(
            operand, BOOLEAN, lambda strings: (pc.is_in(strings, values).to_numpy(zero_copy_only=False), None)
        )
    else:
        if operand.type.kind is Kind.DECIMAL:
            wanted = [int(value.scaleb(operand.type.scale)) for value in wanted]  # type: ignore[union-attr]
        member = np.isin(operand.values, np.array(wanted, operand.type.dtype))
        if operand.type.kind is Kind.DOUBLE and any(value != value for value in wanted):
            member |= np.isnan(operand.values)
        found = strict([operand], BOOLEAN, member)
    if len(wanted) == len(choices):
        return found
    unknown = ~found.values
    if found.error is not None:
        unknown = unknown & ~found.error
    null = unknown if found.null is None else unknown | found.null
    return Vector(BOOLEAN, found.values, null, found.error)

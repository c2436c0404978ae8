"""Canonical texts as Arrow arrays of what they mean, and back. O(values), a Python object for each."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.model.nested.canonical import dumped, normalise, written
from engine.model.nested.values import parsed, part_of, value_of
from engine.model.types import Kind, Logical, Type


def to_arrow(type_: Type, texts: pa.StringArray) -> pa.Array:
    """Canonical texts of a logical type, NULLs among them, as an array of ``type_.arrow``."""
    if type_.logical is Logical.UUID:
        return texts
    if type_.logical is Logical.JSON:
        return pa.ExtensionArray.from_storage(type_.arrow, texts)
    if type_.logical is Logical.BYTES:
        given = [None if one is None else bytes.fromhex(one) for one in texts.to_pylist()]
        return pa.array(given, pa.binary())
    # What stands where a column is NULL may be the empty text, which is no nested value.
    return _of_parts(type_, [parsed(one) if one else None for one in texts.to_pylist()])


def _of_parts(type_: Type, parts: Sequence[Any]) -> pa.Array:
    mask = pa.array([part is None for part in parts], pa.bool_())
    match type_.logical:
        case Logical.ARRAY:
            assert type_.element is not None
            inner = _of_parts(type_.element, [one for part in parts if part is not None for one in part])
            return pa.ListArray.from_arrays(_offsets(parts), inner, mask=mask)
        case Logical.MAP:
            assert type_.element is not None
            items = [item for part in parts if part is not None for item in part.items()]
            keys = pa.array([key for key, _ in items], pa.string())
            inner = _of_parts(type_.element, [value for _, value in items])
            made = pa.MapArray.from_arrays(_offsets(parts), keys, inner)
            if all(part is not None for part in parts):
                return made
            return made.take(
                pa.array([None if part is None else at for at, part in enumerate(parts)], pa.int32())
            )
        case Logical.STRUCT:
            columns = [
                _of_parts(inner, [None if part is None else part[name] for part in parts])
                for name, inner in type_.members
            ]
            return pa.StructArray.from_arrays(columns, fields=list(type_.arrow), mask=mask)
        case Logical.JSON:
            texts = pa.array([None if part is None else dumped(part) for part in parts], pa.string())
            return to_arrow(type_, texts)
        case Logical.BYTES:
            return pa.array([None if one is None else base64.b64decode(one) for one in parts], pa.binary())
    if type_.kind is Kind.DECIMAL:
        return pa.array(parts, pa.string()).cast(type_.arrow)
    values = [None if part is None else value_of(type_, part) for part in parts]
    width = {Kind.DATE: pa.int32(), Kind.TIMESTAMP: pa.int64()}.get(type_.kind)
    return pa.array(values, type_.arrow) if width is None else pa.array(values, width).view(type_.arrow)


def _offsets(parts: Sequence[Any]) -> pa.Array:
    lengths = [0 if part is None else len(part) for part in parts]
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())


def elements_of(
    type_: Type, texts: pa.StringArray, elements_max: int
) -> tuple[npt.NDArray[np.int64], list[pa.Array]]:
    """The elements of ARRAYs, the keys and the values of MAPs, of canonical texts that are not NULL.

    Returns int64[n], how many each has, -1 for more than ``elements_max``, of which none is given, and an
    array for the elements, or two; of logical types their canonical texts.
    """
    element = type_.element
    assert element is not None
    # What stands where a column is NULL may be the empty text, which is no nested value.
    parts = [parsed(one) if one else () for one in texts.to_pylist()]
    lengths = np.array([-1 if len(part) > elements_max else len(part) for part in parts], np.int64)
    kept = [part for part in parts if len(part) <= elements_max]
    if type_.logical is not Logical.MAP:
        return lengths, [_elements(element, [one for part in kept for one in part])]
    items = [item for part in kept if part for item in part.items()]
    keys = pa.array([key for key, _ in items], pa.string())
    return lengths, [keys, _elements(element, [value for _, value in items])]


def _elements(type_: Type, parts: Sequence[Any]) -> pa.Array:
    if type_.logical is None:
        return _of_parts(type_, parts)
    return pa.array([None if part is None else written(type_, part) for part in parts], pa.string())


def from_arrow(type_: Type, array: pa.Array) -> pa.StringArray:
    """The inverse of :func:`to_arrow`; of what other systems wrote too. Raises ValueError for what is none of
    the type.
    """
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_string(array.type):
        return array
    if pa.types.is_binary(array.type):
        return pa.array([None if one is None else one.hex() for one in array.to_pylist()], pa.string())
    parts = [None if one is None else normalise(type_, one) for one in _parts(type_, array)]
    return pa.array([None if one is None else written(type_, one) for one in parts], pa.string())


def _parts(type_: Type, array: pa.Array) -> list[Any]:
    """The values of an array as JSON has them."""
    match type_.logical:
        case Logical.ARRAY:
            assert type_.element is not None
            kept = array.filter(array.is_valid())  # Arrow flattens no NULLs with JSON inside
            return _cut(array, _parts(type_.element, kept.flatten()))
        case Logical.MAP:
            assert type_.element is not None
            kept = array.filter(array.is_valid())  # its keys and items have no offset
            pairs = list(zip(kept.keys.to_pylist(), _parts(type_.element, kept.items), strict=True))
            lengths = [None if one is None else len(one) for one in array.to_pylist()]
            return [None if one is None else dict(one) for one in _cut_by(lengths, pairs)]
        case Logical.STRUCT:
            columns = [
                _parts(inner, column)
                for (_, inner), column in zip(type_.members, array.flatten(), strict=True)
            ]
            names = [name for name, _ in type_.members]
            there = array.is_valid().to_pylist()
            rows = zip(*columns, strict=True)
            return [
                dict(zip(names, row, strict=True)) if valid else None
                for valid, row in zip(there, rows, strict=True)
            ]
        case Logical.JSON:
            texts = array.storage if isinstance(array, pa.ExtensionArray) else array
            return [None if one is None else parsed(one) for one in texts.to_pylist()]
        case Logical.BYTES:
            return [None if one is None else base64.b64encode(one).decode() for one in array.to_pylist()]
    values = array
    if type_.kind is Kind.TIMESTAMP:
        values = array.cast(pa.timestamp("ms")).view(pa.int64())
    elif type_.kind in (Kind.DATE, Kind.DECIMAL):
        values = array.cast(pa.string())
    found = values.to_pylist()
    if type_.kind in (Kind.TIMESTAMP, Kind.DOUBLE):
        return [None if one is None else part_of(type_, one) for one in found]
    return list(found)


def _cut(array: pa.ListArray, values: list[Any]) -> list[Any]:
    return _cut_by(pc.list_value_length(array).to_pylist(), values)


def _cut_by(lengths: list[int | None], values: list[Any]) -> list[Any]:
    found: list[Any] = []
    at = 0
    for length in lengths:
        found.append(None if length is None else values[at : at + length])
        at += length or 0
    return found

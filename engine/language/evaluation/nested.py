"""CAST of nested values, and functions over them.

They are worked out once for each distinct value where one argument varies, else once for each distinct row of
arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from engine.language.evaluation.vector import (
    Vector,
    but_not,
    compact,
    either,
    height,
    spread,
    texts,
)
from engine.model.batch import BoolArray
from engine.model.nested.canonical import canonical, canonical_of
from engine.model.nested.values import part_of, text_of
from engine.model.types import STRING, Kind, Logical, Type


class _Error:
    """The type of :data:`ERROR`."""


ERROR: Final = _Error()
"""What a function gives for values that it has no result for."""

Rowwise = Callable[..., Any]
"""Values, by their types as :mod:`engine.model.nested.values` says, to a value; None is NULL, or ERROR."""


def rowwise(arguments: Sequence[Vector], type_: Type, one: Rowwise, *, is_strict: bool = True) -> Vector:
    """A function of values over vectors. is_strict: NULL where an argument is; else NULL is given as None."""
    varying = [argument for argument in arguments if len(argument.values) != 1]
    null, error = _masks(arguments, is_strict)
    filler = "" if type_.kind is Kind.STRING else 0
    if len(varying) == 1 and varying[0].type.kind is Kind.STRING and len(varying[0].values):
        short = compact(varying[0])
        assert short.dictionary is not None
        lists = [
            (short.dictionary.to_pylist() or [""]) if argument is varying[0] else _values(argument)
            for argument in arguments
        ]
        if is_strict or short.null is None:
            size = max(len(short.dictionary), 1)
            rows = zip(*(each if len(each) == size else each * size for each in lists), strict=True)
            others = [each for each in arguments if each is not varying[0]]
            usable = all((each.unusable if is_strict else each.error) is None for each in others)
            made = [_call(one, row) if usable else filler for row in rows]
            return _result(type_, made, short.values, null, error, len(short.values))
    size = height(arguments)
    lists = [_values(argument) for argument in arguments]
    skip = spread(error, size).tolist() if error is not None else [False] * size
    if is_strict and null is not None:
        skip = (spread(null, size) | np.array(skip, np.bool_)).tolist()
    known: dict[Any, Any] = {}
    made = []
    for skipped, row in zip(
        skip, zip(*(x if len(x) == size else x * size for x in lists), strict=True), strict=True
    ):
        if skipped:
            made.append(filler)
            continue
        if row not in known:
            known[row] = _call(one, row)
        made.append(known[row])
    return _result(type_, made, np.arange(size), null if is_strict else None, error, size)


def object_of(names: Sequence[Any], parts: Iterable[Any]) -> Any:
    """The text of an object, or ERROR where a name is NULL or stands twice."""
    if None in names or len(set(names)) < len(names):
        return ERROR
    return text_of(dict(zip(names, parts, strict=True)))


def _call(one: Rowwise, row: Sequence[Any]) -> Any:
    try:
        return one(*row)
    except (ValueError, OverflowError):
        return ERROR


def _masks(arguments: Sequence[Vector], is_strict: bool) -> tuple[BoolArray | None, BoolArray | None]:
    null: BoolArray | None = None
    error: BoolArray | None = None
    for argument in arguments:
        null = either(null, argument.null)
        error = either(error, argument.error)
    return (null, but_not(error, null)) if is_strict else (None, error)


def _values(vector: Vector) -> list[Any]:
    if vector.type.kind is Kind.STRING:
        return list(texts(vector).to_pylist())
    found: list[Any] = vector.values.tolist()
    if vector.null is not None:
        empty = spread(vector.null, len(found)).tolist()
        found = [None if is_null else value for is_null, value in zip(empty, found, strict=True)]
    return [None] * len(found) if vector.type.kind is Kind.NULL else found


def _result(
    type_: Type,
    made: list[Any],
    places: Any,
    null: BoolArray | None,
    error: BoolArray | None,
    size: int,
) -> Vector:
    """What was made, at these places (int[size])."""
    nothing = np.array([value is None for value in made], np.bool_)
    wrong = np.array([value is ERROR for value in made], np.bool_)
    plain = [None if value is ERROR else value for value in made]
    dictionary = None
    if type_.kind is Kind.STRING:
        encoded = pa.array(plain, pa.string()).fill_null("").dictionary_encode()
        values = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32, copy=False)[places]
        dictionary = encoded.dictionary if len(encoded.dictionary) else pa.array([""], pa.string())
    else:
        values = np.array([0 if value is None else value for value in plain], type_.dtype)[places]
    if nothing.any():
        null = either(None if null is None else spread(null, size), nothing[places])
    if wrong.any():
        error = either(None if error is None else spread(error, size), wrong[places])
    null = None if null is None else spread(null, size)
    error = None if error is None else but_not(spread(error, size), null)
    if null is not None and not null.any():
        null = None
    return Vector(type_, values, null, None if error is None or not error.any() else error, dictionary)


# --- casts


def cast_nested(operand: Vector, target: Type) -> Vector:
    """CAST where one of the types is a logical one. An error for what is none of the target."""
    source = operand.type
    return rowwise([operand], target, lambda value: converted(value, source, target))


def converted(value: Any, source: Type, target: Type) -> str | None:
    """A value as one of another type; STRING, or with a logical type. Raises Misfit, ValueError."""
    if target.logical is None:
        assert target == STRING
        return bytes.fromhex(value).decode() if source.logical is Logical.BYTES else value
    if target.logical is Logical.BYTES and source == STRING:
        return str(value).encode().hex()
    if source.kind is not Kind.STRING or source.logical in (Logical.UUID, Logical.BYTES):
        return canonical_of(target, part_of(source, value))  # to JSON
    if target.logical is Logical.UUID and source == STRING:
        return canonical_of(target, str(value).strip())
    return canonical(target, value)

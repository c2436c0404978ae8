"""Functions of strings: per distinct value where one argument varies and the others are literals, else
row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.language.evaluation.vector import (
    Array,
    Vector,
    but_not,
    either,
    from_texts,
    height,
    over_dictionary,
    spread,
    strict,
    texts,
)
from engine.model.types import BIGINT, BOOLEAN, STRING, Kind, Type

BLANKS = " "
STRING_BYTES_MAX = 1 << 20


def lower(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """LOWER."""
    return over_dictionary(arguments[0], STRING, lambda strings: (pc.utf8_lower(strings), None))


def upper(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """UPPER."""
    return over_dictionary(arguments[0], STRING, lambda strings: (pc.utf8_upper(strings), None))


def length(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """LENGTH in characters."""
    return over_dictionary(
        arguments[0], BIGINT, lambda strings: (pc.utf8_length(strings).to_numpy(False).astype(np.int64), None)
    )


def _trimmer(method: Callable[[str, str], str]) -> Callable[[Sequence[Vector], Type, int], Vector]:
    def trim_any(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
        return per_value(
            arguments, STRING, lambda s, characters=BLANKS: method(s, characters) if characters else s
        )

    return trim_any


trim = _trimmer(str.strip)
ltrim = _trimmer(str.lstrip)
rtrim = _trimmer(str.rstrip)


def replace(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """REPLACE; an error where the result is longer than 1 MiB."""

    def one(s: str, old: str, new: str) -> str | None:
        if not old:
            return s
        if len(new) > len(old) and len(s) + s.count(old) * (len(new) - len(old)) > STRING_BYTES_MAX:
            return None
        return s.replace(old, new)

    return per_value(arguments, STRING, one)


def starts_with(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """STARTS_WITH."""
    return per_value(arguments, BOOLEAN, str.startswith)


def position(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """POSITION, from 1; 0 where there is none."""
    return per_value(arguments, BIGINT, lambda part, s: s.find(part) + 1)


def substring(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """As PostgreSQL: positions count from 1 and may lie outside; a negative length is an error."""

    def one(s: str, start: int, size: int | None = None) -> str | None:
        if size is None:
            return s[max(start - 1, 0) :]
        if size < 0:
            return None
        return s[max(start - 1, 0) : max(start - 1 + size, 0)]

    return per_value(arguments, STRING, one)


def per_value(arguments: Sequence[Vector], type_: Type, one: Callable[..., Any]) -> Vector:
    """Apply a function of plain values; None from it is an error. Once per distinct value where only one
    argument varies.
    """
    varying = [place for place, argument in enumerate(arguments) if len(argument.values) != 1]
    if len(varying) <= 1:
        place = varying[0] if varying else 0
        others = [None if at == place else _only(argument) for at, argument in enumerate(arguments)]
        usable = all(at == place or argument.unusable is None for at, argument in enumerate(arguments))
        if usable and arguments[place].type.kind is Kind.STRING:

            def over(strings: pa.StringArray) -> tuple[Any, Array | None]:
                values = [one(*[*others[:place], s, *others[place + 1 :]]) for s in strings.to_pylist()]
                return _collect(values, type_)

            return over_dictionary(arguments[place], type_, over)
    size = height(arguments)
    unusable: Array | None = None
    for argument in arguments:
        unusable = either(unusable, argument.unusable)
    skip = np.zeros(size, np.bool_) if unusable is None else spread(unusable, size)
    lists = [_values(argument, size) for argument in arguments]
    filler = "" if type_.kind is Kind.STRING else 0
    results = [
        filler if skipped else one(*row) for skipped, row in zip(skip, zip(*lists, strict=True), strict=True)
    ]
    values, error = _collect(results, type_)
    if type_.kind is Kind.STRING:
        return from_texts(arguments, type_, values, error)
    return strict(arguments, type_, values, error)


def _only(vector: Vector) -> Any:
    """The value of a vector that has one."""
    if len(vector.values) != 1 or (vector.unusable is not None and bool(vector.unusable.any())):
        return None
    return _values(vector, 1)[0]


def _values(vector: Vector, size: int) -> list[Any]:
    if vector.type.kind is Kind.STRING:
        strings: list[Any] = texts(vector).to_pylist()
        return strings if len(strings) == size else strings * size
    values: list[Any] = spread(vector.values, size).tolist()
    return values


def _collect(results: list[Any], type_: Type) -> tuple[Any, Array | None]:
    wrong = np.array([result is None for result in results], np.bool_)
    if type_.kind is Kind.STRING:
        return pa.array(["" if result is None else result for result in results], pa.string()), (
            wrong if wrong.any() else None
        )
    values = np.array([0 if result is None else result for result in results], type_.dtype)
    return values, wrong if wrong.any() else None


def join(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """``||``: NULL where one is NULL; an error where the result is longer than 1 MiB."""
    return _joined(arguments, skip_nulls=False)


def concat(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """NULLs count as nothing; an error where an argument is one."""
    return _joined(arguments, skip_nulls=True)


def _joined(arguments: Sequence[Vector], skip_nulls: bool) -> Vector:
    varying = [argument for argument in arguments if len(argument.values) != 1]
    size = height(arguments)
    if len(varying) == 1 and all(a.unusable is None for a in arguments if len(a.values) == 1):
        place = next(at for at, argument in enumerate(arguments) if argument is varying[0])
        before = "".join(_only(argument) for argument in arguments[:place])
        after = "".join(_only(argument) for argument in arguments[place + 1 :])
        if varying[0].null is None or not skip_nulls:

            def over(strings: pa.StringArray) -> tuple[Any, Array | None]:
                joined = pc.binary_join_element_wise(before, strings, after, "")
                return joined, _too_long(joined)

            return over_dictionary(varying[0], STRING, over)
    pieces = []
    for argument in arguments:
        strings = texts(argument).fill_null("")
        pieces.append(strings if len(strings) == size else pa.repeat(strings[0], size))
    joined = pc.binary_join_element_wise(*pieces, "")
    error = _too_long(joined)
    if not skip_nulls:
        return from_texts(arguments, STRING, joined, error)
    wrong = error
    for argument in arguments:
        wrong = either(wrong, argument.error)
    result = from_texts([], STRING, joined)
    return Vector(STRING, result.values, None, wrong, result.dictionary)


def concat_with(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """CONCAT_WS: NULL where the separator is, other NULLs are left out; an error where an argument is one,
    and where the result is longer than 1 MiB.
    """
    size = height(arguments)
    separators, *parts = (_values(argument, size) for argument in arguments)
    joined = pa.array(
        [
            "" if separator is None else separator.join(part for part in row if part is not None)
            for separator, row in zip(separators, zip(*parts, strict=True), strict=True)
        ],
        pa.string(),
    )
    wrong = _too_long(joined)
    for argument in arguments:
        wrong = either(wrong, argument.error)
    null = arguments[0].null
    result = from_texts([], STRING, joined, wrong)
    return Vector(STRING, result.values, null, but_not(result.error, null), result.dictionary)


def _too_long(strings: pa.StringArray) -> Array | None:
    beyond = (
        pc.greater(pc.binary_length(strings), STRING_BYTES_MAX)
        .fill_null(False)
        .to_numpy(zero_copy_only=False)
    )
    return beyond if beyond.any() else None

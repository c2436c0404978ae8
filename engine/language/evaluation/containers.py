"""Functions of ARRAY, STRUCT and MAP. Elements are equal where their texts are: NaN equals NaN."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from engine.language.evaluation.casts import cast
from engine.language.evaluation.nested import ERROR, object_of, rowwise
from engine.language.evaluation.vector import Vector, constant, texts
from engine.model.nested.values import parsed, part_of, text_of, value_of
from engine.model.types import BIGINT, BOOLEAN, STRING, Kind, Type, array

ELEMENTS_MAX = 10_000


def _part(type_: Type, value: Any) -> Any:
    return None if value is None else part_of(type_, value)


def _value(type_: Type, part: Any) -> Any:
    return None if part is None else value_of(type_, part)


def _element(vector: Vector) -> Type:
    assert vector.type.element is not None
    return vector.type.element


def _place(element: Type, parts: list[Any], wanted: Any) -> int | None:
    """Where the first part stands that equals a value, from 0."""
    part = part_of(element, wanted)
    if element.is_nested:  # to Python 1 equals True
        parts, part = [None if one is None else text_of(one) for one in parts], text_of(part)
    return parts.index(part) if part in parts else None


def _bounded(parts: list[Any]) -> Any:
    return text_of(parts) if len(parts) <= ELEMENTS_MAX else ERROR


def make_array(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """ARRAY[...]."""
    assert type_.element is not None
    element = type_.element
    return rowwise(
        arguments,
        type_,
        lambda *values: text_of([_part(element, value) for value in values]),
        is_strict=False,
    )


def make_struct(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """STRUCT(value AS name, ...): names, which are literals, and values in turn."""
    types = [member for _, member in type_.members]

    def one(*values: Any) -> str:
        parts = map(_part, types, values[1::2])
        return text_of(dict(zip(values[::2], parts, strict=True)))

    return rowwise(arguments, type_, one, is_strict=False)


def make_map(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """MAP(key, value, ...): an error where a key is NULL or stands twice."""
    assert type_.element is not None
    element = type_.element

    def one(*values: Any) -> Any:
        return object_of(values[::2], (_part(element, value) for value in values[1::2]))

    return rowwise(arguments, type_, one, is_strict=False)


def subscript(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """``a[1]``, ``m['key']``."""

    def of_array(value: str, place: int) -> Any:
        parts = parsed(value)
        at = place - 1 if place > 0 else len(parts) + place
        return _value(type_, parts[at]) if place and 0 <= at < len(parts) else None

    def of_map(value: str, key: str) -> Any:
        return _value(type_, parsed(value).get(key))

    return rowwise(arguments, type_, of_map if arguments[1].type == STRING else of_array)


def member(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """``s.name``."""
    return rowwise(arguments, type_, lambda value, name: _value(type_, parsed(value)[name]))


def cut(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """``a[first:last]``, both included; NULL is the beginning, or the end."""

    def one(value: str | None, first: int | None, last: int | None) -> Any:
        if value is None:
            return None
        parts = parsed(value)
        begin = 1 if first is None else first if first >= 0 else len(parts) + first + 1
        end = len(parts) if last is None else last if last >= 0 else len(parts) + last + 1
        return text_of(parts[max(begin, 1) - 1 : max(end, 0)])

    return rowwise(arguments, type_, one, is_strict=False)


def cardinality(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """CARDINALITY of an ARRAY or a MAP."""
    return rowwise(arguments, BIGINT, lambda value: len(parsed(value)))


def contains(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """ARRAY_CONTAINS."""
    element = _element(arguments[0])
    return rowwise(
        arguments, BOOLEAN, lambda value, wanted: _place(element, parsed(value), wanted) is not None
    )


def is_any(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """``x = ANY(a)``: NULL where no element equals and one is NULL."""
    element = _element(arguments[0])

    def one(value: str, wanted: Any) -> bool | None:
        parts = parsed(value)
        if _place(element, parts, wanted) is not None:
            return True
        return None if None in parts else False

    return rowwise(arguments, BOOLEAN, one)


def position(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """ARRAY_POSITION: from 1, NULL where there is none."""
    element = _element(arguments[0])

    def one(value: str, wanted: Any) -> int | None:
        found = _place(element, parsed(value), wanted)
        return None if found is None else found + 1

    return rowwise(arguments, BIGINT, one)


def concat(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """ARRAY_CONCAT."""
    return rowwise(
        arguments, type_, lambda *values: _bounded([one for value in values for one in parsed(value)])
    )


def append(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """ARRAY_APPEND: NULL where the array is."""
    element = _element(arguments[0])

    def one(value: str | None, new: Any) -> Any:
        return None if value is None else _bounded([*parsed(value), _part(element, new)])

    return rowwise(arguments, type_, one, is_strict=False)


def prepend(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """ARRAY_PREPEND(x, a)."""
    element = _element(arguments[1])

    def one(new: Any, value: str | None) -> Any:
        return None if value is None else _bounded([_part(element, new), *parsed(value)])

    return rowwise(arguments, type_, one, is_strict=False)


def distinct(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """ARRAY_DISTINCT: each value once, where it first stands."""

    def one(value: str) -> str:
        return text_of(list({text_of(part): part for part in parsed(value)}.values()))

    return rowwise(arguments, type_, one)


def split(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """STRING_TO_ARRAY; an empty delimiter gives the text alone, an empty text no element."""

    def one(text: str, delimiter: str) -> Any:
        parts = text.split(delimiter) if delimiter else [text]
        return _bounded(parts if text else [])

    return rowwise(arguments, array(STRING), one)


def joined(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """ARRAY_TO_STRING: NULLs are passed over, or stand as the third argument."""
    element = _element(arguments[0])
    write = _writer(element)

    def one(value: str, delimiter: str, null: str | None = None) -> str:
        parts = [null if part is None else write(part) for part in parsed(value)]
        return delimiter.join(part for part in parts if part is not None)

    return rowwise(arguments, STRING, one)


def _writer(element: Type) -> Callable[[Any], str]:
    """How an element that is not NULL is cast to STRING."""
    if element == STRING:
        return str
    if element.is_nested:
        return text_of

    def write(part: Any) -> str:
        if element.kind is Kind.DECIMAL:
            return str(part)
        return str(texts(cast(constant(value_of(element, part), element), STRING, lenient=False))[0].as_py())

    return write


def map_of_entries(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """MAP_FROM_ENTRIES."""
    element = arguments[0].type.element
    assert element is not None
    (key, _), (value, _) = element.members

    def one(text: str) -> Any:
        parts = parsed(text)
        if any(part is None or part[key] is None for part in parts):
            return ERROR
        return text_of({part[key]: part[value] for part in parts})

    return rowwise(arguments, type_, one)


def map_keys(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """MAP_KEYS, in order."""
    return rowwise(arguments, type_, lambda value: text_of(sorted(parsed(value))))


def map_values(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """MAP_VALUES, in the order of the keys."""

    def one(value: str) -> str:
        parts = parsed(value)
        return text_of([parts[name] for name in sorted(parts)])

    return rowwise(arguments, type_, one)


def has_key(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """MAP_CONTAINS_KEY."""
    return rowwise(arguments, BOOLEAN, lambda value, key: key in parsed(value))

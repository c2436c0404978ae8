"""Functions of JSON. A path or a key that leads nowhere gives NULL, and so does null."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from engine.language.evaluation.nested import ERROR, object_of, rowwise
from engine.language.evaluation.vector import Vector
from engine.model.nested.canonical import Misfit, canonical, normalise
from engine.model.nested.values import parsed, part_of, text_of
from engine.model.paths import parse_names, parse_path, value_at, value_named
from engine.model.types import BOOLEAN, JSON, Type

Kernel = Callable[[Sequence[Vector], Type, int], Vector]

_parsed_path = lru_cache(maxsize=1_024)(parse_path)
_parsed_names = lru_cache(maxsize=1_024)(parse_names)


def as_text(part: Any) -> str | None:
    """A string as it is, other parts as JSON."""
    return part if part is None or isinstance(part, str) else text_of(part)


def _as_json(part: Any) -> str | None:
    return None if part is None else text_of(part)


def _member(write: Callable[[Any], Any]) -> Kernel:
    def kernel(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
        return rowwise(arguments, type_, lambda value, key: write(value_at((key,), parsed(value))))

    return kernel


def _at_path(write: Callable[[Any], Any]) -> Kernel:
    def kernel(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
        def one(value: str, path: str = "$") -> Any:
            return write(value_at(_parsed_path(path), parsed(value)))

        return rowwise(arguments, type_, one)

    return kernel


def _at_names(write: Callable[[Any], Any]) -> Kernel:
    def kernel(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
        def one(value: str, path: str) -> Any:
            return write(value_named(_parsed_names(path), parsed(value)))

        return rowwise(arguments, type_, one)

    return kernel


def _scalar(part: Any) -> str | None:
    return None if isinstance(part, dict | list) else as_text(part)


def _length(part: Any) -> int | None:
    return len(part) if isinstance(part, list) else None


def _type(part: Any) -> str | None:
    if part is None:
        return None
    if isinstance(part, dict | list):
        return "object" if isinstance(part, dict) else "array"
    return "boolean" if isinstance(part, bool) else "string" if isinstance(part, str) else "number"


def _keys(part: Any) -> str | None:
    return text_of(sorted(part)) if isinstance(part, dict) else None


member = _member(_as_json)
member_text = _member(as_text)
at_names = _at_names(_as_json)
text_at_names = _at_names(as_text)
extract = _at_path(_as_json)
extract_text = _at_path(as_text)
value = _at_path(_scalar)
array_length = _at_path(_length)
type_name = _at_path(_type)
keys = _at_path(_keys)


def exists(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """JSON_EXISTS: also where null stands."""

    def one(text: str, path: str) -> bool:
        return value_at(_parsed_path(path), parsed(text), ERROR) is not ERROR

    return rowwise(arguments, BOOLEAN, one)


def is_valid(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """IS JSON: whether CAST(s AS JSON) has a value; null is JSON too."""

    def one(text: str) -> bool:
        try:
            canonical(JSON, text)
        except Misfit:
            return False
        return True

    return rowwise(arguments, BOOLEAN, one)


def _inside(type_: Type, value: Any) -> Any:
    """A value as JSON has it."""
    return None if value is None else normalise(JSON, part_of(type_, value))


def json_object(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """JSON_OBJECT: names and values in turn; an error where a name is NULL or stands twice."""
    types = [argument.type for argument in arguments]

    def one(*values: Any) -> Any:
        return object_of(values[::2], map(_inside, types[1::2], values[1::2]))

    return rowwise(arguments, JSON, one, is_strict=False)


def json_array(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """JSON_ARRAY."""
    types = [argument.type for argument in arguments]
    return rowwise(arguments, JSON, lambda *values: text_of([*map(_inside, types, values)]), is_strict=False)


def to_json(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """TO_JSON."""
    source = arguments[0].type
    return rowwise(arguments, JSON, lambda value: text_of(_inside(source, value)))

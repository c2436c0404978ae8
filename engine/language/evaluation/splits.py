"""Parts of strings between delimiters, and how often a part stands in a string."""

from __future__ import annotations

from collections.abc import Sequence

from engine.language.evaluation.text import per_value
from engine.language.evaluation.vector import Vector, but_not, either
from engine.model.types import BIGINT, STRING, Type


def split_part(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """SPLIT_PART: from 1, or from -1 at the end; an empty string where there is no such part; an error for
    0.
    """

    def one(s: str, delimiter: str, place: int) -> str | None:
        if place == 0:
            return None
        parts = s.split(delimiter) if delimiter else [s]
        at = place - 1 if place > 0 else len(parts) + place
        return parts[at] if 0 <= at < len(parts) else ""

    return per_value(arguments, STRING, one)


def split_index(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """SPLIT_INDEX: from 0; NULL where there is no such part."""

    def one(s: str, delimiter: str, place: int) -> str | None:
        parts = s.split(delimiter) if delimiter else [s]
        return parts[place] if 0 <= place < len(parts) else None

    return missing_as_null(per_value(arguments, STRING, one), arguments)


def count_char(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """COUNT_CHAR: how often, without overlaps; 0 for an empty part."""
    return per_value(arguments, BIGINT, lambda s, part: s.count(part) if part else 0)


def missing_as_null(result: Vector, arguments: Sequence[Vector]) -> Vector:
    """A strict result whose own errors mean that there is no value: NULL there."""
    given = None
    for argument in arguments:
        given = either(given, argument.error)
    null = either(result.null, result.error if given is None else but_not(result.error, given))
    error = None if given is None else but_not(given, null)
    return Vector(result.type, result.values, null, error, result.dictionary)

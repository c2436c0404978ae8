"""Functions that pad, cut, turn and search strings. As PostgreSQL's, but that errors are values."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from engine.language.evaluation.text import per_value
from engine.language.evaluation.vector import Vector
from engine.model.types import BIGINT, BOOLEAN, STRING, Type

CHARACTERS_MAX = 4_096
"""The longest string that padding and repeating make: a short statement makes little of each row."""
_WORD = re.compile(r"[^\W_]+")
CODE_POINT_MAX = 0x10FFFF
SURROGATES = range(0xD800, 0xE000)


def left(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """LEFT."""
    return per_value(arguments, STRING, lambda s, size: s[:size])


def right(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """RIGHT."""
    return per_value(arguments, STRING, lambda s, size: s[-size:] if size else "")


def _filling(s: str, size: int, fill: str) -> str | None:
    """What is missing up to ``size`` characters; None where that is more than a result may have."""
    missing = size - len(s)
    if missing <= 0 or not fill:
        return ""
    return (fill * (missing // len(fill) + 1))[:missing] if size <= CHARACTERS_MAX else None


def _padder(joined: Callable[[str, str], str]) -> Callable[[Sequence[Vector], Type, int], Vector]:
    """joined: makes one of a string and what fills it up. An error where it adds characters up to more than
    CHARACTERS_MAX.
    """

    def one(s: str, size: int, fill: str = " ") -> str | None:
        filling = _filling(s, size, fill)
        return None if filling is None else joined(s, filling)[: max(size, 0)]

    return lambda arguments, type_, n: per_value(arguments, STRING, one)


left_padded = _padder(lambda s, filling: filling + s)
right_padded = _padder(lambda s, filling: s + filling)


def repeated(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """REPEAT; an error where more than one make more than CHARACTERS_MAX."""

    def one(s: str, times: int) -> str | None:
        return s * max(times, 0) if times <= 1 or len(s) * times <= CHARACTERS_MAX else None

    return per_value(arguments, STRING, one)


def reversed_(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """REVERSE, by code points."""
    return per_value(arguments, STRING, lambda s: s[::-1])


def initcap(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """INITCAP: case goes character by character, and stays where it would make several of one."""
    return per_value(
        arguments,
        STRING,
        lambda s: _WORD.sub(lambda word: _upper(word.group()[0]) + _lower(word.group()[1:]), s),
    )


def _upper(text: str) -> str:
    return "".join(turned if len(turned := c.upper()) == 1 else c for c in text)


def _lower(text: str) -> str:
    return "".join(turned if len(turned := c.lower()) == 1 else c for c in text)


def translated(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """TRANSLATE: of a character that stands twice in ``from``, the first counts."""

    def one(s: str, old: str, new: str) -> str:
        table: dict[int, str | None] = {}
        for place, character in enumerate(old):
            table.setdefault(ord(character), new[place] if place < len(new) else None)
        return s.translate(table)

    return per_value(arguments, STRING, one)


def contains(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """CONTAINS."""
    return per_value(arguments, BOOLEAN, lambda s, part: part in s)


def ends_with(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """ENDS_WITH."""
    return per_value(arguments, BOOLEAN, str.endswith)


def octets(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """OCTET_LENGTH."""
    return per_value(arguments, BIGINT, lambda s: len(s.encode()))


def code_point(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """ASCII."""
    return per_value(arguments, BIGINT, lambda s: ord(s[0]) if s else 0)


def character(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """CHR."""
    return per_value(
        arguments,
        STRING,
        lambda point: chr(point) if 0 < point <= CODE_POINT_MAX and point not in SURROGATES else None,
    )

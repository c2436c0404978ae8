"""LIKE and ILIKE, once per distinct string."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from engine.language.evaluation.vector import Array, Vector, over_dictionary
from engine.model.expressions import Like
from engine.model.types import BOOLEAN

ANY_RUN, ANY_ONE = object(), object()


def like(operand: Vector, expression: Like) -> Vector:
    """BOOLEAN, strict."""

    def over(strings: pa.StringArray) -> tuple[Any, Array | None]:
        found = matches(strings, expression.pattern, expression.escape, ignore_case=expression.ignore_case)
        return found.to_numpy(zero_copy_only=False), None

    return over_dictionary(operand, BOOLEAN, over)


def matches(
    strings: pa.StringArray, pattern: str, escape: str | None = None, *, ignore_case: bool = False
) -> pa.BooleanArray:
    """Whether each string is like a pattern. O(bytes), whatever the pattern.

    >>> matches(pa.array(["orders", "ORDER_S"]), "ord%s", ignore_case=True).to_pylist()
    [True, True]
    """
    return _match(strings, pattern_parts(pattern, escape), ignore_case)


def pattern_parts(pattern: str, escape: str | None) -> list[object]:
    """Plain runs as str, ANY_RUN for %, ANY_ONE for _; two % in a row are one."""
    parts: list[object] = []
    plain: list[str] = []
    place = 0

    def close() -> None:
        if plain:
            parts.append("".join(plain))
            plain.clear()

    while place < len(pattern):
        char = pattern[place]
        if char == escape:
            place += 1
            plain.append(pattern[place : place + 1])
        elif char == "%":
            close()
            if not parts or parts[-1] is not ANY_RUN:
                parts.append(ANY_RUN)
        elif char == "_":
            close()
            parts.append(ANY_ONE)
        else:
            plain.append(char)
        place += 1
    close()
    return parts


def _match(strings: pa.StringArray, parts: list[object], ignore_case: bool) -> pa.BooleanArray:
    match parts:
        case [] if not ignore_case:
            return pc.equal(strings, "")
        case [str(plain)] if not ignore_case:
            return pc.equal(strings, plain)
        case [str(plain), last] if last is ANY_RUN and not ignore_case:
            return pc.starts_with(strings, plain)
        case [first, str(plain)] if first is ANY_RUN and not ignore_case:
            return pc.ends_with(strings, plain)
        case [first, str(plain), last] if first is ANY_RUN and last is ANY_RUN and not ignore_case:
            return pc.match_substring(strings, plain)
    return pc.match_substring_regex(strings, _regex(parts), ignore_case=ignore_case)


def _regex(parts: list[object]) -> str:
    """RE2, whose time is linear in the string whatever the pattern; ``(?s)``: a dot is any character."""
    words = [".*" if part is ANY_RUN else "." if part is ANY_ONE else _quoted(str(part)) for part in parts]
    return r"(?s)\A" + "".join(words) + r"\z"


def _quoted(plain: str) -> str:
    return "".join(char if char.isalnum() or ord(char) > 127 else f"\\x{{{ord(char):x}}}" for char in plain)

"""Regular expressions, by RE2: time linear in the string, whatever the pattern. Once per distinct string."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.language.evaluation.splits import missing_as_null
from engine.language.evaluation.text import STRING_BYTES_MAX
from engine.language.evaluation.vector import Array, Vector, over_dictionary
from engine.model.batch import Int64Array
from engine.model.types import BIGINT, BOOLEAN, STRING, Type

PATTERN_CHARACTERS_MAX = 1_000
GROUPS_MAX = 100
FLAGS = "gi"
"""What REGEXP_REPLACE may do otherwise: replace each match, match in any case."""
WORK_BYTES_MAX = 1 << 24
"""A string that may become larger while matches are replaced is an error beforehand."""
_GROUP_NAME = re.compile(r"\?P?<[A-Za-z_]\w*>")


def problem(pattern: str, group: int = 0) -> str | None:
    """Why a pattern is not supported, or has no such group; None if it is."""
    if len(pattern) > PATTERN_CHARACTERS_MAX:
        return f"this pattern is longer than {PATTERN_CHARACTERS_MAX} characters"
    try:
        pc.match_substring_regex(pa.array([""], pa.string()), pattern)
        named, groups = _with_names(pattern)
        if groups > GROUPS_MAX:
            return f"this pattern has more than {GROUPS_MAX} groups"
        pc.extract_regex(pa.array([""], pa.string()), named)
    except pa.ArrowInvalid as error:
        reason = str(error).rpartition("expression: ")[2]
        return f"this is not a regular expression: {reason[:100]}"
    if not 0 <= group <= groups:
        return f"this pattern has no group {group}, its last is {groups}"
    return None


def regexp_like(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """REGEXP_LIKE: whether the pattern matches anywhere."""
    pattern = _text(arguments[1])

    def over(strings: pa.StringArray) -> tuple[Any, Array | None]:
        return pc.match_substring_regex(strings, pattern).to_numpy(zero_copy_only=False), None

    return over_dictionary(arguments[0], BOOLEAN, over)


def similar(pattern: str) -> str:
    r"""The regular expression of a pattern of SIMILAR TO, which is about the whole of a string: % is any run,
    _ any character, and a backslash makes the next character plain.

    >>> similar(r"(a|b)%\_")
    '(?s)^(?:(a|b).*_)$'
    """
    parts, place, in_set = [], 0, False
    while place < len(pattern):
        char = pattern[place]
        if char == "\\" and place + 1 < len(pattern):
            place += 1
            parts.append(re.escape(pattern[place]))
        elif in_set or char not in "%_.^$":
            parts.append(char)
            in_set = char != "]" if in_set else char == "["
        else:
            parts.append({"%": ".*", "_": "."}.get(char, f"\\{char}"))
        place += 1
    return f"(?s)^(?:{''.join(parts)})$"


def similar_to(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """SIMILAR TO."""
    pattern = similar(_text(arguments[1]))

    def over(strings: pa.StringArray) -> tuple[Any, Array | None]:
        return pc.match_substring_regex(strings, pattern).to_numpy(zero_copy_only=False), None

    return over_dictionary(arguments[0], BOOLEAN, over)


def regexp_extract(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """REGEXP_EXTRACT: a group of the first match, 0 the whole of it; NULL where nothing matches."""
    group = 0 if len(arguments) == 2 else int(arguments[2].values[0])
    pattern, _ = _with_names(_text(arguments[1]))

    def over(strings: pa.StringArray) -> tuple[Any, Array | None]:
        matches = pc.extract_regex(strings, pattern)
        missing = ~np.asarray(matches.is_valid().to_numpy(zero_copy_only=False))
        found = pc.struct_field(matches, [group]).fill_null("")
        return found, missing if missing.any() else None

    return missing_as_null(over_dictionary(arguments[0], STRING, over), arguments[:1])


def regexp_count(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """REGEXP_COUNT: how often the pattern matches, without overlaps."""
    pattern = _text(arguments[1])

    def over(strings: pa.StringArray) -> tuple[Any, Array | None]:
        return _matches(strings, pattern), None

    return over_dictionary(arguments[0], BIGINT, over)


def regexp_replace(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """REGEXP_REPLACE: the first match or, with the flag g, each; an error where the result is longer than
    1 MiB.
    """
    pattern, new = _text(arguments[1]), _text(arguments[2])
    flags = _text(arguments[3]) if len(arguments) == 4 else ""
    if "i" in flags:
        pattern = f"(?i){pattern}"
    most = -1 if "g" in flags else 1

    def over(strings: pa.StringArray) -> tuple[Any, Array | None]:
        sizes = pc.binary_length(strings).to_numpy(zero_copy_only=False).astype(np.int64)
        times = _matches(strings, pattern) if most < 0 else 1
        added = times * len(new.encode()) + new.count("\\") * sizes
        wrong = sizes + added > WORK_BYTES_MAX
        if wrong.any():
            strings = pc.if_else(pa.array(wrong), "", strings)
        replaced = pc.replace_substring_regex(strings, pattern, new, max_replacements=most)
        wrong |= pc.binary_length(replaced).to_numpy(zero_copy_only=False) > STRING_BYTES_MAX
        return replaced, wrong if wrong.any() else None

    return over_dictionary(arguments[0], STRING, over)


def replacement_problem(pattern: str, new: str) -> str | None:
    """Why ``new`` cannot replace matches of a pattern, None if it can."""
    try:
        pc.replace_substring_regex(pa.array([""], pa.string()), pattern, new)
    except pa.ArrowInvalid:
        return "this names a group that the pattern does not have, or has a lone backslash"
    return None


def _matches(strings: pa.StringArray, pattern: str) -> Int64Array:
    """How often a pattern matches in each, int64[n]: by how much each grows when every match gets a
    character more. Arrow's own count goes wrong where a match may be empty.
    """
    longer = pc.replace_substring_regex(strings, pattern, r"\0.")
    lengths = (pc.utf8_length(array).to_numpy(zero_copy_only=False) for array in (longer, strings))
    grown, before = lengths
    return np.asarray(grown - before, np.int64)


def _text(argument: Vector) -> str:
    assert argument.dictionary is not None
    return str(argument.dictionary[int(argument.values[0])].as_py())


@lru_cache(maxsize=512)
def _with_names(pattern: str) -> tuple[str, int]:
    """The pattern with all its groups named g1, g2, ... inside one named g0, and how many there are."""
    out: list[str] = []
    groups = place = 0
    in_class = False
    while place < len(pattern):
        char = pattern[place]
        if pattern.startswith("\\Q", place) and not in_class:
            end = pattern.find("\\E", place)
            end = len(pattern) if end < 0 else end + 2
            out.append(pattern[place:end])
            place = end
            continue
        if char == "\\":
            out.append(pattern[place : place + 2])
            place += 2
            continue
        if in_class:
            if pattern.startswith("[:", place) and (end := pattern.find(":]", place)) > 0:
                out.append(pattern[place : end + 2])
                place = end + 2
                continue
            in_class = char != "]"
        elif char == "[":
            in_class = True
            opening = re.compile(r"\[\^?\]?").match(pattern, place)
            assert opening is not None
            out.append(opening.group())  # a bracket that closes stands for itself at the beginning
            place = opening.end()
            continue
        elif char == "(":
            name = _GROUP_NAME.match(pattern, place + 1)
            if name is not None or not pattern.startswith("?", place + 1):
                groups += 1
                out.append(f"(?P<g{groups}>")
                place = name.end() if name is not None else place + 1
                continue
        out.append(char)
        place += 1
    return f"(?P<g0>{''.join(out)})", groups

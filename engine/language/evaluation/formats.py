"""Timestamps as text, by a pattern: in the letters of Java (DATE_FORMAT), of PostgreSQL (TO_CHAR) or of C
(STRFTIME).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

import numpy as np
import pyarrow as pa

from engine.language.evaluation.vector import Vector, from_texts, strict
from engine.language.instants import DAY_MS, DAY_NAMES, MONTH_NAMES
from engine.model.types import STRING, Type

PATTERN_CHARACTERS_MAX = 200


@dataclass(frozen=True, slots=True)
class PatternPart:
    """One part of a pattern. unit_ms: what it changes with; text: of a moment and its milliseconds."""

    unit_ms: int
    text: Callable[[datetime, int], str]


def _padded(width: int, value: Callable[[datetime], int]) -> Callable[[datetime, int], str]:
    return lambda moment, ms: f"{value(moment):0{width}d}"


def _half(moment: datetime) -> int:
    return moment.hour % 12 or 12


def _name(names: Sequence[str], place: Callable[[datetime], int], size: int | None = None) -> PatternPart:
    """A name, or its first letters."""
    return PatternPart(DAY_MS, lambda moment, ms: names[place(moment)][:size])


def _number(width: int, value: Callable[[datetime], int]) -> PatternPart:
    """A number of a day."""
    return PatternPart(DAY_MS, _padded(width, value))


_MONTH, _MONTH_3 = _name(MONTH_NAMES, lambda m: m.month - 1), _name(MONTH_NAMES, lambda m: m.month - 1, 3)
_WEEKDAY, _WEEKDAY_3 = _name(DAY_NAMES, datetime.weekday), _name(DAY_NAMES, datetime.weekday, 3)
_DAY_OF_YEAR = _padded(3, lambda m: m.timetuple().tm_yday)
_HOUR, _MINUTE, _SECOND = 3_600_000, 60_000, 1_000

#: Java's letters.
DATE_FORMAT: dict[str, PatternPart] = {
    "yyyy": PatternPart(DAY_MS, _padded(4, lambda m: m.year)),
    "yy": PatternPart(DAY_MS, _padded(2, lambda m: m.year % 100)),
    "MMMM": _MONTH,
    "MMM": _MONTH_3,
    "MM": PatternPart(DAY_MS, _padded(2, lambda m: m.month)),
    "M": PatternPart(DAY_MS, _padded(1, lambda m: m.month)),
    "dd": PatternPart(DAY_MS, _padded(2, lambda m: m.day)),
    "d": PatternPart(DAY_MS, _padded(1, lambda m: m.day)),
    "DDD": PatternPart(DAY_MS, _DAY_OF_YEAR),
    "EEEE": _WEEKDAY,
    "EEE": _WEEKDAY_3,
    "HH": PatternPart(_HOUR, _padded(2, lambda m: m.hour)),
    "H": PatternPart(_HOUR, _padded(1, lambda m: m.hour)),
    "hh": PatternPart(_HOUR, _padded(2, _half)),
    "h": PatternPart(_HOUR, _padded(1, _half)),
    "mm": PatternPart(_MINUTE, _padded(2, lambda m: m.minute)),
    "m": PatternPart(_MINUTE, _padded(1, lambda m: m.minute)),
    "ss": PatternPart(_SECOND, _padded(2, lambda m: m.second)),
    "s": PatternPart(_SECOND, _padded(1, lambda m: m.second)),
    "SSS": PatternPart(1, lambda m, ms: f"{ms:03d}"),
    "a": PatternPart(_HOUR, lambda m, ms: "AM" if m.hour < 12 else "PM"),
}
#: PostgreSQL's, in any case; that of a name is the name's.
TO_CHAR: dict[str, PatternPart] = {
    "YYYY": DATE_FORMAT["yyyy"],
    "YY": DATE_FORMAT["yy"],
    "MM": DATE_FORMAT["MM"],
    "Q": _number(1, lambda m: (m.month + 2) // 3),
    "IYYY": _number(4, lambda m: m.isocalendar().year),
    "IW": _number(2, lambda m: m.isocalendar().week),
    "ID": _number(1, datetime.isoweekday),
    "DDD": PatternPart(DAY_MS, _DAY_OF_YEAR),
    "DD": DATE_FORMAT["dd"],
    "HH24": DATE_FORMAT["HH"],
    "HH12": DATE_FORMAT["hh"],
    "HH": DATE_FORMAT["hh"],
    "MI": DATE_FORMAT["mm"],
    "SS": DATE_FORMAT["ss"],
    "MS": DATE_FORMAT["SSS"],
    "AM": DATE_FORMAT["a"],
    "PM": DATE_FORMAT["a"],
    "US": PatternPart(1, lambda m, ms: f"{ms * 1_000:06d}"),
    "FMMONTH": _MONTH,
    "MON": _MONTH_3,
    "FMDAY": _WEEKDAY,
    "DY": _WEEKDAY_3,
}
"""Names are as long as they are: PostgreSQL pads those that have no FM with blanks."""
_NAMES = ("FMMONTH", "MON", "FMDAY", "DY", "AM", "PM")
#: C's.
STRFTIME: dict[str, PatternPart] = {
    "%Y": DATE_FORMAT["yyyy"],
    "%y": DATE_FORMAT["yy"],
    "%m": DATE_FORMAT["MM"],
    "%-m": DATE_FORMAT["M"],
    "%d": DATE_FORMAT["dd"],
    "%-d": DATE_FORMAT["d"],
    "%H": DATE_FORMAT["HH"],
    "%-H": DATE_FORMAT["H"],
    "%I": DATE_FORMAT["hh"],
    "%-I": DATE_FORMAT["h"],
    "%M": DATE_FORMAT["mm"],
    "%-M": DATE_FORMAT["m"],
    "%S": DATE_FORMAT["ss"],
    "%-S": DATE_FORMAT["s"],
    "%p": DATE_FORMAT["a"],
    "%f": TO_CHAR["US"],
    "%g": DATE_FORMAT["SSS"],
    "%j": PatternPart(DAY_MS, _DAY_OF_YEAR),
    "%A": _WEEKDAY,
    "%a": _WEEKDAY_3,
    "%B": _MONTH,
    "%b": _MONTH_3,
    "%u": TO_CHAR["ID"],
    "%w": _number(1, lambda m: m.isoweekday() % 7),
    "%G": TO_CHAR["IYYY"],
    "%V": TO_CHAR["IW"],
}
_JAVA = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|(.)", re.DOTALL)
_C = re.compile(r"(%-?[A-Za-z])|%(%)|([^%]+|%)")
_POSTGRES = re.compile(
    r'"([^"]*)"|(MONTH|DAY)|(' + "|".join(sorted(TO_CHAR, key=len, reverse=True)) + r")|([A-Za-z]+)|(.)",
    re.DOTALL | re.IGNORECASE,
)


class UnknownPart(Exception):
    """A pattern holds letters that mean nothing, or a quote that does not end.

    reason: what is said of the pattern. hint: what to write instead, None for the letters that there are.
    """

    def __init__(self, reason: str, hint: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


def unknown_letters(part: str, more: str = "", hint: str | None = None) -> UnknownPart:
    """The error for letters without a meaning."""
    return UnknownPart(f"{part[:20]} in a pattern has no meaning{more}", hint)


def open_quote(quote: str) -> UnknownPart:
    """The error for text in quotes that does not end."""
    name, text = ("single", "''text''") if quote == "'" else ("double", '"text"')
    return UnknownPart(f"text in {name} quotes in a pattern does not end", f"write {text} in the pattern")


@lru_cache(maxsize=512)
def java_parts(pattern: str) -> tuple[PatternPart | str, ...]:
    """Raises UnknownPart."""
    parts: list[PatternPart | str] = []
    for match in _JAVA.finditer(pattern):
        found = match.group()
        if match.group(1) is not None:
            parts.append(match.group(1).replace("''", "'") if match.group(1) else "'")
        elif found == "'":
            raise open_quote(found)
        elif match.group(2) is None:
            parts.append(found)
        elif found in DATE_FORMAT:
            parts.append(DATE_FORMAT[found])
        else:
            raise unknown_letters(found)
    return tuple(parts)


@lru_cache(maxsize=512)
def postgres_parts(pattern: str) -> tuple[PatternPart | str, ...]:
    """Raises UnknownPart."""
    parts: list[PatternPart | str] = []
    for match in _POSTGRES.finditer(pattern):
        quoted, padded, known, letters, other = match.groups()
        if padded is not None:
            raise unknown_letters(padded, hint=f"write FM{padded}, a name without blanks behind it")
        if letters is not None:
            raise unknown_letters(letters)
        if other == '"':
            raise open_quote(other)
        parts.append(_spelt(known) if known is not None else quoted if quoted is not None else other)
    return tuple(parts)


def _spelt(letters: str) -> PatternPart:
    """A part in the case of its letters: ``FMMONTH`` gives MARCH, ``FMMonth`` March, ``FMmonth`` march."""
    part = TO_CHAR[letters.upper()]
    if letters.upper() not in _NAMES:
        return part
    name = letters[2:] if len(letters) > 3 else letters
    if name.isupper():
        return PatternPart(part.unit_ms, lambda moment, ms: part.text(moment, ms).upper())
    if name.islower():
        return PatternPart(part.unit_ms, lambda moment, ms: part.text(moment, ms).lower())
    return part


@lru_cache(maxsize=512)
def c_parts(pattern: str) -> tuple[PatternPart | str, ...]:
    """Raises UnknownPart."""
    parts: list[PatternPart | str] = []
    for match in _C.finditer(pattern):
        part, percent, other = match.groups()
        if other == "%" or (part is not None and part not in STRFTIME):
            raise unknown_letters(match.group())
        parts.append(percent or other if part is None else STRFTIME[part])
    return tuple(parts)


def strftime(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """STRFTIME, the pattern first or last."""
    first, last = arguments
    instant, pattern = (last, first) if first.type == STRING else (first, last)
    return _format([instant], c_parts(_pattern(pattern)))


def date_format(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """DATE_FORMAT."""
    return _format(arguments, java_parts(_pattern(arguments[1])))


def to_char(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """TO_CHAR."""
    return _format(arguments, postgres_parts(_pattern(arguments[1])))


def _pattern(argument: Vector) -> str:
    assert argument.dictionary is not None
    return str(argument.dictionary[int(argument.values[0])].as_py())


def _format(arguments: Sequence[Vector], parts: Sequence[PatternPart | str]) -> Vector:
    """Once per distinct value of the finest part."""
    values = arguments[0].values
    unit = min((part.unit_ms for part in parts if isinstance(part, PatternPart)), default=DAY_MS)
    moments, codes = np.unique(values // unit, return_inverse=True)
    texts = [_text(int(moment) * unit, parts) for moment in moments]
    if len(set(texts)) < len(texts):
        return from_texts(arguments[:1], STRING, pa.array(texts, pa.string()).take(pa.array(codes)))
    dictionary = pa.array(texts or [""], pa.string())
    return strict(arguments[:1], STRING, codes.astype(np.int32), None, dictionary)


def _text(ms: int, parts: Sequence[PatternPart | str]) -> str:
    moment = datetime(1970, 1, 1) + timedelta(milliseconds=ms)
    return "".join(part if isinstance(part, str) else part.text(moment, ms % 1_000) for part in parts)

"""Text as timestamps, by a pattern in the letters of C, of PostgreSQL or of Java.

Which letters a pattern has is seen by it: those of C have ``%``, those of PostgreSQL a year in capitals
(YYYY, YY), all others are Java's. The text must have the form of the pattern from its first to its last
character, in any case of its letters. What the pattern does not have is that of 1970-01-01 00:00:00. Cost:
once per distinct text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from engine.language.evaluation.formats import open_quote, unknown_letters
from engine.language.evaluation.vector import Array, Vector, over_dictionary
from engine.language.instants import DAY_MS, DAY_NAMES, MONTH_NAMES
from engine.model.types import DATE, TIMESTAMP, TIMESTAMP_MS_MAX, TIMESTAMP_MS_MIN, Type

_EPOCH = date(1970, 1, 1).toordinal()
_TWO, _ONE = r"(?P<{}>\d{{2}})", r"(?P<{}>\d{{1,2}})"


def _names(field: str, names: Sequence[str], size: int | None = None) -> str:
    return f"(?P<{field}>{'|'.join(name[:size] for name in names)})"


_YEAR, _SHORT_YEAR = r"(?P<year>\d{4})", r"(?P<short_year>\d{2})"
_YEAR_OF_C = r"(?P<c_year>\d{2})"
_MONTH, _MONTH_3 = _names("month_name", MONTH_NAMES), _names("month_name", MONTH_NAMES, 3)
_DAY, _DAY_3 = _names("weekday", DAY_NAMES), _names("weekday", DAY_NAMES, 3)
_HALF, _FRACTION, _DAY_OF_YEAR = r"(?P<half>AM|PM)", r"(?P<fraction>\d{1,9})", r"(?P<day_of_year>\d{3})"
_ZONE = r"(?P<zone>Z|[+-]\d{2}(?::?\d{2})?)"

#: Letters of Java -> what they match.
JAVA: dict[str, str] = {
    "yyyy": _YEAR,
    "yy": _SHORT_YEAR,
    "MMMM": _MONTH,
    "MMM": _MONTH_3,
    "MM": _TWO.format("month"),
    "M": _ONE.format("month"),
    "dd": _TWO.format("day"),
    "d": _ONE.format("day"),
    "DDD": _DAY_OF_YEAR,
    "EEEE": _DAY,
    "EEE": _DAY_3,
    "HH": _TWO.format("hour"),
    "H": _ONE.format("hour"),
    "hh": _TWO.format("half_hour"),
    "h": _ONE.format("half_hour"),
    "mm": _TWO.format("minute"),
    "m": _ONE.format("minute"),
    "ss": _TWO.format("second"),
    "s": _ONE.format("second"),
    "S": r"(?P<fraction>\d)",
    "SS": r"(?P<fraction>\d{2})",
    "SSS": r"(?P<fraction>\d{3})",
    "SSSSSS": r"(?P<fraction>\d{6})",
    "a": _HALF,
    "XXX": _ZONE,
}
#: Those of PostgreSQL, in any case.
POSTGRES: dict[str, str] = {
    "YYYY": _YEAR,
    "YY": _SHORT_YEAR,
    "MONTH": _MONTH,
    "MON": _MONTH_3,
    "MM": _ONE.format("month"),
    "DDD": _DAY_OF_YEAR,
    "DD": _ONE.format("day"),
    "DAY": _DAY,
    "DY": _DAY_3,
    "HH24": _ONE.format("hour"),
    "HH12": _ONE.format("half_hour"),
    "HH": _ONE.format("half_hour"),
    "MI": _ONE.format("minute"),
    "SS": _ONE.format("second"),
    "MS": r"(?P<fraction>\d{1,3})",
    "US": r"(?P<fraction>\d{1,6})",
    "AM": _HALF,
    "PM": _HALF,
    "TZH": _ZONE,
}
#: Those of C.
C: dict[str, str] = {
    "%Y": _YEAR,
    "%y": _YEAR_OF_C,
    "%m": _ONE.format("month"),
    "%d": _ONE.format("day"),
    "%j": _DAY_OF_YEAR,
    "%B": _MONTH,
    "%b": _MONTH_3,
    "%A": _DAY,
    "%a": _DAY_3,
    "%H": _ONE.format("hour"),
    "%I": _ONE.format("half_hour"),
    "%M": _ONE.format("minute"),
    "%S": _ONE.format("second"),
    "%f": _FRACTION,
    "%g": r"(?P<fraction>\d{1,3})",
    "%p": _HALF,
    "%z": _ZONE,
}
_HERE = " here, or stands twice"
_C = re.compile(r"(?P<part>%[A-Za-z])|%(?P<text>%)|(?P<plain>[^%]+|%)")
_JAVA = re.compile(r"'(?P<text>(?:[^']|'')*)'|(?P<part>([A-Za-z])\3*)|(?P<plain>.)", re.DOTALL)
_SPELT = "|".join(sorted(POSTGRES, key=len, reverse=True))
_POSTGRES = re.compile(
    rf'"(?P<text>[^"]*)"|(?P<part>{_SPELT}|[A-Za-z]+)|(?P<plain>.)', re.DOTALL | re.IGNORECASE
)


@lru_cache(maxsize=512)
def matcher(pattern: str) -> re.Pattern[str]:
    """What matches texts of a pattern's form. Raises UnknownPart for letters without a meaning, a part that
    stands twice, and a quote that does not end.
    """
    tokens, letters = _family(pattern)
    written: list[str] = []
    for match in tokens.finditer(pattern):
        part, text, plain = match["part"], match["text"], match["plain"]
        if part is None:
            if plain == "%" and letters is C:
                raise unknown_letters(plain, _HERE)
            if letters is not C and plain == ("'" if letters is JAVA else '"'):
                raise open_quote(plain)
            text = plain if text is None else text.replace("''", "'") or "'" if letters is JAVA else text
            written.append(re.escape(text or ""))
            continue
        found = letters.get(part.upper() if letters is POSTGRES else part)
        if found is None or any(found.partition(">")[0] + ">" in before for before in written):
            raise unknown_letters(part, _HERE)
        written.append(found)
    return re.compile("".join(written), re.ASCII | re.IGNORECASE)


def _family(pattern: str) -> tuple[re.Pattern[str], Mapping[str, str]]:
    if "%" in pattern:
        return _C, C
    return (_POSTGRES, POSTGRES) if re.search("YY", pattern) else (_JAVA, JAVA)


def to_instant(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """TO_TIMESTAMP(text, pattern); an error where the text has another form, or there is no such instant."""
    return over_dictionary(arguments[0], TIMESTAMP, lambda texts: _all(texts, _pattern(arguments[1])))


def to_date(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """TO_DATE(text, pattern); the time of the day is cut off."""

    def days(texts: pa.StringArray) -> tuple[Array, Array]:
        ms, wrong = _all(texts, _pattern(arguments[1]))
        return (ms // DAY_MS).astype(np.int32), wrong

    return over_dictionary(arguments[0], DATE, days)


def _pattern(argument: Vector) -> re.Pattern[str]:
    assert argument.dictionary is not None
    return matcher(str(argument.dictionary[int(argument.values[0])].as_py()))


def _all(texts: pa.StringArray, pattern: re.Pattern[str]) -> tuple[Array, Array]:
    found = [_instant(pattern.fullmatch(text or "")) for text in texts.to_pylist()]
    ms = np.array([0 if each is None else each for each in found], np.int64)
    return ms, np.array([each is None for each in found])


def _instant(match: re.Match[str] | None) -> int | None:
    if match is None:
        return None
    parts: dict[str, Any] = {name: text for name, text in match.groupdict().items() if text is not None}
    days = _days(parts)
    hour, minute, second = (int(parts.get(name, 0)) for name in ("hour", "minute", "second"))
    if "half_hour" in parts:
        hour = int(parts["half_hour"])
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (parts.get("half", "AM").upper() == "PM")
    if days is None or hour > 23 or minute > 59 or second > 59:
        return None
    ms = ((days * 24 + hour) * 60 + minute) * 60_000 + second * 1_000
    ms += int(parts.get("fraction", "0")[:3].ljust(3, "0")) - _zone_ms(parts.get("zone", "Z"))
    return ms if TIMESTAMP_MS_MIN <= ms <= TIMESTAMP_MS_MAX else None


def _days(parts: Mapping[str, str]) -> int | None:
    """Days since 1970, None where there is no such day. Years of two digits are 1970 to 2069, those of C 1969
    to 2068.
    """
    year = int(parts.get("year", "1970"))
    for name, first in (("short_year", 70), ("c_year", 69)):
        if name in parts:
            short = int(parts[name])
            year = short + (1900 if short >= first else 2000)
    month = int(parts.get("month", "1"))
    if "month_name" in parts:
        month = 1 + [name[:3].lower() for name in MONTH_NAMES].index(parts["month_name"][:3].lower())
    try:
        if "day_of_year" in parts:
            days = date(year, 1, 1).toordinal() + int(parts["day_of_year"]) - 1
            return days - _EPOCH if date.fromordinal(days).year == year else None
        return date(year, month, int(parts.get("day", "1"))).toordinal() - _EPOCH
    except (ValueError, OverflowError):
        return None


def _zone_ms(zone: str) -> int:
    if zone in "zZ":
        return 0
    minutes = int(zone[1:3]) * 60 + int(zone[-2:] if len(zone) > 3 else 0)
    return minutes * (-60_000 if zone[0] == "-" else 60_000)

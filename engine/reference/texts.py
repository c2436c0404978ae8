"""Functions that take strings apart, match patterns in them, or write timestamps by a pattern: plain Python.

Patterns of REGEXP functions are RE2's; here they are Python's, so only patterns that mean the same to both
can be compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from engine.model.types import Type
from engine.reference.values import ERROR, Outcome

EPOCH = datetime(1970, 1, 1)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August"),
    *("September", "October", "November", "December"),
)


def count_char(type_: Type, text: str, part: str) -> Outcome:
    """How often a part stands in a text, without overlaps."""
    count = place = 0
    while part and (place := text.find(part, place)) >= 0:
        count += 1
        place += len(part)
    return count


def split_part(type_: Type, text: str, delimiter: str, n: int) -> Outcome:
    """The n-th part from 1, or from -1 at the end, empty where there is none; 0 is an error."""
    if n == 0:
        return ERROR
    parts = _parts(text, delimiter)
    if n < 0:
        parts.reverse()
    return parts[abs(n) - 1] if abs(n) <= len(parts) else ""


def split_index(type_: Type, text: str, delimiter: str, n: int) -> Outcome:
    """The n-th part from 0, NULL where there is none."""
    parts = _parts(text, delimiter)
    return parts[n] if 0 <= n < len(parts) else None


def _parts(text: str, delimiter: str) -> list[str]:
    parts = []
    while delimiter and delimiter in text:
        part, _, text = text.partition(delimiter)
        parts.append(part)
    return [*parts, text]


def regexp_like(type_: Type, text: str, pattern: str) -> Outcome:
    """Whether a pattern matches anywhere."""
    return re.search(pattern, text, re.ASCII) is not None


def similar_to(type_: Type, text: str, pattern: str) -> Outcome:
    """Whether all of a text is like a pattern of SIMILAR TO."""
    found = re.sub(
        r"\\(.)|(\[[^\]]*\])|([%_.^$])",
        lambda one: (
            re.escape(one[1]) if one[1] else one[2] or {"%": ".*", "_": "."}.get(one[3], f"\\{one[3]}")
        ),
        pattern,
        flags=re.DOTALL,
    )
    return re.fullmatch(found, text, re.ASCII | re.DOTALL) is not None


def regexp_extract(type_: Type, text: str, pattern: str, group: int = 0) -> Outcome:
    """A group of the first match, empty where it takes no part; NULL without a match."""
    found = re.search(pattern, text, re.ASCII)
    return None if found is None else found[group] or ""


# --- timestamps by a pattern --------------------------------------------------------------------------


def _digits(width: int, value: Callable[[datetime], int]) -> Callable[[datetime], str]:
    return lambda moment: str(value(moment)).rjust(width, "0")


def _half_day_hour(moment: datetime) -> int:
    return 12 if moment.hour in (0, 12) else moment.hour % 12


def _half_of_day(moment: datetime) -> str:
    return "AM" if moment.hour < 12 else "PM"


JAVA: dict[str, Callable[[datetime], str]] = {
    "yyyy": _digits(4, lambda moment: moment.year),
    "yy": _digits(2, lambda moment: moment.year % 100),
    "MMMM": lambda moment: MONTHS[moment.month - 1],
    "MMM": lambda moment: MONTHS[moment.month - 1][:3],
    "EEEE": lambda moment: DAYS[moment.weekday()],
    "EEE": lambda moment: DAYS[moment.weekday()][:3],
    "DDD": _digits(3, lambda moment: (moment.date() - moment.date().replace(month=1, day=1)).days + 1),
    "MM": _digits(2, lambda moment: moment.month),
    "M": _digits(1, lambda moment: moment.month),
    "dd": _digits(2, lambda moment: moment.day),
    "d": _digits(1, lambda moment: moment.day),
    "HH": _digits(2, lambda moment: moment.hour),
    "H": _digits(1, lambda moment: moment.hour),
    "hh": _digits(2, _half_day_hour),
    "h": _digits(1, _half_day_hour),
    "mm": _digits(2, lambda moment: moment.minute),
    "m": _digits(1, lambda moment: moment.minute),
    "ss": _digits(2, lambda moment: moment.second),
    "s": _digits(1, lambda moment: moment.second),
    "SSS": _digits(3, lambda moment: moment.microsecond // 1_000),
    "a": _half_of_day,
}
POSTGRES: dict[str, Callable[[datetime], str]] = {
    "YYYY": JAVA["yyyy"],
    "YY": JAVA["yy"],
    "MM": JAVA["MM"],
    "DDD": JAVA["DDD"],
    "DD": JAVA["dd"],
    "HH24": JAVA["HH"],
    "HH12": JAVA["hh"],
    "HH": JAVA["hh"],
    "MI": JAVA["mm"],
    "SS": JAVA["ss"],
    "MS": JAVA["SSS"],
    "AM": _half_of_day,
    "PM": _half_of_day,
    "US": _digits(6, lambda moment: moment.microsecond),
    "Q": _digits(1, lambda moment: (moment.month - 1) // 3 + 1),
    "IYYY": _digits(4, lambda moment: moment.isocalendar().year),
    "IW": _digits(2, lambda moment: moment.isocalendar().week),
    "ID": _digits(1, lambda moment: moment.isoweekday()),
    "FMMONTH": JAVA["MMMM"],
    "MON": JAVA["MMM"],
    "FMDAY": JAVA["EEEE"],
    "DY": JAVA["EEE"],
}


def date_format(type_: Type, ms: Any, pattern: str) -> Outcome:
    """Runs of a letter stand for parts; what is quoted stands for itself, two quotes for one."""
    written, place = "", 0
    while place < len(pattern):
        letter = pattern[place]
        end = place + 1
        if letter == "'":
            quoted = re.match(r"'((?:[^']|'')*)'", pattern[place:])
            assert quoted is not None, "a quote that does not end is refused"
            written += quoted[1].replace("''", "'") or "'"
            end = place + quoted.end()
        elif letter.isascii() and letter.isalpha():
            while pattern[end : end + 1] == letter:
                end += 1
            written += JAVA[pattern[place:end]](EPOCH + timedelta(milliseconds=ms))
        else:
            written += letter
        place = end
    return written


def to_char(type_: Type, ms: Any, pattern: str) -> Outcome:
    """The longest part that the letters spell stands for it, in any case, which is that of a name; what is
    quoted stands for itself.
    """
    written, place = "", 0
    while place < len(pattern):
        spelt = [part for part in POSTGRES if pattern[place : place + len(part)].upper() == part]
        quoted = re.match('"([^"]*)"', pattern[place:])
        if quoted is not None:
            written += quoted[1]
            place += quoted.end()
        elif spelt:
            part = max(spelt, key=len)
            text = POSTGRES[part](EPOCH + timedelta(milliseconds=ms))
            letters = pattern[place : place + len(part)][2 if part.startswith("FM") else 0 :]
            written += text.upper() if letters.isupper() else text.lower() if letters.islower() else text
            place += len(part)
        else:
            written += pattern[place]
            place += 1
    return written

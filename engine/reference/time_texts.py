"""Text that is read as a timestamp by a pattern, character by character; and STRFTIME."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from engine.model.types import Type
from engine.reference.texts import DAYS, EPOCH, JAVA, MONTHS, POSTGRES
from engine.reference.values import ERROR, Outcome, in_years

Part = tuple[str, int, int]
"""A field, and how many digits it has, at least and at most."""

_JAVA: dict[str, Part] = {
    "yyyy": ("year", 4, 4),
    "yy": ("short", 2, 2),
    "MMMM": ("month name", 0, 0),
    "MMM": ("month name", 3, 3),
    "MM": ("month", 2, 2),
    "M": ("month", 1, 2),
    "dd": ("day", 2, 2),
    "d": ("day", 1, 2),
    "DDD": ("of year", 3, 3),
    "EEEE": ("weekday", 0, 0),
    "EEE": ("weekday", 3, 3),
    "HH": ("hour", 2, 2),
    "H": ("hour", 1, 2),
    "hh": ("half", 2, 2),
    "h": ("half", 1, 2),
    "mm": ("minute", 2, 2),
    "m": ("minute", 1, 2),
    "ss": ("second", 2, 2),
    "s": ("second", 1, 2),
    **{"S" * n: ("fraction", n, n) for n in (1, 2, 3, 6)},
    "a": ("am", 0, 0),
    "XXX": ("zone", 0, 0),
}
_C: dict[str, Part] = {
    "%Y": ("year", 4, 4),
    "%y": ("short in C", 2, 2),
    "%m": ("month", 1, 2),
    "%d": ("day", 1, 2),
    "%j": ("of year", 3, 3),
    "%B": ("month name", 0, 0),
    "%b": ("month name", 3, 3),
    "%A": ("weekday", 0, 0),
    "%a": ("weekday", 3, 3),
    "%H": ("hour", 1, 2),
    "%I": ("half", 1, 2),
    "%M": ("minute", 1, 2),
    "%S": ("second", 1, 2),
    "%f": ("fraction", 1, 9),
    "%g": ("fraction", 1, 3),
    "%p": ("am", 0, 0),
    "%z": ("zone", 0, 0),
}
_POSTGRES: dict[str, Part] = {
    "YYYY": _C["%Y"],
    "YY": _JAVA["yy"],
    "MONTH": _C["%B"],
    "MON": _C["%b"],
    "MM": _C["%m"],
    "DDD": _C["%j"],
    "DD": _C["%d"],
    "DAY": _C["%A"],
    "DY": _C["%a"],
    "HH24": _C["%H"],
    "HH12": _C["%I"],
    "HH": _C["%I"],
    "MI": _C["%M"],
    "SS": _C["%S"],
    "MS": ("fraction", 1, 3),
    "US": ("fraction", 1, 6),
    "AM": _C["%p"],
    "PM": _C["%p"],
    "TZH": _C["%z"],
}


def _tokens(pattern: str) -> list[Part | str]:
    found: list[Part | str] = []
    at, in_c, is_java = 0, "%" in pattern, "YY" not in pattern
    while at < len(pattern):
        letter = pattern[at]
        if in_c:
            size = 2 if letter == "%" else 1
            found.append(
                "%" if pattern[at : at + 2] == "%%" else _C[pattern[at : at + 2]] if size == 2 else letter
            )
        elif letter == ("'" if is_java else '"'):
            end = pattern.find(letter, at + 1)
            while is_java and pattern[end + 1 : end + 2] == "'":
                end = pattern.find("'", end + 2)
            found.append(pattern[at + 1 : end].replace("''", "'") or ("'" if is_java else ""))
            size = end + 1 - at
        elif is_java and letter.isalpha():
            size = len(pattern[at:]) - len(pattern[at:].lstrip(letter))
            found.append(_JAVA[pattern[at : at + size]])
        elif letter.isalpha():
            part = max((p for p in _POSTGRES if pattern[at:].upper().startswith(p)), key=len)
            found.append(_POSTGRES[part])
            size = len(part)
        else:
            found.append(letter)
            size = 1
        at += size
    return found


def _readings(text: str, part: Part) -> Iterator[tuple[Any, str]]:
    """What a text may begin with, the longest first, and what is left of it."""
    field, least, most = part
    if field in ("month name", "weekday"):
        names = MONTHS if field == "month name" else DAYS
        for place, name in enumerate(names):
            written = name[:least] if least else name
            if text[: len(written)].lower() == written.lower():
                yield place + 1, text[len(written) :]
    elif field == "am":
        if text[:2].upper() in ("AM", "PM"):
            yield text[:2].upper(), text[2:]
    elif field == "zone":
        for size in (6, 5, 3, 1):
            head = text[:size]
            digits = head[1:].replace(":", "", 1) if size == 6 and head[3:4] == ":" else head[1:]
            if size == 1 and head in ("Z", "z"):
                yield 0, text[1:]
            elif (
                size > 1
                and len(head) == size
                and head[0] in "+-"
                and digits.isdigit()
                and len(digits) in (2, 4)
            ):
                minutes = int(digits[:2]) * 60 + int(digits[2:] or 0)
                yield -minutes if head[0] == "-" else minutes, text[size:]
    else:
        for size in range(most, least - 1, -1):
            head = text[:size]
            if len(head) == size and head.isascii() and head.isdigit():
                yield head if field == "fraction" else int(head), text[size:]


def _match(text: str, tokens: list[Part | str]) -> dict[str, Any] | None:
    if not tokens:
        return None if text else {}
    token = tokens[0]
    if isinstance(token, str):
        same = text[: len(token)].lower() == token.lower()
        return _match(text[len(token) :], tokens[1:]) if same else None
    for value, rest in _readings(text, token):
        found = _match(rest, tokens[1:])
        if found is not None:
            return found | {token[0]: value}
    return None


def read_time(text: str, pattern: str) -> Outcome:
    """TO_TIMESTAMP(text, pattern)."""
    found = _match(text, _tokens(pattern))
    if found is None:
        return ERROR
    year = found.get("year", 1970)
    if "short" in found:
        year = found["short"] + (1900 if found["short"] >= 70 else 2000)
    if "short in C" in found:
        year = found["short in C"] + (1900 if found["short in C"] > 68 else 2000)
    hour = found.get("hour", 0)
    if "half" in found:
        if not 1 <= found["half"] <= 12:
            return ERROR
        hour = found["half"] % 12 + (12 if found.get("am") == "PM" else 0)
    month = found.get("month name", found.get("month", 1))
    day = 1 if "of year" in found else found.get("day", 1)
    fraction = timedelta(milliseconds=int((found.get("fraction", "0") + "00")[:3]))
    try:
        at = datetime(
            year,
            1 if "of year" in found else month,
            day,
            hour,
            found.get("minute", 0),
            found.get("second", 0),
        )
        if "of year" in found:
            at += timedelta(days=found["of year"] - 1)
            if at.year != year:
                return ERROR
    except (ValueError, OverflowError):
        return ERROR
    ms = (at + fraction - EPOCH) // timedelta(milliseconds=1) - found.get("zone", 0) * 60_000
    return ms if in_years(ms) else ERROR


def strftime(type_: Type, one: Any, other: Any) -> Outcome:
    """STRFTIME, the pattern first or last."""
    ms, pattern = (other, one) if isinstance(one, str) else (one, other)
    at = EPOCH + timedelta(milliseconds=ms)
    written, place = "", 0
    while place < len(pattern):
        size = 1
        if pattern[place] == "%":
            size = 3 if pattern[place + 1] == "-" else 2
        written += _written(pattern[place : place + size], at)
        place += size
    return written


def _written(part: str, at: datetime) -> str:
    if not part.startswith("%"):
        return part
    if part == "%%":
        return "%"
    if part == "%w":
        return str(at.isoweekday() % 7)
    if part == "%j":
        return POSTGRES["DDD"](at)
    letters = {
        "%Y": "yyyy",
        "%y": "yy",
        "%m": "MM",
        "%-m": "M",
        "%d": "dd",
        "%-d": "d",
        "%H": "HH",
        "%-H": "H",
        "%I": "hh",
        "%-I": "h",
        "%M": "mm",
        "%-M": "m",
        "%S": "ss",
        "%-S": "s",
        "%p": "a",
        "%g": "SSS",
        "%A": "EEEE",
        "%a": "EEE",
        "%B": "MMMM",
        "%b": "MMM",
    }
    if part in letters:
        return JAVA[letters[part]](at)
    return POSTGRES[{"%f": "US", "%u": "ID", "%G": "IYYY", "%V": "IW"}[part]](at)

"""Dates and timestamps as text.

``YYYY-MM-DD`` and ``YYYY-MM-DD HH:MM[:SS[.fraction]]`` (or a T between), with an optional Z or +HH:MM;
years 1 to 9999, UTC.
What is finer than a millisecond is cut off.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta

from engine.model.types import TIMESTAMP_MS_MAX, TIMESTAMP_MS_MIN

DAY_MS = 86_400_000
DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTH_NAMES = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_EPOCH = date(1970, 1, 1).toordinal()

_PATTERN = re.compile(
    r"\s*(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?\s*(Z|[+-]\d{2}(?::?\d{2})?)?)?\s*",
    re.ASCII | re.IGNORECASE,
)
_TIME = re.compile(r"\s*(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?\s*", re.ASCII)


def parse_date(text: str) -> int | None:
    """Days since 1970; None if the text is no date, or has a time of day."""
    match = _PATTERN.fullmatch(text)
    if match is None or match.group(4) is not None:
        return None
    return _days(match)


def parse_timestamp(text: str) -> int | None:
    """Milliseconds since 1970; None if the text is no timestamp."""
    match = _PATTERN.fullmatch(text)
    if match is None:
        return None
    days = _days(match)
    if days is None:
        return None
    hour, minute, second = (int(match.group(place) or 0) for place in (4, 5, 6))
    if hour > 23 or minute > 59 or second > 59:
        return None
    fraction = int((match.group(7) or "0")[:3].ljust(3, "0"))
    ms = days * DAY_MS + hour * 3_600_000 + minute * 60_000 + second * 1_000 + fraction
    zone = match.group(8)
    if zone and zone not in "Zz":
        offset = (int(zone[1:3]) * 60 + int(zone[-2:] if len(zone) > 3 else 0)) * 60_000
        ms += offset if zone[0] == "-" else -offset
    return ms if TIMESTAMP_MS_MIN <= ms <= TIMESTAMP_MS_MAX else None


def parse_time(text: str) -> int | None:
    """Milliseconds of the day; None if the text is no time of the day, ``HH:MM[:SS[.fraction]]``."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    hour, minute, second = (int(match.group(place) or 0) for place in (1, 2, 3))
    if hour > 23 or minute > 59 or second > 59:
        return None
    fraction = int((match.group(4) or "0")[:3].ljust(3, "0"))
    return hour * 3_600_000 + minute * 60_000 + second * 1_000 + fraction


def time_text(ms: int) -> str:
    """``HH:MM:SS``, with ``.mmm`` where the milliseconds are not zero; ms of the day."""
    return timestamp_text(ms % DAY_MS).partition(" ")[2]


def _days(match: re.Match[str]) -> int | None:
    try:
        return date(int(match.group(1)), int(match.group(2)), int(match.group(3))).toordinal() - _EPOCH
    except ValueError:
        return None


def date_text(days: int) -> str:
    """``YYYY-MM-DD``; days within DAY_MIN..DAY_MAX."""
    return date.fromordinal(days + _EPOCH).isoformat()


def timestamp_text(ms: int) -> str:
    """``YYYY-MM-DD HH:MM:SS``, with ``.mmm`` where the milliseconds are not zero."""
    moment = datetime(1970, 1, 1) + timedelta(milliseconds=ms)
    text = moment.isoformat(sep=" ", timespec="seconds")
    return f"{text}.{ms % 1_000:03d}" if ms % 1_000 else text


def interval_text(ms: int) -> str:
    """``P1DT2H3M4.005S``, as ISO 8601 has it; with a sign before it where it is negative."""
    days, rest = divmod(abs(ms), DAY_MS)
    hours, rest = divmod(rest, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    seconds = f"{rest // 1_000}.{rest % 1_000:03d}" if rest % 1_000 else str(rest // 1_000)
    parts = ((hours, "H"), (minutes, "M"))
    time = "".join(f"{count}{unit}" for count, unit in parts if count) + (f"{seconds}S" if rest else "")
    text = (f"{days}D" if days else "") + (f"T{time}" if time else "")
    return f"{'-' if ms < 0 else ''}P{text or 'T0S'}"

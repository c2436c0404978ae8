"""Functions of dates and timestamps over plain Python values."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable
from datetime import date, datetime, timedelta
from functools import lru_cache
from importlib.resources import files
from typing import Any
from zoneinfo import ZoneInfo

from engine.model.types import Type
from engine.reference.texts import DAYS, EPOCH, MONTHS
from engine.reference.time_texts import read_time, strftime
from engine.reference.values import ERROR, Outcome, in_years

DAY = timedelta(days=1)


def moment(ms: int) -> datetime:
    """An instant, in UTC."""
    return EPOCH + timedelta(milliseconds=ms)


def ms_of(at: datetime) -> int:
    """Milliseconds since 1970."""
    return (at - EPOCH) // timedelta(milliseconds=1)


def extract(type_: Type, part: str, ms: int) -> Outcome:
    """EXTRACT."""
    at = moment(ms)
    parts: dict[str, Callable[[], int]] = {
        "MILLENNIUM": lambda: -(-at.year // 1_000),
        "CENTURY": lambda: -(-at.year // 100),
        "DECADE": lambda: at.year // 10,
        "YEAR": lambda: at.year,
        "ISOYEAR": lambda: at.isocalendar().year,
        "QUARTER": lambda: {1: 1, 2: 1, 3: 1, 4: 2, 5: 2, 6: 2, 7: 3, 8: 3, 9: 3}.get(at.month, 4),
        "MONTH": lambda: at.month,
        "WEEK": lambda: at.isocalendar().week,
        "DAY": lambda: at.day,
        "DOW": lambda: at.isoweekday() % 7,
        "ISODOW": at.isoweekday,
        "DOY": lambda: at.timetuple().tm_yday,
        "HOUR": lambda: at.hour,
        "MINUTE": lambda: at.minute,
        "SECOND": lambda: at.second,
        "MILLISECOND": lambda: at.second * 1_000 + at.microsecond // 1_000,
        "MICROSECOND": lambda: at.second * 1_000_000 + at.microsecond,
        "EPOCH": lambda: (at - EPOCH) // timedelta(seconds=1),
    }
    return parts[part]()


def _begin(part: str, at: datetime) -> datetime | None:
    """The beginning of a part; None: it is before year 1."""
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    year = midnight.replace(month=1, day=1)
    try:
        match part:
            case "MILLENNIUM" | "CENTURY":
                years = 1_000 if part == "MILLENNIUM" else 100
                return year.replace(year=(at.year - 1) - (at.year - 1) % years + 1)
            case "DECADE":
                return year.replace(year=at.year - at.year % 10)
            case "ISOYEAR":
                week = at.isocalendar().week
                return midnight - timedelta(days=midnight.weekday()) - timedelta(weeks=week - 1)
            case "WEEK":
                return midnight - timedelta(days=midnight.weekday())
    except (OverflowError, ValueError):
        return None
    return {
        "YEAR": year,
        "QUARTER": midnight.replace(day=1, month=at.month - (at.month - 1) % 3),
        "MONTH": midnight.replace(day=1),
        "DAY": midnight,
        "HOUR": at.replace(minute=0, second=0, microsecond=0),
        "MINUTE": at.replace(second=0, microsecond=0),
        "SECOND": at.replace(microsecond=0),
        "MILLISECOND": at,
        "MICROSECOND": at,
    }[part]


def truncate(type_: Type, part: str, ms: int, zone: str | None = None) -> Outcome:
    """DATE_TRUNC, in UTC or a zone."""
    wall = ms if zone is None else from_utc(type_, ms, zone)
    if not isinstance(wall, int):
        return ERROR
    begin = _begin(part, moment(wall))
    if begin is None:
        return ERROR
    return ms_of(begin) if zone is None else to_utc(type_, ms_of(begin), zone)


def add_months(type_: Type, ms: int, months: int) -> Outcome:
    """ADD_MONTHS."""
    at = moment(ms)
    year, month = divmod(12 * at.year + at.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        return ERROR
    day = min(at.day, monthrange(year, month + 1)[1])
    return ms_of(at.replace(year=year, month=month + 1, day=day))


# --- zones


@lru_cache(maxsize=1_024)
def _zone(name: str) -> ZoneInfo | timedelta | None:
    if name[:1] in ("+", "-"):
        digits = name[1:].replace(":", "")
        hours, minutes = (digits[:-2], digits[-2:]) if len(digits) > 2 else (digits, "0")
        if not (digits.isdigit() and len(digits) <= 4 and int(minutes) < 60):
            return None
        offset = timedelta(hours=int(hours), minutes=int(minutes))
        return None if offset > timedelta(hours=18) else -offset if name[0] == "-" else offset
    keys = {key.lower(): key for key in (files("tzdata") / "zones").read_text().split()} | {"z": "UTC"}
    key = keys.get(name.lower())
    if key is None:
        return None
    with files("tzdata").joinpath("zoneinfo", *key.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key)


def _offset(at: datetime) -> timedelta:
    found = at.utcoffset()
    assert found is not None
    return found


def from_utc(type_: Type, ms: int, name: str) -> Outcome:
    """What a clock in a zone shows."""
    zone = _zone(name)
    if zone is None:
        return ERROR
    try:
        at = moment(ms)
        if isinstance(zone, timedelta):
            return ms_of(at + zone)
        return ms_of(at.replace(tzinfo=ZoneInfo("UTC")).astimezone(zone).replace(tzinfo=None))
    except OverflowError:
        return ERROR


def to_utc(type_: Type, ms: int, name: str) -> Outcome:
    """When a clock in a zone shows something: by the lesser offset where there are two, which is the later
    instant, or that before a clock leaps.
    """
    zone = _zone(name)
    if zone is None:
        return ERROR
    at = moment(ms)
    if isinstance(zone, timedelta):
        offset = zone
    else:
        offset = min(_offset(at.replace(tzinfo=zone, fold=fold)) for fold in (0, 1))
    found = ms - offset // timedelta(milliseconds=1)
    return found if in_years(found) else ERROR


# --- made and measured


def _make_date(type_: Type, year: int, month: int, day: int) -> Outcome:
    try:
        return (date(year, month, day) - EPOCH.date()).days
    except (ValueError, OverflowError):
        return ERROR


def _make_timestamp(
    type_: Type, year: int, month: int, day: int, hour: int, minute: int, second: float
) -> Outcome:
    if not 0 <= second < 60:
        return ERROR
    try:
        at = ms_of(datetime(year, month, day, hour, minute)) + round(second * 1_000)
    except (ValueError, OverflowError):
        return ERROR
    return at if in_years(at) else ERROR


def _make_time(type_: Type, hour: int, minute: int, second: float) -> Outcome:
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60):
        return ERROR
    ms = (hour * 60 + minute) * 60_000 + round(second * 1_000)
    return ms if ms < 86_400_000 else ERROR


def _last_day(type_: Type, ms: int) -> Outcome:
    at = moment(ms)
    return (at.date().replace(day=monthrange(at.year, at.month)[1]) - EPOCH.date()).days


def _months_between(type_: Type, a: int, b: int) -> Outcome:
    one, other = moment(a), moment(b)
    months = 12 * (one.year - other.year) + one.month - other.month
    both_last = all(at.day == monthrange(at.year, at.month)[1] for at in (one, other))
    if one.day == other.day or both_last:
        return float(months)
    within = (one - one.replace(day=1, hour=0, minute=0, second=0, microsecond=0)) - (
        other - other.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    )
    return months + (within // timedelta(milliseconds=1)) / (31 * 86_400_000)


_BEGUN: dict[str, Callable[[datetime], int]] = {
    "DECADE": lambda at: at.year // 10,
    "YEAR": lambda at: at.year,
    "QUARTER": lambda at: 4 * at.year + (at.month - 1) // 3,
    "MONTH": lambda at: 12 * at.year + at.month,
    "WEEK": lambda at: (at.toordinal() - 1) // 7,  # the first day of year 1 is a Monday
    "DAY": lambda at: at.toordinal(),
    "HOUR": lambda at: (at - EPOCH) // timedelta(hours=1),
    "MINUTE": lambda at: (at - EPOCH) // timedelta(minutes=1),
    "SECOND": lambda at: (at - EPOCH) // timedelta(seconds=1),
    "MILLISECOND": ms_of,
}
_MONTHS = {"DECADE": 120, "YEAR": 12, "QUARTER": 3, "MONTH": 1}
_FIXED = {
    "WEEK": timedelta(weeks=1),
    "DAY": DAY,
    "HOUR": timedelta(hours=1),
    "MINUTE": timedelta(minutes=1),
    "SECOND": timedelta(seconds=1),
    "MILLISECOND": timedelta(milliseconds=1),
}


def _date_diff(type_: Type, part: str, a: int, b: int) -> Outcome:
    return _BEGUN[part](moment(b)) - _BEGUN[part](moment(a))


def _timestamp_diff(type_: Type, part: str, a: int, b: int) -> Outcome:
    if a > b:
        back = _timestamp_diff(type_, part, b, a)
        assert isinstance(back, int)
        return -back
    if part in _FIXED:
        return (moment(b) - moment(a)) // _FIXED[part]
    one, other = moment(a), moment(b)
    months = 12 * (other.year - one.year) + other.month - one.month
    moved = add_months(type_, a, months)
    if moved is ERROR or (isinstance(moved, int) and moved > b):
        months -= 1
    return months // _MONTHS[part]


def _date_bin(type_: Type, stride: int, ms: int, origin: int = 0) -> Outcome:
    if stride <= 0:
        return ERROR
    found = origin + (ms - origin) // stride * stride
    return found if in_years(found) else ERROR


def _month_bin(type_: Type, stride: int, ms: int) -> Outcome:
    if stride <= 0:
        return ERROR
    at = moment(ms)
    since = 12 * (at.year - 2000) + at.month - 1
    year, month = divmod(12 * 2000 + since // stride * stride, 12)
    return ms_of(datetime(year, month + 1, 1)) if 1 <= year <= 9999 else ERROR


def _to_timestamp(type_: Type, value: Any, pattern: str | None = None) -> Outcome:
    if pattern is not None:
        return read_time(value, pattern)
    return value if in_years(value) else ERROR


def _to_date(type_: Type, text: str, pattern: str) -> Outcome:
    ms = read_time(text, pattern)
    return ms // 86_400_000 if isinstance(ms, int) else ERROR


def _part(part: str) -> Callable[..., Outcome]:
    return lambda type_, ms: extract(type_, part, ms)


TIMES: dict[str, Callable[..., Outcome]] = {
    "EXTRACT": extract,
    **{part: _part(part) for part in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")},
    "DAYOFYEAR": _part("DOY"),
    "DATE_TRUNC": truncate,
    "ADD_MONTHS": add_months,
    "TO_TIMESTAMP": _to_timestamp,
    "TO_DATE": _to_date,
    "EPOCH_MS": lambda type_, ms: ms,
    "FROM_UTC_TIMESTAMP": from_utc,
    "TO_UTC_TIMESTAMP": to_utc,
    "MAKE_DATE": _make_date,
    "MAKE_TIMESTAMP": _make_timestamp,
    "MAKE_TIME": _make_time,
    "LAST_DAY": _last_day,
    "MONTHS_BETWEEN": _months_between,
    "DATE_DIFF": _date_diff,
    "TIMESTAMPDIFF": _timestamp_diff,
    "DATE_BIN": _date_bin,
    "MONTH_BIN": _month_bin,
    "TIMESTAMP_SECONDS": lambda type_, n: n * 1_000 if in_years(n * 1_000) else ERROR,
    "DAYNAME": lambda type_, ms: DAYS[moment(ms).weekday()],
    "STRFTIME": strftime,
    "MONTHNAME": lambda type_, ms: MONTHS[moment(ms).month - 1],
}

"""Dates and timestamps made of numbers, distances between them, strides of time, names of days and months."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from engine.language.evaluation.temporal import (
    EXTRACTED,
    MONTHS_MAX,
    add_months,
    day_of_month,
    days_of,
    first_day,
    month_index,
    of_part,
    outside,
)
from engine.language.evaluation.vector import Array, Vector, either, strict
from engine.language.instants import DAY_MS, DAY_NAMES, MONTH_NAMES
from engine.model.types import (
    BIGINT,
    DATE,
    DOUBLE,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_MS_MAX,
    TIMESTAMP_MS_MIN,
    Type,
)

MONTHS = {"DECADE": 120, "YEAR": 12, "QUARTER": 3, "MONTH": 1}
MILLISECONDS = {
    "WEEK": 7 * DAY_MS,
    "DAY": DAY_MS,
    "HOUR": 3_600_000,
    "MINUTE": 60_000,
    "SECOND": 1_000,
    "MILLISECOND": 1,
}
UNITS = (*MONTHS, *MILLISECONDS)
"""Parts that have a length, of months or of milliseconds."""


def _within(values: Array, low: int, high: int) -> Array:
    return np.asarray((values >= low) & (values <= high))


def _date(year: Array, month: Array, day: Array) -> tuple[Array, Array]:
    """Days since 1970, and where there is such a day."""
    fine = _within(year, 1, 9_999) & _within(month, 1, 12)
    index = np.where(fine, (year - 1970) * 12 + month - 1, 0)
    first = first_day(index)
    fine &= _within(day, 1, 31) & (day <= first_day(index + 1) - first)
    return np.where(fine, first + day - 1, 0), fine


def _time_of_day(hour: Array, minute: Array, second: Array) -> tuple[Array, Array]:
    """Milliseconds from midnight, rounded, and where there is such a time."""
    fine = _within(hour, 0, 23) & _within(minute, 0, 59) & (second >= 0) & (second < 60)
    ms = np.rint(np.where(fine, second, 0.0) * 1_000).astype(np.int64)
    return np.where(fine, hour * 3_600_000 + minute * 60_000 + ms, 0), fine


def make_date(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """MAKE_DATE(year, month, day); an error where there is no such day in the years 1 to 9999."""
    days, fine = _date(*(argument.values for argument in arguments))
    return strict(arguments, DATE, days.astype(np.int32), ~fine)


def make_timestamp(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """MAKE_TIMESTAMP(year, month, day, hour, minute, seconds); seconds are rounded to milliseconds."""
    year, month, day, hour, minute, second = (argument.values for argument in arguments)
    days, fine = _date(year, month, day)
    ms, is_time = _time_of_day(hour, minute, second)
    values = np.where(fine & is_time, days * DAY_MS + ms, 0)
    return strict(arguments, TIMESTAMP, values, either(~(fine & is_time), outside(values)))


def make_time(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """MAKE_TIME(hour, minute, seconds); seconds are rounded to milliseconds."""
    ms, fine = _time_of_day(*(argument.values for argument in arguments))
    return strict(arguments, TIME, ms, ~fine | (ms >= DAY_MS))


def last_day(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """LAST_DAY(t): the last day of the month."""
    return strict(arguments, DATE, (first_day(month_index(arguments[0].values) + 1) - 1).astype(np.int32))


def months_between(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """MONTHS_BETWEEN(a, b): whole where both are the same day of a month, or both the last; else a day is the
    31st part of a month.
    """
    a, b = arguments[0].values, arguments[1].values
    months = (month_index(a) - month_index(b)).astype(np.float64)
    day_a, day_b = day_of_month(a), day_of_month(b)
    whole = (day_a == day_b) | (_is_last(a) & _is_last(b))
    ms = (day_a - day_b) * DAY_MS + a % DAY_MS - b % DAY_MS
    return strict(arguments, DOUBLE, np.where(whole, months, months + ms / (31 * DAY_MS)))


def _is_last(ms: Array) -> Array:
    return np.asarray(month_index(ms + DAY_MS) != month_index(ms))


_COUNTED: dict[str, Callable[[Array], Array]] = {
    "DECADE": EXTRACTED["DECADE"],
    "YEAR": EXTRACTED["YEAR"],
    "QUARTER": lambda ms: np.asarray(month_index(ms) // 3),
    "MONTH": month_index,
    "WEEK": lambda ms: np.asarray((days_of(ms) + 3) // 7),
    "DAY": days_of,
    "HOUR": lambda ms: np.asarray(ms // 3_600_000),
    "MINUTE": lambda ms: np.asarray(ms // 60_000),
    "SECOND": lambda ms: np.asarray(ms // 1_000),
    "MILLISECOND": lambda ms: ms,
}


def date_diff(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """DATE_DIFF(part, a, b): how often a part begins behind a, up to b."""
    count = _COUNTED[of_part(arguments[0])]
    return strict(arguments[1:], BIGINT, count(arguments[2].values) - count(arguments[1].values))


def timestamp_diff(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """TIMESTAMPDIFF(part, a, b): how many whole parts lie between a and b."""
    part, a, b = of_part(arguments[0]), arguments[1], arguments[2]
    low, high = np.minimum(a.values, b.values), np.maximum(a.values, b.values)
    if part in MILLISECONDS:
        values = (high - low) // MILLISECONDS[part]
    else:
        months = month_index(high) - month_index(low)
        moved = add_months([Vector(TIMESTAMP, low), Vector(BIGINT, months)], TIMESTAMP, n).values
        values = (months - (moved > high)) // MONTHS[part]
    return strict(arguments[1:], BIGINT, np.where(a.values > b.values, -values, values))


def date_bin(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """DATE_BIN(ms, t, origin): the last instant up to t that is whole strides from the origin; an error
    for a stride of no length, and outside the years 1 to 9999.
    """
    stride, ms = arguments[0].values, arguments[1].values
    origin = arguments[2].values if len(arguments) == 3 else np.zeros(1, np.int64)
    wrong = stride <= 0
    values = np.asarray(ms - (ms - origin) % np.where(wrong, 1, stride))
    return strict(arguments, TIMESTAMP, values, either(wrong, outside(values)))


def month_bin(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """MONTH_BIN(months, t): the first of a month, whole strides from January 2000."""
    stride, month = arguments[0].values, month_index(arguments[1].values)
    wrong = stride <= 0
    begin = month - (month - 360) % np.where(wrong, 1, stride)
    values = first_day(np.clip(begin, -MONTHS_MAX, MONTHS_MAX)) * DAY_MS
    return strict(arguments, TIMESTAMP, values, either(wrong, outside(values)))


def of_seconds(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """TO_TIMESTAMP of seconds."""
    limit = TIMESTAMP_MS_MAX // 1_000 + 1
    seconds = arguments[0].values
    wrong = ~_within(seconds, TIMESTAMP_MS_MIN // 1_000, limit - 1)
    return strict(arguments, TIMESTAMP, np.where(wrong, 0, seconds) * 1_000, wrong)


def day_names(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """DAYNAME: Monday and so on."""
    return _named(arguments, (days_of(arguments[0].values) + 3) % 7, DAY_NAMES)


def month_names(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """MONTHNAME: January and so on."""
    return _named(arguments, month_index(arguments[0].values) % 12, MONTH_NAMES)


def _named(arguments: Sequence[Vector], codes: Array, names: Sequence[str]) -> Vector:
    return strict(arguments, STRING, codes.astype(np.int32), None, pa.array(list(names), pa.string()))

"""Functions of timestamps: all in UTC, on milliseconds since 1970."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from engine.language.evaluation.vector import Array, Vector, strict
from engine.language.instants import DAY_MS
from engine.model.types import BIGINT, TIMESTAMP, TIMESTAMP_MS_MAX, TIMESTAMP_MS_MIN, Type

MONTHS_MAX = 12 * 9_999
"""So many months later, or before, no year is left that an instant may lie in."""

#: Parts as written -> the part.
PARTS: dict[str, str] = {
    "year": "YEAR",
    "quarter": "QUARTER",
    "month": "MONTH",
    "week": "WEEK",
    "day": "DAY",
    "dow": "DOW",
    "dayofweek": "DOW",
    "isodow": "ISODOW",
    "doy": "DOY",
    "dayofyear": "DOY",
    "hour": "HOUR",
    "minute": "MINUTE",
    "second": "SECOND",
    "millisecond": "MILLISECOND",
    "milliseconds": "MILLISECOND",
    "epoch": "EPOCH",
}


def _days(ms: Array) -> Array:
    return np.floor_divide(ms, DAY_MS)


def _as_days(ms: Array) -> Array:
    return _days(ms).astype("datetime64[D]")


def _month_index(ms: Array) -> Array:
    """Months since January 1970."""
    return _as_days(ms).astype("datetime64[M]").astype(np.int64)


def _year(ms: Array) -> Array:
    return np.asarray(_as_days(ms).astype("datetime64[Y]").astype(np.int64) + 1970)


def _day_of_month(ms: Array) -> Array:
    days = _as_days(ms)
    return np.asarray((days - days.astype("datetime64[M]").astype("datetime64[D]")).astype(np.int64) + 1)


def _day_of_year(ms: Array) -> Array:
    days = _as_days(ms)
    return np.asarray((days - days.astype("datetime64[Y]").astype("datetime64[D]")).astype(np.int64) + 1)


def _iso_week(ms: Array) -> Array:
    """The week that holds this week's Thursday counts in the Thursday's year."""
    days = _days(ms)
    thursday = days - (days + 3) % 7 + 3
    return np.asarray((_day_of_year(thursday * DAY_MS) - 1) // 7 + 1)


EXTRACTED: dict[str, Callable[[Array], Array]] = {
    "YEAR": _year,
    "QUARTER": lambda ms: np.asarray(_month_index(ms) % 12 // 3 + 1),
    "MONTH": lambda ms: np.asarray(_month_index(ms) % 12 + 1),
    "WEEK": _iso_week,
    "DAY": _day_of_month,
    "DOW": lambda ms: np.asarray((_days(ms) + 4) % 7),
    "ISODOW": lambda ms: np.asarray((_days(ms) + 3) % 7 + 1),
    "DOY": _day_of_year,
    "HOUR": lambda ms: np.asarray(ms % DAY_MS // 3_600_000),
    "MINUTE": lambda ms: np.asarray(ms % 3_600_000 // 60_000),
    "SECOND": lambda ms: np.asarray(ms % 60_000 // 1_000),
    "MILLISECOND": lambda ms: np.asarray(ms % 60_000),
    "EPOCH": lambda ms: np.floor_divide(ms, 1_000),
}


def _to_unit(unit: str) -> Callable[[Array], Array]:
    return lambda ms: (
        _as_days(ms).astype(f"datetime64[{unit}]").astype("datetime64[D]").astype(np.int64) * DAY_MS
    )


def _quarter(ms: Array) -> Array:
    return np.asarray(_first_day(_month_index(ms) // 3 * 3) * DAY_MS)


TRUNCATED: dict[str, Callable[[Array], Array]] = {
    "YEAR": _to_unit("Y"),
    "QUARTER": _quarter,
    "MONTH": _to_unit("M"),
    "WEEK": lambda ms: np.asarray((_days(ms) - (_days(ms) + 3) % 7) * DAY_MS),
    "DAY": lambda ms: np.asarray(_days(ms) * DAY_MS),
    "HOUR": lambda ms: np.asarray(ms // 3_600_000 * 3_600_000),
    "MINUTE": lambda ms: np.asarray(ms // 60_000 * 60_000),
    "SECOND": lambda ms: np.asarray(ms // 1_000 * 1_000),
}


def extract(part: str, operand: Vector, type_: Type) -> Vector:
    """One part of each timestamp."""
    return strict([operand], BIGINT, EXTRACTED[part](operand.values).astype(np.int64))


def _part(argument: Vector) -> str:
    assert argument.dictionary is not None
    return str(argument.dictionary[0].as_py())


def extract_part(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """EXTRACT."""
    return extract(_part(arguments[0]), arguments[1], type_)


def truncate(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """DATE_TRUNC; weeks begin on Monday. A week that begins before year 1 is an error."""
    values = TRUNCATED[_part(arguments[0])](arguments[1].values)
    return strict(arguments[1:], TIMESTAMP, values, _outside(values))


def add_months(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """ADD_MONTHS; a day that a month does not have becomes its last. An error outside the years 1 to 9999."""
    ms = arguments[0].values
    month = _month_index(ms) + np.clip(arguments[1].values, -MONTHS_MAX, MONTHS_MAX)
    first, following = _first_day(month), _first_day(month + 1)
    values = np.minimum(first + _day_of_month(ms), following) - 1
    values = np.asarray(values * DAY_MS + ms % DAY_MS)
    return strict(arguments, TIMESTAMP, values, _outside(values))


def _first_day(month: Array) -> Array:
    """Days since 1970 of the first of a month, which is counted from January 1970."""
    return np.asarray(month.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64))


def from_epoch(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """TO_TIMESTAMP; an error outside the years 1 to 9999."""
    values = arguments[0].values
    return strict(arguments, TIMESTAMP, values, _outside(values))


def to_epoch(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """EPOCH_MS."""
    return strict(arguments, BIGINT, arguments[0].values)


def _outside(values: Array) -> Array | None:
    outside = (values < TIMESTAMP_MS_MIN) | (values > TIMESTAMP_MS_MAX)
    return outside if outside.any() else None

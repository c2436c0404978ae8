"""Functions of timestamps: all in UTC, on milliseconds since 1970."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from engine.language.evaluation.vector import Array, Vector, strict
from engine.language.instants import DAY_MS
from engine.model.types import BIGINT, TIMESTAMP, TIMESTAMP_MS_MAX, TIMESTAMP_MS_MIN, Type

MONTHS_MAX = 12 * 9_999
"""So many months later, or before, no year is left that an instant may lie in."""

_SINGULAR: dict[str, str] = {
    "millennium": "MILLENNIUM",
    "century": "CENTURY",
    "decade": "DECADE",
    "year": "YEAR",
    "isoyear": "ISOYEAR",
    "quarter": "QUARTER",
    "month": "MONTH",
    "week": "WEEK",
    "isoweek": "WEEK",
    "weekofyear": "WEEK",
    "day": "DAY",
    "dayofmonth": "DAY",
    "dow": "DOW",
    "dayofweek": "DOW",
    "isodow": "ISODOW",
    "doy": "DOY",
    "dayofyear": "DOY",
    "hour": "HOUR",
    "minute": "MINUTE",
    "second": "SECOND",
    "millisecond": "MILLISECOND",
    "microsecond": "MICROSECOND",
    "epoch": "EPOCH",
}
_LENGTHS = (
    "DECADE",
    "YEAR",
    "QUARTER",
    "MONTH",
    "WEEK",
    "DAY",
    "HOUR",
    "MINUTE",
    "SECOND",
    "MILLISECOND",
    "MICROSECOND",
)
#: Parts as written -> the part.
PARTS: dict[str, str] = {
    **_SINGULAR,
    **{part.lower() + "s": part for part in _LENGTHS},
    "millennia": "MILLENNIUM",
    "centuries": "CENTURY",
    "ms": "MILLISECOND",
    "us": "MICROSECOND",
}


def days_of(ms: Array) -> Array:
    """Days since 1970."""
    return np.floor_divide(ms, DAY_MS)


def _as_days(ms: Array) -> Array:
    return days_of(ms).astype("datetime64[D]")


def month_index(ms: Array) -> Array:
    """Months since January 1970."""
    return _as_days(ms).astype("datetime64[M]").astype(np.int64)


def _year(ms: Array) -> Array:
    return np.asarray(_as_days(ms).astype("datetime64[Y]").astype(np.int64) + 1970)


def day_of_month(ms: Array) -> Array:
    """From 1 on."""
    days = _as_days(ms)
    return np.asarray((days - days.astype("datetime64[M]").astype("datetime64[D]")).astype(np.int64) + 1)


def _day_of_year(ms: Array) -> Array:
    days = _as_days(ms)
    return np.asarray((days - days.astype("datetime64[Y]").astype("datetime64[D]")).astype(np.int64) + 1)


def _thursday(ms: Array) -> Array:
    """Midnight of the Thursday of a week; the week counts in the year of that."""
    days = days_of(ms)
    return np.asarray((days - (days + 3) % 7 + 3) * DAY_MS)


EXTRACTED: dict[str, Callable[[Array], Array]] = {
    "MILLENNIUM": lambda ms: np.asarray((_year(ms) + 999) // 1_000),
    "CENTURY": lambda ms: np.asarray((_year(ms) + 99) // 100),
    "DECADE": lambda ms: np.asarray(_year(ms) // 10),
    "YEAR": _year,
    "ISOYEAR": lambda ms: _year(_thursday(ms)),
    "QUARTER": lambda ms: np.asarray(month_index(ms) % 12 // 3 + 1),
    "MONTH": lambda ms: np.asarray(month_index(ms) % 12 + 1),
    "WEEK": lambda ms: np.asarray((_day_of_year(_thursday(ms)) - 1) // 7 + 1),
    "DAY": day_of_month,
    "DOW": lambda ms: np.asarray((days_of(ms) + 4) % 7),
    "ISODOW": lambda ms: np.asarray((days_of(ms) + 3) % 7 + 1),
    "DOY": _day_of_year,
    "HOUR": lambda ms: np.asarray(ms % DAY_MS // 3_600_000),
    "MINUTE": lambda ms: np.asarray(ms % 3_600_000 // 60_000),
    "SECOND": lambda ms: np.asarray(ms % 60_000 // 1_000),
    "MILLISECOND": lambda ms: np.asarray(ms % 60_000),
    "MICROSECOND": lambda ms: np.asarray(ms % 60_000 * 1_000),
    "EPOCH": lambda ms: np.floor_divide(ms, 1_000),
}


def _to_unit(unit: str) -> Callable[[Array], Array]:
    return lambda ms: (
        _as_days(ms).astype(f"datetime64[{unit}]").astype("datetime64[D]").astype(np.int64) * DAY_MS
    )


def _quarter(ms: Array) -> Array:
    return np.asarray(first_day(month_index(ms) // 3 * 3) * DAY_MS)


def _monday(ms: Array) -> Array:
    return np.asarray((days_of(ms) - (days_of(ms) + 3) % 7) * DAY_MS)


def _first_of_year(year: Array) -> Array:
    """Midnight of 1 January; before year 1 somewhere outside."""
    return np.asarray(first_day((year - 1970) * 12) * DAY_MS)


TRUNCATED: dict[str, Callable[[Array], Array]] = {
    "MILLENNIUM": lambda ms: _first_of_year((_year(ms) - 1) // 1_000 * 1_000 + 1),
    "CENTURY": lambda ms: _first_of_year((_year(ms) - 1) // 100 * 100 + 1),
    "DECADE": lambda ms: _first_of_year(_year(ms) // 10 * 10),
    "YEAR": _to_unit("Y"),
    "ISOYEAR": lambda ms: _monday(_first_of_year(_year(_thursday(ms))) + 3 * DAY_MS),
    "QUARTER": _quarter,
    "MONTH": _to_unit("M"),
    "WEEK": _monday,
    "DAY": lambda ms: np.asarray(days_of(ms) * DAY_MS),
    "HOUR": lambda ms: np.asarray(ms // 3_600_000 * 3_600_000),
    "MINUTE": lambda ms: np.asarray(ms // 60_000 * 60_000),
    "SECOND": lambda ms: np.asarray(ms // 1_000 * 1_000),
    "MILLISECOND": lambda ms: ms,
    "MICROSECOND": lambda ms: ms,
}


def extract(part: str, operand: Vector, type_: Type) -> Vector:
    """One part of each timestamp."""
    return strict([operand], BIGINT, EXTRACTED[part](operand.values).astype(np.int64))


def of_part(argument: Vector) -> str:
    """The part that a literal names."""
    assert argument.dictionary is not None
    return str(argument.dictionary[0].as_py())


def extract_part(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """EXTRACT."""
    return extract(of_part(arguments[0]), arguments[1], type_)


def add_months(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """ADD_MONTHS; a day that a month does not have becomes its last. An error outside the years 1 to 9999."""
    ms = arguments[0].values
    month = month_index(ms) + np.clip(arguments[1].values, -MONTHS_MAX, MONTHS_MAX)
    first, following = first_day(month), first_day(month + 1)
    values = np.minimum(first + day_of_month(ms), following) - 1
    values = np.asarray(values * DAY_MS + ms % DAY_MS)
    return strict(arguments, TIMESTAMP, values, outside(values))


def first_day(month: Array) -> Array:
    """Days since 1970 of the first of a month, which is counted from January 1970."""
    return np.asarray(month.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64))


def from_epoch(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """TO_TIMESTAMP; an error outside the years 1 to 9999."""
    values = arguments[0].values
    return strict(arguments, TIMESTAMP, values, outside(values))


def to_epoch(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """EPOCH_MS."""
    return strict(arguments, BIGINT, arguments[0].values)


def outside(values: Array) -> Array | None:
    """Where values are not in the years 1 to 9999; None: nowhere."""
    outside = (values < TIMESTAMP_MS_MIN) | (values > TIMESTAMP_MS_MAX)
    return outside if outside.any() else None

"""Functions that make dates and timestamps, and measure between them."""

from __future__ import annotations

from engine.language import signatures, time_signatures
from engine.language.evaluation import dates, temporal
from engine.language.scalar_functions.function import ScalarFunction, unreachable
from engine.language.scalar_functions.times import with_part
from engine.model.expressions import Arithmetic, Expression, Function, Literal
from engine.model.types import BIGINT, DATE, DOUBLE, STRING, TIME, TIMESTAMP, Type

_PATTERN = Literal("yyyy-MM-dd HH:mm:ss", STRING)


def _added(arguments: tuple[Expression, ...], type_: Type) -> Expression:
    """DATEADD: by months of the calendar, or by milliseconds."""
    unit, count, instant = arguments
    assert isinstance(unit, Literal)
    part = temporal.PARTS[str(unit.value).lower()]
    is_month = part in dates.MONTHS
    size = dates.MONTHS[part] if is_month else dates.MILLISECONDS[part]
    many = count if size == 1 else Arithmetic("*", count, Literal(size, BIGINT), BIGINT)
    if is_month:
        return Function("ADD_MONTHS", (instant, many), TIMESTAMP)
    epoch_ms = Function("EPOCH_MS", (instant,), BIGINT)
    return Function("TO_TIMESTAMP", (Arithmetic("+", epoch_ms, many, BIGINT),), TIMESTAMP)


def _difference(arguments: tuple[Expression, ...], type_: Type) -> Expression:
    """DATEDIFF: of two arguments the days from the second to the first, as MySQL and Spark have it."""
    if len(arguments) == 2:
        return Function("DATE_DIFF", (Literal("DAY", STRING), arguments[1], arguments[0]), BIGINT)
    return with_part("DATE_DIFF")(arguments, type_)


def _unix_text(arguments: tuple[Expression, ...], type_: Type) -> Expression:
    instant = Function("TIMESTAMP_SECONDS", arguments[:1], TIMESTAMP)
    return Function("DATE_FORMAT", (instant, arguments[1] if len(arguments) == 2 else _PATTERN), STRING)


def _seconds(arguments: tuple[Expression, ...], type_: Type) -> Expression:
    return Function("EXTRACT", (Literal("EPOCH", STRING), *arguments), BIGINT)


def _with_precision(arguments: tuple[Expression, ...], type_: Type) -> Expression:
    count, precision = arguments
    name = "TO_TIMESTAMP" if isinstance(precision, Literal) and precision.value else "TIMESTAMP_SECONDS"
    return Function(name, (count,), TIMESTAMP)


def _between_zones(arguments: tuple[Expression, ...], type_: Type) -> Expression:
    instant, before, behind = arguments
    return Function(
        "FROM_UTC_TIMESTAMP", (Function("TO_UTC_TIMESTAMP", (instant, before), TIMESTAMP), behind), TIMESTAMP
    )


DATES = (
    ScalarFunction(
        "MAKE_DATE",
        3,
        3,
        signatures.typed(DATE, BIGINT),
        dates.make_date,
        "MAKE_DATE(year, month, day)",
        "a DATE; an error where there is no such day",
    ),
    ScalarFunction(
        "MAKE_TIMESTAMP",
        6,
        6,
        signatures.typed(TIMESTAMP, BIGINT, BIGINT, BIGINT, BIGINT, BIGINT, DOUBLE),
        dates.make_timestamp,
        "MAKE_TIMESTAMP(year, month, day, hour, minute, second)",
        "a TIMESTAMP; seconds are rounded to milliseconds; an error where there is no such instant",
    ),
    ScalarFunction(
        "MAKE_TIME",
        3,
        3,
        signatures.typed(TIME, BIGINT, BIGINT, DOUBLE),
        dates.make_time,
        "MAKE_TIME(hour, minute, second)",
        "a TIME; seconds are rounded to milliseconds; an error where there is no such time of the day",
    ),
    ScalarFunction(
        "DATE_BIN",
        2,
        3,
        time_signatures.strided,
        dates.date_bin,
        "DATE_BIN(INTERVAL '5' MINUTE, t [, origin])",
        "the last instant at or before t that is whole strides from the origin, 1970 without one; an error "
        "for a stride of no length",
    ),
    ScalarFunction(
        "MONTH_BIN",
        2,
        2,
        signatures.typed(TIMESTAMP, BIGINT, TIMESTAMP),
        dates.month_bin,
        "MONTH_BIN(n, t)",
        "the same in strides of n months from January 2000; also TIME_BUCKET(INTERVAL '3' MONTH, t)",
    ),
    ScalarFunction(
        "DATE_DIFF",
        3,
        3,
        time_signatures.of_unit(BIGINT, TIMESTAMP, TIMESTAMP),
        dates.date_diff,
        "DATE_DIFF('day', a, b)",
        "how often a part begins from a to b: " + ", ".join(dates.UNITS),
        with_part("DATE_DIFF"),
    ),
    ScalarFunction(
        "DATEDIFF",
        2,
        3,
        time_signatures.days_or_unit,
        unreachable,
        "DATEDIFF(b, a), DATEDIFF(day, a, b)",
        "DATE_DIFF; the days from a to b",
        _difference,
    ),
    ScalarFunction(
        "TIMESTAMPDIFF",
        3,
        3,
        time_signatures.of_unit(BIGINT, TIMESTAMP, TIMESTAMP),
        dates.timestamp_diff,
        "TIMESTAMPDIFF(HOUR, a, b)",
        "how many whole parts lie between a and b, negative where b is earlier",
        with_part("TIMESTAMPDIFF"),
    ),
    ScalarFunction(
        "DATEADD",
        3,
        3,
        time_signatures.of_unit(TIMESTAMP, BIGINT, TIMESTAMP),
        unreachable,
        "DATEADD(day, n, t)",
        "t so many parts later: t + n * INTERVAL '1' DAY; also DATE_ADD(t, INTERVAL '5' DAY), and "
        "DATE_ADD(t, n) for days",
        _added,
    ),
    ScalarFunction(
        "LAST_DAY",
        1,
        1,
        signatures.typed(DATE, TIMESTAMP),
        dates.last_day,
        "LAST_DAY(t)",
        "the last day of the month",
    ),
    ScalarFunction(
        "MONTHS_BETWEEN",
        2,
        2,
        signatures.typed(DOUBLE, TIMESTAMP),
        dates.months_between,
        "MONTHS_BETWEEN(a, b)",
        "months from b to a: whole where both are one day of a month, or both the last; else in parts of "
        "31 days",
    ),
    ScalarFunction(
        "DAYNAME",
        1,
        1,
        signatures.typed(STRING, TIMESTAMP),
        dates.day_names,
        "DAYNAME(t)",
        "Monday and so on",
    ),
    ScalarFunction(
        "MONTHNAME",
        1,
        1,
        signatures.typed(STRING, TIMESTAMP),
        dates.month_names,
        "MONTHNAME(t)",
        "January and so on",
    ),
    ScalarFunction(
        "TIMESTAMP_SECONDS",
        1,
        1,
        signatures.typed(TIMESTAMP, BIGINT),
        dates.of_seconds,
        "TIMESTAMP_SECONDS(n)",
        "the TIMESTAMP so many seconds after 1970; an error outside the years 1 to 9999",
    ),
    ScalarFunction(
        "TO_TIMESTAMP_LTZ",
        2,
        2,
        time_signatures.with_precision,
        unreachable,
        "TO_TIMESTAMP_LTZ(n, 3)",
        "the TIMESTAMP so many milliseconds (3) or seconds (0) after 1970",
        _with_precision,
    ),
    ScalarFunction(
        "FROM_UNIXTIME",
        1,
        2,
        time_signatures.unix_time,
        unreachable,
        "FROM_UNIXTIME(n [, 'yyyy-MM-dd'])",
        "the instant n seconds after 1970 as text: DATE_FORMAT(TIMESTAMP_SECONDS(n), 'yyyy-MM-dd HH:mm:ss')",
        _unix_text,
    ),
    ScalarFunction(
        "UNIX_TIMESTAMP",
        1,
        1,
        signatures.calendar,
        unreachable,
        "UNIX_TIMESTAMP(t)",
        "whole seconds since 1970: EXTRACT(EPOCH FROM t)",
        _seconds,
    ),
    ScalarFunction(
        "CONVERT_TZ",
        3,
        3,
        time_signatures.in_zone,
        unreachable,
        "CONVERT_TZ(t, 'Europe/Berlin', 'UTC')",
        "what a clock in the second zone shows when one in the first shows t",
        _between_zones,
    ),
)

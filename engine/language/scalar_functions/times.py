"""Functions of timestamps."""

from __future__ import annotations

from collections.abc import Sequence

from engine.language import lengths, signatures, time_signatures
from engine.language.evaluation import formats, parsed_times, temporal, zones
from engine.language.evaluation.vector import Vector
from engine.language.scalar_functions.function import Build, Kernel, ScalarFunction
from engine.model.expressions import Cast, Expression, Function, Literal
from engine.model.types import DATE, INTERVAL, STRING, TIME, TIMESTAMP, Type


def _fraction(kind: str) -> Kernel:
    return lambda arguments, type_, n: temporal.extract(kind, arguments[0], type_)


def with_part(name: str) -> Build:
    """A call whose first argument is a part's one name."""

    def build(arguments: tuple[Expression, ...], type_: Type) -> Expression:
        part = arguments[0]
        assert isinstance(part, Literal)
        known = temporal.PARTS[str(part.value).lower()]
        return Function(name, (Literal(known, STRING), *arguments[1:]), type_)

    return build


def _extracted(arguments: tuple[Expression, ...], type_: Type) -> Expression:
    """EXTRACT, of an INTERVAL by arithmetic."""
    found = with_part("EXTRACT")(arguments, type_)
    assert isinstance(found, Function)
    part, of = found.arguments
    if of.type in (INTERVAL, TIME) and isinstance(part, Literal):
        return lengths.part_of(str(part.value), of)
    return found


def _to_timestamp(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    if len(arguments) == 2:
        return parsed_times.to_instant(arguments, type_, n)
    return temporal.from_epoch(arguments, type_, n)


def _read(name: str) -> Build:
    """A call that reads text, which is a cast without a pattern."""

    def build(arguments: tuple[Expression, ...], type_: Type) -> Expression:
        if len(arguments) == 2 or (name == "TO_TIMESTAMP" and arguments[0].type != STRING):
            return Function(name, arguments, type_)
        return arguments[0] if arguments[0].type == type_ else Cast(arguments[0], type_)

    return build


_PARTS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")

TIMES = (
    ScalarFunction(
        "DATE_FORMAT",
        2,
        2,
        signatures.formatted(formats.java_parts, formats.DATE_FORMAT),
        formats.date_format,
        "DATE_FORMAT(t, 'yyyy-MM-dd')",
        "t as text, in Java's pattern letters: " + ", ".join(formats.DATE_FORMAT),
    ),
    ScalarFunction(
        "TO_CHAR",
        2,
        2,
        signatures.formatted(formats.postgres_parts, formats.TO_CHAR),
        formats.to_char,
        "TO_CHAR(t, 'YYYY-MM-DD')",
        "t as text, in PostgreSQL's pattern letters: " + ", ".join(formats.TO_CHAR),
    ),
    ScalarFunction(
        "STRFTIME",
        2,
        2,
        time_signatures.either_way,
        formats.strftime,
        "STRFTIME(t, '%Y-%m-%d')",
        "t as text, in C's pattern letters: " + ", ".join(formats.STRFTIME) + ", %%",
    ),
    ScalarFunction(
        "EXTRACT",
        2,
        2,
        time_signatures.part_of,
        temporal.extract_part,
        "EXTRACT(part FROM t)",
        "a part of a timestamp as BIGINT: "
        + ", ".join(temporal.EXTRACTED)
        + "; of an INTERVAL "
        + ", ".join(lengths.PARTS),
        _extracted,
    ),
    *(
        ScalarFunction(
            part, 1, 1, signatures.calendar, _fraction(part), f"{part}(t)", f"EXTRACT({part} FROM t)"
        )
        for part in _PARTS
    ),
    ScalarFunction(
        "DAYOFYEAR", 1, 1, signatures.calendar, _fraction("DOY"), "DAYOFYEAR(t)", "EXTRACT(DOY FROM t)"
    ),
    ScalarFunction(
        "DATE_TRUNC",
        2,
        3,
        time_signatures.truncated,
        zones.truncate,
        "DATE_TRUNC('hour', t [, zone])",
        "the beginning of the part that t lies in, in UTC or in a zone; an error before year 1: "
        + ", ".join(temporal.TRUNCATED),
        with_part("DATE_TRUNC"),
    ),
    ScalarFunction(
        "TO_TIMESTAMP",
        1,
        2,
        time_signatures.parsed(TIMESTAMP),
        _to_timestamp,
        "TO_TIMESTAMP(ms), TO_TIMESTAMP(s [, pattern])",
        "the TIMESTAMP so many milliseconds after 1970; text as a TIMESTAMP, in the form 2024-01-31 12:00:00 "
        "or in that of a pattern; an error outside the years 1 to 9999",
        _read("TO_TIMESTAMP"),
    ),
    ScalarFunction(
        "TO_DATE",
        1,
        2,
        time_signatures.parsed(DATE),
        parsed_times.to_date,
        "TO_DATE(s [, pattern])",
        "text as a DATE",
        _read("TO_DATE"),
    ),
    ScalarFunction(
        "EPOCH_MS", 1, 1, signatures.calendar, temporal.to_epoch, "EPOCH_MS(t)", "milliseconds since 1970"
    ),
    ScalarFunction(
        "ADD_MONTHS",
        2,
        2,
        signatures.moved_by,
        temporal.add_months,
        "ADD_MONTHS(t, n)",
        "t so many months later: the same day, or the last of a month that is shorter; "
        "also t + INTERVAL '3' MONTH; an error outside the years 1 to 9999",
    ),
    ScalarFunction(
        "FROM_UTC_TIMESTAMP",
        2,
        2,
        time_signatures.in_zone,
        zones.from_utc,
        "FROM_UTC_TIMESTAMP(t, zone)",
        "what a clock in the zone shows at the instant t: t AT TIME ZONE zone",
    ),
    ScalarFunction(
        "TO_UTC_TIMESTAMP",
        2,
        2,
        time_signatures.in_zone,
        zones.to_utc,
        "TO_UTC_TIMESTAMP(t, zone)",
        "the instant at which a clock in the zone shows t; the later of two, and where the clock leaps over "
        "t as if it had not been put forward",
    ),
)

"""Type rules of functions of dates and timestamps."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence

from engine.language import lengths
from engine.language.evaluation import dates, formats, parsed_times, temporal
from engine.language.evaluation.zone_tables import zone_keys, zone_named
from engine.language.signatures import Signature, Types, Unfit, check_pattern, fits
from engine.model.expressions import Expression, Literal
from engine.model.types import BIGINT, DATE, INTERVAL, STRING, TIME, TIMESTAMP, Type

_PATTERNS = (
    "write the letters of Java ('yyyy-MM-dd HH:mm:ss'), of PostgreSQL ('YYYY-MM-DD HH24:MI:SS') or of C "
    "('%Y-%m-%d %H:%M:%S')"
)


def check_part(arguments: Sequence[Expression], known: Collection[str]) -> None:
    """Raise Unfit unless the first argument names one of these parts."""
    part = arguments[0]
    value = part.value if isinstance(part, Literal) else None
    if not isinstance(value, str) or temporal.PARTS.get(value.lower()) not in known:
        raise Unfit(0, "needs a part of a timestamp", "there are " + ", ".join(known))


def part_of(arguments: Sequence[Expression]) -> Types:
    """(part, TIMESTAMP, INTERVAL or TIME) to BIGINT."""
    type_ = arguments[1].type
    if type_ in (INTERVAL, TIME):
        check_part(arguments, [part for part in lengths.PARTS if type_ == INTERVAL or part != "DAY"])
        return [STRING, type_], BIGINT
    check_part(arguments, temporal.EXTRACTED)
    return [STRING, fits(arguments, 1, TIMESTAMP)], BIGINT


def truncated(arguments: Sequence[Expression]) -> Types:
    """(part, TIMESTAMP [, zone]) to TIMESTAMP."""
    check_part(arguments, temporal.TRUNCATED)
    zones = [zone(arguments, 2)] if len(arguments) == 3 else []
    return [STRING, fits(arguments, 1, TIMESTAMP), *zones], TIMESTAMP


def of_unit(result: Type, *targets: Type) -> Signature:
    """(a part that has a length, arguments of these types)."""

    def types(arguments: Sequence[Expression]) -> Types:
        check_part(arguments, dates.UNITS)
        return [STRING, *(fits(arguments, at + 1, target) for at, target in enumerate(targets))], result

    return types


def strided(arguments: Sequence[Expression]) -> Types:
    """(INTERVAL or milliseconds, TIMESTAMP [, TIMESTAMP]) to TIMESTAMP."""
    stride = BIGINT if arguments[0].type == INTERVAL else fits(arguments, 0, BIGINT)
    times = [fits(arguments, place, TIMESTAMP) for place in range(1, len(arguments))]
    return [stride, *times], TIMESTAMP


def days_or_unit(arguments: Sequence[Expression]) -> Types:
    """(TIMESTAMP, TIMESTAMP), or a part that has a length before them, to BIGINT."""
    if len(arguments) == 2:
        return [fits(arguments, 0, TIMESTAMP), fits(arguments, 1, TIMESTAMP)], BIGINT
    return of_unit(BIGINT, TIMESTAMP, TIMESTAMP)(arguments)


def in_zone(arguments: Sequence[Expression]) -> Types:
    """(TIMESTAMP, zone [, zone]) to TIMESTAMP."""
    zones = [zone(arguments, place) for place in range(1, len(arguments))]
    return [fits(arguments, 0, TIMESTAMP), *zones], TIMESTAMP


def zone(arguments: Sequence[Expression], place: int) -> Type:
    """STRING; raises Unfit for a literal that is no zone's name."""
    type_, argument = fits(arguments, place, STRING), arguments[place]
    name = argument.value if isinstance(argument, Literal) else None
    if isinstance(name, str) and zone_named(name) is None:
        raise Unfit(place, f"there is no time zone named {name[:40]!r}", _zone_instead(name.lower()))
    return type_


def _zone_instead(name: str) -> str:
    """What to write for a zone that is none. An abbreviation is like others that are hours away."""
    if name in _ABBREVIATED:
        return f"write {_ABBREVIATED[name]!r}, which knows of summer time, or an offset such as '+02:00'"
    city = next((key for key in zone_keys() if key.endswith(f"/{name.replace(' ', '_')}")), None)
    close = [city] if city else difflib.get_close_matches(name, zone_keys(), 1) if len(name) > 5 else []
    return f"did you mean {zone_keys()[close[0]]!r}?" if close else "write 'Europe/Berlin', 'UTC' or '+02:00'"


_ABBREVIATED = {
    **dict.fromkeys(("pst", "pdt"), "America/Los_Angeles"),
    "mdt": "America/Denver",
    **dict.fromkeys(("cst", "cdt"), "America/Chicago"),
    "edt": "America/New_York",
    "bst": "Europe/London",
    "cest": "Europe/Berlin",
    "ist": "Asia/Kolkata",
    "jst": "Asia/Tokyo",
    "aest": "Australia/Sydney",
}
"""Names of times that are no zones -> a zone that has this time."""


def parsed(result: Type) -> Signature:
    """(STRING [, a pattern]) to DATE or TIMESTAMP; for TIMESTAMP also (BIGINT), milliseconds."""

    def types(arguments: Sequence[Expression]) -> Types:
        if len(arguments) == 2:
            check_pattern(arguments, 1, parsed_times.matcher, _PATTERNS)
            return [fits(arguments, 0, STRING), STRING], result
        type_ = arguments[0].type
        if result == DATE:
            return [type_ if type_ in (DATE, TIMESTAMP) else fits(arguments, 0, STRING)], DATE
        return [STRING if type_ == STRING else fits(arguments, 0, BIGINT)], TIMESTAMP

    return types


def either_way(arguments: Sequence[Expression]) -> Types:
    """(TIMESTAMP, a pattern of STRFTIME) to STRING, or the pattern first."""
    first = 0 if isinstance(arguments[1], Literal) and arguments[1].type == STRING else 1
    check_pattern(arguments, 1 - first, formats.c_parts, "there are " + ", ".join(formats.STRFTIME))
    types = [STRING, STRING]
    types[first] = fits(arguments, first, TIMESTAMP)
    return types, STRING


def unix_time(arguments: Sequence[Expression]) -> Types:
    """(BIGINT [, a pattern of DATE_FORMAT]) to STRING."""
    if len(arguments) == 1:
        return [fits(arguments, 0, BIGINT)], STRING
    check_pattern(arguments, 1, formats.java_parts, "there are " + ", ".join(formats.DATE_FORMAT))
    return [fits(arguments, 0, BIGINT), STRING], STRING


def with_precision(arguments: Sequence[Expression]) -> Types:
    """(BIGINT, 0 or 3) to TIMESTAMP."""
    precision = arguments[1].value if isinstance(arguments[1], Literal) else None
    if precision not in (0, 3):
        raise Unfit(1, "needs 0 for seconds or 3 for milliseconds")
    return [fits(arguments, 0, BIGINT), arguments[1].type], TIMESTAMP

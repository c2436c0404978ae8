"""Functions of timestamps."""

from __future__ import annotations

from engine.language import signatures
from engine.language.evaluation import formats, temporal
from engine.language.scalar_functions.function import Build, Kernel, ScalarFunction
from engine.model.expressions import Expression, Function, Literal
from engine.model.types import STRING, Type


def _fraction(kind: str) -> Kernel:
    return lambda arguments, type_, n: temporal.extract(kind, arguments[0], type_)


def _with_part(name: str) -> Build:
    """A call whose first argument is a part's one name."""

    def build(arguments: tuple[Expression, ...], type_: Type) -> Expression:
        part = arguments[0]
        assert isinstance(part, Literal)
        known = temporal.PARTS[str(part.value).lower()]
        return Function(name, (Literal(known, STRING), *arguments[1:]), type_)

    return build


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
        "EXTRACT",
        2,
        2,
        signatures.part_of,
        temporal.extract_part,
        "EXTRACT(part FROM t)",
        "a part of a timestamp as BIGINT: " + ", ".join(temporal.EXTRACTED),
        _with_part("EXTRACT"),
    ),
    *(
        ScalarFunction(
            part, 1, 1, signatures.calendar, _fraction(part), f"{part}(t)", f"EXTRACT({part} FROM t)"
        )
        for part in ("YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
    ),
    ScalarFunction(
        "DATE_TRUNC",
        2,
        2,
        signatures.truncated,
        temporal.truncate,
        "DATE_TRUNC('hour', t)",
        "the beginning of the part that t lies in: " + ", ".join(temporal.TRUNCATED),
        _with_part("DATE_TRUNC"),
    ),
    ScalarFunction(
        "TO_TIMESTAMP",
        1,
        1,
        signatures.from_epoch,
        temporal.from_epoch,
        "TO_TIMESTAMP(ms)",
        "the TIMESTAMP so many milliseconds after 1970; an error outside the years 1 to 9999",
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
)

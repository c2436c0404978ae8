"""Literals: what a number is, and what a string becomes beside a date or a timestamp."""

from __future__ import annotations

from decimal import Decimal

from engine.language.evaluation.nested import converted
from engine.language.instants import parse_date, parse_time, parse_timestamp
from engine.language.places import Place, shown
from engine.model.expressions import Literal
from engine.model.nested.canonical import Misfit
from engine.model.types import (
    BIGINT,
    BYTES,
    DATE,
    DECIMAL_DIGITS_MAX,
    DOUBLE,
    INTEGER,
    TIME,
    TIMESTAMP,
    Kind,
    Logical,
    Type,
    decimal,
)
from tureen.errors import TypeMismatch

INTEGER_MAX = 2**31 - 1
BIGINT_MAX = 2**63 - 1


def number_literal(text: str, negative: bool, place: Place) -> Literal:
    """The narrowest of INTEGER, BIGINT; DECIMAL for what has a point; DOUBLE for exponents and many
    digits.
    """
    if "e" in text.lower():
        value = float(text)
        if value in (float("inf"), 0.0) and value != 0.0:
            raise place.refuse(TypeMismatch, "this number does not fit a DOUBLE")
        return Literal(-value if negative else value, DOUBLE)
    if "." in text:
        whole, _, fraction = text.partition(".")
        digits = (whole + fraction).lstrip("0")
        if len(digits) > DECIMAL_DIGITS_MAX or len(fraction) > DECIMAL_DIGITS_MAX:
            value = float(text)
            if value == float("inf"):
                raise place.refuse(TypeMismatch, "this number does not fit a DOUBLE")
            return Literal(-value if negative else value, DOUBLE)
        exact = Decimal(f"{whole or '0'}.{fraction or '0'}") if fraction else Decimal(whole)
        precision = max(len(digits), len(fraction), 1)
        return Literal(-exact if negative else exact, decimal(precision, len(fraction)))
    significant = text.lstrip("0") or "0"
    whole_number = int(significant) if len(significant) <= 20 else BIGINT_MAX * 4
    if whole_number > BIGINT_MAX + negative:
        raise place.refuse(
            TypeMismatch,
            "this number does not fit a BIGINT",
            hint="write it with an exponent, such as 1e19, as a DOUBLE",
        )
    signed = -whole_number if negative else whole_number
    return Literal(signed, INTEGER if -INTEGER_MAX - 1 <= signed <= INTEGER_MAX else BIGINT)


def instant_literal(literal: Literal, wanted: Type, place: Place) -> Literal:
    """A string as DATE or TIMESTAMP; for DATE one with a time of day becomes a TIMESTAMP. Raises
    TypeMismatch.
    """
    return literal.through(_instant, wanted, place)


def _instant(literal: Literal, wanted: Type, place: Place) -> Literal:
    text = str(literal.value)
    if wanted.kind is Kind.TIME:
        of_day = parse_time(text)
        if of_day is None:
            raise place.refuse(
                TypeMismatch, f"'{shown(text)}' is not a TIME", hint="write it as '09:30' or '09:30:15.250'"
            )
        return Literal(of_day, TIME)
    if wanted.kind is Kind.DATE:
        days = parse_date(text)
        if days is not None:
            return Literal(days, DATE)
    ms = parse_timestamp(text)
    if ms is None:
        example = "2024-01-31" if wanted.kind is Kind.DATE else "2024-01-31 12:00:00"
        raise place.refuse(
            TypeMismatch, f"'{shown(text)}' is not a {wanted}", hint=f"write it as '{example}', in UTC"
        )
    return Literal(ms, TIMESTAMP)


def logical_literal(literal: Literal, wanted: Type, place: Place) -> Literal:
    """A string as a value of a logical type. Raises TypeMismatch."""
    return literal.through(_logical, wanted, place)


def _logical(literal: Literal, wanted: Type, place: Place) -> Literal:
    assert wanted.logical is not None
    text = str(literal.value)
    if wanted.logical is Logical.BYTES and text.startswith("\\x"):
        return _hexadecimal(text, place)
    try:
        return Literal(converted(literal.value, literal.type, wanted), wanted)
    except Misfit as misfit:
        raise place.refuse(
            TypeMismatch, f"'{shown(text)}' is not {wanted}: {misfit}", hint=_LOGICAL[wanted.logical]
        ) from None


def _hexadecimal(text: str, place: Place) -> Literal:
    """BYTES as PostgreSQL writes them: ``\\x`` and pairs of digits."""
    try:
        return Literal(bytes.fromhex(text[2:]).hex(), BYTES)
    except ValueError:
        raise place.refuse(
            TypeMismatch, f"'{shown(text)}' is not BYTES: pairs of digits stand behind \\x", hint=_BYTES
        ) from None


_BYTES = "write X'6869'"
_LOGICAL = {
    Logical.JSON: """write JSON, such as '{"a": 1}' or '"text"'""",
    Logical.ARRAY: "write ARRAY[1, 2], or JSON in quotes: '[1, 2]'",
    Logical.MAP: """write MAP('key', 1), or JSON in quotes: '{"key": 1}'""",
    Logical.STRUCT: """write STRUCT(1 AS a), or JSON in quotes: '{"a": 1}'""",
    Logical.BYTES: _BYTES,
    Logical.UUID: "write '550e8400-e29b-41d4-a716-446655440000'",
}


def typed(literal: Literal, type_: Type) -> Literal:
    """The literal's value as ``type_``, where that is exact or ``type_`` is DOUBLE; else the literal."""
    if literal.type == type_:
        return literal
    if literal.is_null:
        return Literal(None, type_)
    return literal.through(_typed, type_)


def _typed(literal: Literal, type_: Type) -> Literal:
    value = literal.value
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        if type_.kind is Kind.DOUBLE:
            return Literal(float(value), DOUBLE)
        if type_.is_integer and value == int(value):
            bound = INTEGER_MAX if type_.kind is Kind.INTEGER else BIGINT_MAX
            if -bound - 1 <= value <= bound:
                return Literal(int(value), type_)
        if type_.kind is Kind.DECIMAL and literal.type.kind is not Kind.DOUBLE:
            scaled = Decimal(value).scaleb(type_.scale)
            if scaled == int(scaled) and abs(scaled) < 10**type_.precision:
                return Literal(Decimal(int(scaled)).scaleb(-type_.scale), type_)
    if isinstance(value, int) and literal.type.kind is Kind.DATE and type_.kind is Kind.TIMESTAMP:
        return Literal(value * 86_400_000, TIMESTAMP)
    return literal

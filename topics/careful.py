"""One record at a time: the definition of what a JSON record means, and the reason why one is refused.

:mod:`topics.codec` reads columns at once where it can; whatever that way refuses comes here. The two agree:
what the columns give is what this gives.

A number keeps its digits until its column's type is known, so DECIMAL never passes through a float.
"""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import Any

import pyarrow as pa

from engine.model.nested.canonical import SPECIAL, Misfit, canonical, short
from engine.model.paths import Path
from engine.model.source import Field, Stream
from engine.model.types import DAY_MAX, DAY_MIN, TIMESTAMP_MS_MAX, TIMESTAMP_MS_MIN, Kind
from topics.event_times import hint
from topics.members import Members

_INTEGER = re.compile(r"-?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INSTANT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}(?::[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?)?)?)"
    r"([0-9]*)(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?"
)
RANGES: dict[Kind, tuple[int, int]] = {
    Kind.INTEGER: (-(2**31), 2**31 - 1),
    Kind.BIGINT: (-(2**63), 2**63 - 1),
    Kind.TIMESTAMP: (TIMESTAMP_MS_MIN, TIMESTAMP_MS_MAX),
}
"""What integers of these types may be."""


class BadRecord(ValueError):
    """A record that gives no row; the text says why."""


class Number(str):
    """The digits of a JSON number."""

    __slots__ = ()


class Pairs(list[tuple[str, Any]]):
    """An object's members, repeated ones too."""


def _constant(name: str) -> Any:
    raise BadRecord(f"{name} is not JSON")


def row_of(stream: Stream, columns: Members, value: bytes) -> list[Any]:
    """The row's values in schema order: what Arrow takes for each column's type, None for NULL.

    DATE comes as days, TIMESTAMP as ms since 1970, DECIMAL as Decimal of the column's scale.
    The record is known to be one object of bounded depth. Raises BadRecord.
    """
    members = pairs_of(value)
    found = _found(columns, members)
    row: list[Any] = []
    for field in stream.schema:
        member = found.get(field.name) if field.path is None else at_path(field.name, field.path, members)
        if member is None:
            if field.name == stream.timestamp_column:
                raise BadRecord(f"column {field.name}: the event timestamp is missing or NULL")
            if not field.nullable:
                raise BadRecord(f"column {field.name}: missing or NULL, but declared NOT NULL")
            row.append(None)
        else:
            row.append(_special(stream, field, member) or converted(field, member))
    return row


def _special(stream: Stream, field: Field, member: Any) -> float | None:
    """A DOUBLE that JSON has no number for, of records in another format: NaN, Infinity, -Infinity."""
    if field.type.kind is Kind.DOUBLE and stream.format.value != "json" and type(member) is str:
        return SPECIAL.get(member)
    return None


def pairs_of(value: bytes) -> Pairs:
    """The members of a record that is known to be one object of bounded depth. Raises BadRecord."""
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadRecord(f"not UTF-8: {error.reason} at byte {error.start}") from None
    try:
        members = _DECODER.decode(text)
    except BadRecord:
        raise
    except (ValueError, RecursionError) as error:
        raise BadRecord(f"not JSON: {error}") from None
    if not isinstance(members, Pairs):
        raise BadRecord("not a JSON object")
    return members


def bounded_pairs_of(value: bytes, depth_max: int) -> Pairs:
    """The members of a record of which nothing is known. Raises BadRecord, of one that nests deeper too."""
    members = pairs_of(value)
    if value.count(b"{") + value.count(b"[") > depth_max:
        level: list[Any] = [members]
        for _ in range(depth_max):
            inside = [[inner for _, inner in one] if isinstance(one, Pairs) else one for one in level]
            level = [inner for one in inside for inner in one if isinstance(inner, list)]
        if level:
            raise BadRecord(f"nested more than {depth_max} levels deep")
    return members


def _found(columns: Members, members: Pairs) -> dict[str, Any]:
    """What the record has of each column. Raises BadRecord."""
    declared = frozenset(columns.columns)
    found: dict[str, Any] = {}
    near: dict[str, list[tuple[str, Any]]] = {}
    for name, member in members:
        if name in found:
            raise BadRecord(f"column {name}: given twice")
        if name in declared:
            found[name] = member
        elif (column := columns.column_of(name)) is not None:
            near.setdefault(column, []).append((name, member))
    for column, given in near.items():
        if column in found:
            continue
        names = sorted({name for name, _ in given})
        if len(names) > 1:
            raise BadRecord(f"column {column}: {' and '.join(names)} differ in letter case alone")
        if len(given) > 1:
            raise BadRecord(f"column {column}: given twice")
        found[column] = given[0][1]
    return found


def at_path(column: str, path: Path, value: Any) -> Any:
    """What stands at a path of a column; None: nothing, or null. Raises BadRecord."""
    for step in path:
        if isinstance(value, Pairs) and isinstance(step, str):
            given = [member for name, member in value if name == step]
            if len(given) > 1:
                raise BadRecord(f"column {column}: {step} is given twice")
            value = given[0] if given else None
        elif isinstance(value, list) and not isinstance(value, Pairs) and isinstance(step, int):
            value = value[step] if step < len(value) else None
        else:
            return None
    return value


_DECODER = json.JSONDecoder(
    object_pairs_hook=Pairs, parse_float=Number, parse_int=Number, parse_constant=_constant
)


def converted(field: Field, member: Any) -> Any:
    """A member's value as its column has it; a text is a JSON string. Raises BadRecord."""
    kind = field.type.kind
    if field.type.logical is not None:
        return _nested(field, member)
    number = isinstance(member, Number)
    text = isinstance(member, str) and not number
    if kind is Kind.BOOLEAN and isinstance(member, bool):
        return member
    if kind in RANGES and number and _INTEGER.fullmatch(member):
        low, high = RANGES[kind]
        if len(member.lstrip("-0")) > 20 or not low <= int(member) <= high:
            beyond = f"{short(member)} is out of the range of {field.type}{hint(kind, member)}"
            raise BadRecord(f"column {field.name}: {beyond}")
        return int(member)
    if kind is Kind.DOUBLE and number:
        value = float(member)
        if math.isinf(value):
            raise BadRecord(f"column {field.name}: {short(member)} is out of the range of DOUBLE")
        return value
    if kind is Kind.STRING and text:
        try:
            member.encode("utf-8")
        except UnicodeEncodeError:
            raise BadRecord(f"column {field.name}: half a surrogate pair is not a character") from None
        return member
    if kind is Kind.DECIMAL and (number or text) and _DECIMAL.fullmatch(member):
        return _decimal(field, member)
    if kind is Kind.DATE and text and _DATE.fullmatch(member):
        days = _parsed(field, member, pa.date32(), pa.int32())
        return _within(field, member, days, DAY_MIN, DAY_MAX)
    if kind is Kind.TIMESTAMP and text and (match := _INSTANT.fullmatch(member)):
        instant, beyond_us, zone = match.groups()
        if not beyond_us or "." in instant:
            type_ = pa.timestamp("us", "UTC" if zone else None)
            microseconds: int = _parsed(field, instant + (zone or ""), type_, pa.int64())
            return _within(field, member, microseconds // 1000, TIMESTAMP_MS_MIN, TIMESTAMP_MS_MAX)
    likely = hint(kind, member) if number else ""
    raise BadRecord(f"column {field.name}: expected {field.type}, got {_described(member)}{likely}")


def _nested(field: Field, member: Any) -> str | None:
    """The canonical text of a logical type's value."""
    try:
        return canonical(field.type, as_json(member))
    except Misfit as misfit:
        raise BadRecord(f"column {field.name}: {misfit}") from None


def as_json(value: Any) -> str:
    """A value as it stood in its record, but for blanks."""
    if isinstance(value, Pairs):
        return "{" + ", ".join(f"{json.dumps(name)}: {as_json(one)}" for name, one in value) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_json, value)) + "]"
    return str(value) if isinstance(value, Number) else json.dumps(value, ensure_ascii=False)


def _within(field: Field, text: str, value: int, low: int, high: int) -> int:
    if not low <= value <= high:
        raise BadRecord(f"column {field.name}: {short(text)} is out of the range of {field.type}")
    return value


def _parsed(field: Field, text: str, type_: pa.DataType, width: pa.DataType) -> int:
    """A date or instant by the parser that the columns are read with."""
    try:
        return int(pa.array([text]).cast(type_).view(width)[0].as_py())
    except pa.ArrowInvalid:
        raise BadRecord(f"column {field.name}: there is no {field.type} {short(text)}") from None


def _decimal(field: Field, text: str) -> Decimal:
    """Exact, or refused: no digit is rounded away."""
    precision, scale = field.type.precision, field.type.scale
    try:
        sign, digits, exponent = Decimal(text).as_tuple()
    except ArithmeticError:  # an exponent beyond what can be represented
        raise BadRecord(f"column {field.name}: {short(text)} does not fit {field.type}") from None
    assert isinstance(exponent, int)
    unscaled = "".join(map(str, digits)).lstrip("0")
    shift = exponent + scale
    if unscaled and len(unscaled) + shift > precision:
        raise BadRecord(f"column {field.name}: {short(text)} does not fit {field.type}")
    if shift < 0:
        if unscaled[shift:].strip("0"):
            raise BadRecord(f"column {field.name}: {short(text)} has more than {scale} decimals")
        unscaled = unscaled[:shift]
    elif unscaled:
        unscaled += "0" * shift
    value = Decimal(int(unscaled or "0")).scaleb(-scale)
    return -value if sign else value


def _described(member: Any) -> str:
    if isinstance(member, bool):
        return "true" if member else "false"
    if isinstance(member, Number):
        return f"number {short(member)}"
    if isinstance(member, str):
        return "string " + short(json.dumps(member))
    return "an object" if isinstance(member, Pairs) else "an array"

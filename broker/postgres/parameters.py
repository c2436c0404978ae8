"""Values of parameters as clients send them, in text or in binary, by the type that they have.

A value becomes one of Python: bool, int, float, Decimal, str, bytes, date, datetime (with a zone: UTC), UUID,
or an :class:`Array` of these.
What has a type that is not known here, or none, is text. Nothing is ever made part of a text of SQL here.
"""

from __future__ import annotations

import math
import struct
import uuid
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

import orjson

from broker.postgres import types
from broker.postgres.array_input import elements_of_binary
from engine.model.nested.array_literals import elements_of_text
from engine.model.step import Parameter
from tureen.errors import TureenError

Scalar = bool | int | float | Decimal | str | bytes | date | datetime | uuid.UUID | None


@dataclass(frozen=True, slots=True)
class Array:
    """An array of one dimension. element: the oid of its elements."""

    element: int
    elements: tuple[Scalar, ...]

    @property
    def json(self) -> str:
        """As answers in JSON have an ARRAY."""
        return orjson.dumps([_in_json(one) for one in self.elements]).decode()

    @property
    def type(self) -> str:
        """What Tureen calls its type."""
        return f"ARRAY<{_TYPES.get(self.element, 'STRING')}>"


Value = Scalar | Array

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


class BadValue(TureenError):
    """The value of a parameter is none of its type."""

    code = "bad_value"


def decoded(values: Sequence[bytes | None], oids: Sequence[int], formats: Sequence[int]) -> tuple[Value, ...]:
    """The values of a Bind. oids: as many; 0: not known. formats: none: text; one: of all.

    Raises BadValue.
    """
    forms = [*formats] * len(values) if len(formats) == 1 else formats or [0] * len(values)
    return tuple(
        None if raw is None else _value(place, raw, oid, form)
        for place, (raw, oid, form) in enumerate(zip(values, oids, forms, strict=True), 1)
    )


def _value(place: int, raw: bytes, oid: int, form: int) -> Value:
    try:
        if oid in types.ELEMENTS:
            return _array(raw, oid, form)
        if form == 1:
            return _BINARY.get(oid, _text)(raw)
        return _TEXT.get(oid, str)(_text(raw))
    except (ValueError, InvalidOperation, struct.error, OverflowError):
        name = types.TYPES[oid].name if oid in types.TYPES else "text"
        raise BadValue(f"the value of ${place} is no {name} in {'binary' if form else 'text'}") from None


def _array(raw: bytes, oid: int, form: int) -> Array:
    element = types.ELEMENTS[oid]
    if form == 0:
        read = _TEXT.get(element, str)
        texts = elements_of_text(_text(raw))
        return Array(element, tuple(None if one is None else read(one) for one in texts))
    told, parts = elements_of_binary(raw)
    if told != element:
        raise ValueError(told)
    decode = _BINARY.get(element, _text)
    return Array(element, tuple(None if one is None else decode(one) for one in parts))


def _in_json(value: Scalar) -> object:
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value).replace("inf", "Infinity").replace("nan", "NaN")
    return str(value) if isinstance(value, Decimal | date | uuid.UUID) else value


def _text(raw: bytes) -> str:
    return raw.decode()


def _boolean(text: str) -> bool:
    word = text.strip().lower()
    if word in ("t", "true", "y", "yes", "on", "1"):
        return True
    if word in ("f", "false", "n", "no", "off", "0"):
        return False
    raise ValueError(text)


def _instant(text: str) -> datetime:
    found = datetime.fromisoformat(text.strip())
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def _bytea(text: str) -> bytes:
    return bytes.fromhex(text[2:]) if text.startswith("\\x") else text.encode()


_TYPES = {
    types.BOOL: "BOOLEAN",
    types.INT2: "INTEGER",
    types.INT4: "INTEGER",
    types.INT8: "BIGINT",
    types.OID: "BIGINT",
    types.FLOAT4: "DOUBLE",
    types.FLOAT8: "DOUBLE",
    types.NUMERIC: "DOUBLE",
    types.DATE: "DATE",
    types.TIMESTAMP: "TIMESTAMP",
    types.TIMESTAMPTZ: "TIMESTAMP",
    types.UUID: "UUID",
    types.BYTEA: "BYTES",
}
"""What Tureen calls the types of elements; others are STRING."""

_TEXT: dict[int, Callable[[str], Scalar]] = {
    types.BOOL: _boolean,
    types.INT2: int,
    types.INT4: int,
    types.INT8: int,
    types.OID: int,
    types.FLOAT4: float,
    types.FLOAT8: float,
    types.NUMERIC: Decimal,
    types.DATE: lambda text: date.fromisoformat(text.strip()),
    types.TIMESTAMP: _instant,
    types.TIMESTAMPTZ: _instant,
    types.UUID: uuid.UUID,
    types.BYTEA: _bytea,
}


def _number(form: str) -> Callable[[bytes], Any]:
    packed = struct.Struct(form)
    return lambda raw: packed.unpack(raw)[0]


def _numeric(raw: bytes) -> Decimal:
    count, weight, sign, _ = struct.unpack("!HhHH", raw[:8])
    if sign not in (0, 0x4000):
        return Decimal("NaN")
    groups = struct.unpack(f"!{count}H", raw[8:])
    if max(groups, default=0) > 9_999:
        raise ValueError(groups)
    total = sum((Decimal(group).scaleb(4 * (weight - at)) for at, group in enumerate(groups)), Decimal(0))
    return -total if sign else total


def _binary_instant(raw: bytes) -> datetime:
    return _EPOCH + timedelta(microseconds=_number("!q")(raw))


def _jsonb(raw: bytes) -> str:
    if raw[:1] != b"\x01":
        raise ValueError("version")
    return raw[1:].decode()


_BINARY: dict[int, Callable[[bytes], Scalar]] = {
    types.BOOL: lambda raw: bool(_number("!?")(raw)),
    types.INT2: _number("!h"),
    types.INT4: _number("!i"),
    types.INT8: _number("!q"),
    types.OID: _number("!I"),
    types.FLOAT4: _number("!f"),
    types.FLOAT8: _number("!d"),
    types.NUMERIC: _numeric,
    types.DATE: lambda raw: _EPOCH.date() + timedelta(days=_number("!i")(raw)),
    types.TIMESTAMP: _binary_instant,
    types.TIMESTAMPTZ: _binary_instant,
    types.UUID: lambda raw: uuid.UUID(bytes=raw),
    types.BYTEA: bytes,
    types.JSONB: _jsonb,
}


def constant(value: Value) -> Parameter:
    """A value as a placeholder of the language takes it: an instant, a date and a UUID as text, an array as
    JSON.
    """
    if isinstance(value, Array):
        return value.json
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    if isinstance(value, date | uuid.UUID):
        return str(value)
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bytes):
        return value.hex()
    return value

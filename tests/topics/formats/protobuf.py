"""Protobuf records for tests, written by the protobuf library, and what that reads of them."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from tests.topics.formats.rows import Row
from topics.formats.protobuf_schema import message_named, parse_schema

TEXT = """syntax = "proto3";
package tests;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "google/type/date.proto";
import "confluent/type/decimal.proto";
message Row {
  message Inner { optional int32 x = 1; optional string y = 2; }
  message Deep { repeated string n = 1; }
  optional bool b = 1;
  optional int32 i = 2;
  optional int64 l = 3;
  optional double f = 4;
  confluent.type.Decimal d = 5;
  google.protobuf.StringValue s = 6;
  google.type.Date day = 7;
  google.protobuf.Timestamp at = 8;
  optional string u = 9;
  google.protobuf.BytesValue y = 10;
  repeated google.protobuf.Int64Value a = 11;
  Inner o = 12;
  map<string, double> m = 13;
  repeated Deep deep = 14;
}
"""
"""A message of rows. It has no NULL in arrays, and no arrays and maps that are NULL."""


def made(text: str, name: str | None = None) -> type[Message]:
    """The class of a schema's message."""
    return GetMessageClass(message_named(parse_schema(text), name))


def written(rows: Sequence[Row]) -> list[bytes]:
    """Each row as a Row of :data:`TEXT`."""
    of = made(TEXT)
    return [_row(of(), row).SerializeToString() for row in rows]


def _row(message: Any, row: Row) -> Message:
    for name in ("b", "i", "l", "f", "u"):
        if row[name] is not None:
            setattr(message, name, row[name])
    for name in ("s", "y"):
        if row[name] is not None:
            getattr(message, name).value = row[name]
    if row["d"] is not None:
        unscaled = int(row["d"].scaleb(3))
        message.d.value = unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)
        message.d.scale = 3
    if row["day"] is not None:
        message.day.year, message.day.month, message.day.day = row["day"].timetuple()[:3]
    if row["at"] is not None:
        message.at.SetInParent()
        message.at.seconds, message.at.nanos = row["at"] // 1_000, row["at"] % 1_000 * 1_000_000
    for one in row["a"] or ():
        message.a.add(value=one)
    if row["o"] is not None:
        message.o.SetInParent()
        for name, value in row["o"].items():
            if value is not None:
                setattr(message.o, name, value)
    message.m.update(row["m"] or {})
    for one in row["deep"] or ():
        message.deep.add(n=one["n"])
    return message  # type: ignore[no-any-return]


def plain(message: Message) -> dict[str, Any]:
    """A message that the protobuf library read as the JSON that is made of it."""
    found: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.type == FieldDescriptor.TYPE_GROUP:
            continue
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            inner = field.message_type.fields_by_number[2]
            found[field.name] = {_key(key): _plain_value(inner, value[key]) for key in value}
        elif field.is_repeated:
            found[field.name] = [_plain_value(field, one) for one in value]
        elif not field.has_presence or field.has_default_value or message.HasField(field.name):
            found[field.name] = _plain_value(field, value)
    return found


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _plain_value(field: FieldDescriptor, value: Any) -> Any:
    if isinstance(value, Message):
        return _plain_message(value)
    if field.enum_type is not None:
        if field.enum_type.full_name == "google.protobuf.NullValue":
            return None
        known = field.enum_type.values_by_number.get(value)
        return str(value) if known is None else known.name
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _plain_message(value: Any) -> Any:
    name = value.DESCRIPTOR.full_name
    if name in ("google.protobuf.Timestamp", "google.protobuf.Duration"):
        whole, nanos = value.seconds * 1_000, value.nanos
        return whole + (nanos // 10**6 if nanos >= 0 else -(-nanos // 10**6))
    if name in ("google.protobuf.Struct", "google.protobuf.ListValue", "google.protobuf.Value"):
        return MessageToDict(value)
    if name.startswith("google.protobuf.") and name.endswith("Value"):
        return _plain_value(value.DESCRIPTOR.fields[0], value.value)
    return plain(value)

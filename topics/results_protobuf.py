"""Result records in Protobuf: their schemas, and what writes them.

| type            | Protobuf                                                                |
|-----------------|-------------------------------------------------------------------------|
| BOOLEAN         | bool                                                                    |
| INTEGER, BIGINT | int32, int64                                                            |
| DOUBLE          | double                                                                  |
| DECIMAL, DATE   | string                                                                  |
| STRING, JSON    | string                                                                  |
| BYTES           | bytes                                                                   |
| TIMESTAMP       | google.protobuf.Timestamp                                               |
| ARRAY           | a message with ``items``, each a message with ``value``                 |
| MAP             | a message with ``entries``, a map of such messages                      |
| STRUCT          | a message of its members                                                |

Every value may be NULL, which is a field that is not there. Lists of Protobuf cannot tell NULL from empty,
and have no NULL inside, so arrays and maps are messages. The number of a column's field is a hash of its
name: the same in every query and version, whatever columns stand beside it, so that schemas of a topic can
follow each other. Names are those of Avro (:mod:`topics.results_schema`); ``json_name`` is the column's own.

Cost: some 3 us a record.
"""

from __future__ import annotations

import datetime
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa
from google.protobuf.message_factory import GetMessageClass

from topics.formats.protobuf_schema import message_named, parse_schema
from topics.registry import wire_prefix
from topics.results_codec import EncodedChanges, Owners, Rows, key_data, value_data
from topics.results_schema import ResultSchemas, field_names

NUMBER_BITS = 25
"""A field's number has so many, so that its tag has four bytes at most."""
_RESERVED = range(19_000, 20_000)
_EPOCH_DAY = datetime.date(1970, 1, 1).toordinal()
_INDEXES = b"\0"
"""The first message of its schema."""
_CONFLICTS = "deprecated_legacy_json_field_conflicts"
_TIMESTAMP = ".google.protobuf.Timestamp"


def protobuf_texts(schemas: ResultSchemas) -> tuple[str, str]:
    """The schemas of key and value."""
    columns = [schemas.columns.field(number) for number in range(len(schemas.columns))]
    key = _Text(schemas.namespace)
    if schemas.key is None:
        told = "optional string row = 2;"
    else:
        told = "Columns key = 2;"
        key.add("Columns", [columns[number] for number in schemas.key], schemas.key_fields)
    value = _Text(schemas.namespace)
    if schemas.form == "upsert":
        value.add("Value", columns, schemas.fields, first=True)
        return key.whole(f"message Key {{ string query = 1; {told} }}"), value.whole("")
    value.add("Row", columns, schemas.fields)
    members = (
        "Row row = 1; int32 weight = 2;"
        if schemas.form == "diff"
        else "Row before = 1; Row after = 2; string op = 3; int64 ts_ms = 4;"
    )
    return (
        key.whole(f"message Key {{ string query = 1; {told} }}"),
        value.whole(f"message Value {{ {members} }}"),
    )


class _Text:
    """A schema that is written."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._messages: list[str] = []
        self._types: dict[str, str] = {}

    def add(
        self, name: str, columns: Sequence[pa.Field], names: Sequence[str], *, first: bool = False
    ) -> None:
        """A message of columns. first: of the schema."""
        text = f"message {name} {{\n{self._fields(columns, names, '')}}}"
        self._messages.insert(0 if first else len(self._messages), text)

    def whole(self, first: str) -> str:
        """first: the message of which records are, where it is none of those that were added."""
        types = "\n".join(self._types.values())
        inner = [f"message Types {{\n{types}\n}}"] if types else []
        parts = ['syntax = "proto3";', f"package {self._package};"]
        text = "\n".join([*([first] if first else []), *self._messages, *inner])
        if _TIMESTAMP in text:
            parts.append('import "google/protobuf/timestamp.proto";')
        return "\n".join([*parts, text, ""])

    def _fields(self, columns: Iterable[pa.Field], names: Sequence[str], inside: str) -> str:
        # Names that differ in underscores and case alone are one by protoc's usual names of JSON.
        usual = {name.replace("_", "").lower() for name in names}
        found = (
            "" if len(usual) == len(names) else "  option deprecated_legacy_json_field_conflicts = true;\n"
        )
        for column, name, number in zip(columns, names, field_numbers(names), strict=True):
            type_ = self._type(column.type, f"{inside}{name}")
            found += f"  optional {type_} {name} = {number} [json_name = {_quoted(column.name, name)}];\n"
        return found

    def _type(self, type_: pa.DataType, name: str) -> str:
        if isinstance(type_, pa.JsonType):
            return "string"
        if pa.types.is_timestamp(type_):
            return _TIMESTAMP
        if pa.types.is_map(type_):
            inner = self._type(type_.item_type, f"{name}_value")
            return self._declare(f"{name}_map", inner, "map<string, Item> entries")
        if pa.types.is_list(type_):
            inner = self._type(type_.value_type, f"{name}_item")
            return self._declare(f"{name}_array", inner, "repeated Item items")
        if pa.types.is_struct(type_):
            members = list(type_)
            fields = self._fields(members, field_names(one.name for one in members), f"{name}_")
            return self._declared(f"{name}_struct", fields)
        return _PLAIN.get(str(type_), "string")

    def _declare(self, name: str, inner: str, field: str) -> str:
        return self._declared(name, f"  message Item {{ optional {inner} value = 1; }}\n  {field} = 1;\n")

    def _declared(self, name: str, body: str) -> str:
        """The full name of a type with this body."""
        while name in self._types:
            name += "_"
        self._types[name] = f"message {name} {{\n{body}}}"
        return f".{self._package}.Types.{name}"


_PLAIN = {"bool": "bool", "int32": "int32", "int64": "int64", "double": "double", "binary": "bytes"}


def _quoted(column: str, name: str) -> str:
    """A column's name as text of a .proto file; its field's where protoc takes no such."""
    if not column or column.startswith("[") or "\0" in column:
        column = name
    shown = [
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:03o}" for byte in column.encode()
    ]
    return f'"{"".join(shown)}"'


def field_numbers(names: Sequence[str]) -> list[int]:
    """The number of each field: a hash of its name; of two with one hash the later takes the next.

    >>> field_numbers(["v", "n"]) == field_numbers(["n", "v"])[::-1]
    True
    """
    found: list[int] = []
    for name in names:
        number = zlib.crc32(name.encode()) % (2**NUMBER_BITS - 1) + 1
        while number in found or number in _RESERVED:
            number = number % (2**NUMBER_BITS - 1) + 1
        found.append(number)
    return found


class ProtobufCodec:
    """Protobuf; ``schemas`` stand in the registry under these ids."""

    def __init__(self, schemas: ResultSchemas, key_id: int, value_id: int) -> None:
        key, value = protobuf_texts(schemas)
        self._key_of: Any = GetMessageClass(message_named(parse_schema(key), "Key"))
        self._value_of: Any = GetMessageClass(message_named(parse_schema(value), "Value"))
        self._names = schemas.fields
        self._key_names = schemas.key_fields
        setters = [_setter(field.type) for field in schemas.columns]
        self._set = list(zip(self._names, setters, strict=True))
        self._set_key = [self._set[number] for number in schemas.key or ()]
        self._key = wire_prefix(key_id) + _INDEXES
        self._value = wire_prefix(value_id) + _INDEXES

    def keys(
        self, owners: Owners, columns: pa.Table | None, texts: pa.StringArray | None
    ) -> pa.LargeBinaryArray:
        data = key_data(owners, columns, texts, self._key_names)
        return pa.array(
            [_written(self._key, _filled(self._key_of(), one, self._set_key)) for one in data],
            pa.large_binary(),
        )

    def values(self, form: str, told: EncodedChanges, rows: Rows) -> pa.LargeBinaryArray:
        # The value of an upsert is a row; of others rows are members of it.
        fill = _fill if form == "upsert" else _filled
        return pa.array(
            [
                None if one is None else _written(self._value, fill(self._value_of(), one, self._set))
                for one in value_data(form, told, rows.table, self._names)
            ],
            pa.large_binary(),
        )


def _written(prefix: bytes, message: Any) -> bytes:
    return prefix + message.SerializeToString(deterministic=True)  # type: ignore[no-any-return]


_Setter = Callable[[Any, str, Any], None]
"""Gives a message's field a value that is not NULL: as Avro takes them, days and ms of dates and instants."""


def _filled(message: Any, datum: dict[str, Any], setters: Sequence[tuple[str, _Setter]]) -> Any:
    """The message with its members, of which rows have these setters."""
    for name, value in datum.items():
        if isinstance(value, dict):
            row = getattr(message, name)
            row.SetInParent()
            _fill(row, value, setters)
        elif value is not None:
            setattr(message, name, value)
    return message


def _fill(message: Any, row: dict[str, Any], setters: Sequence[tuple[str, _Setter]]) -> Any:
    """The message of a row, with its values."""
    for name, put in setters:
        value = row[name]
        if value is not None:
            put(message, name, value)
    return message


def _setter(type_: pa.DataType) -> _Setter:
    if isinstance(type_, pa.JsonType):
        return setattr
    if pa.types.is_timestamp(type_):
        return _put_instant
    if pa.types.is_map(type_):
        inner = _setter(type_.item_type)

        def put_map(message: Any, name: str, value: Any) -> None:
            held = getattr(message, name)
            held.SetInParent()
            for key, one in value.items():
                held.entries[key].SetInParent()
                if one is not None:
                    inner(held.entries[key], "value", one)

        return put_map
    if pa.types.is_list(type_):
        inner_ = _setter(type_.value_type)

        def put_list(message: Any, name: str, value: Any) -> None:
            held = getattr(message, name)
            held.SetInParent()
            for one in value:
                item = held.items.add()
                if one is not None:
                    inner_(item, "value", one)

        return put_list
    if pa.types.is_struct(type_):
        names = field_names(field.name for field in type_)
        members = [(name, _setter(field.type)) for name, field in zip(names, type_, strict=True)]

        def put_struct(message: Any, name: str, value: Any) -> None:
            held = getattr(message, name)
            held.SetInParent()
            _fill(held, value, members)

        return put_struct
    if pa.types.is_decimal(type_):
        return lambda message, name, value: setattr(message, name, f"{value:f}")
    if pa.types.is_date(type_):
        return lambda message, name, value: setattr(
            message, name, datetime.date.fromordinal(_EPOCH_DAY + value).isoformat()
        )
    return setattr


def _put_instant(message: Any, name: str, value: int) -> None:
    held = getattr(message, name)
    held.SetInParent()
    held.seconds, held.nanos = value // 1_000, value % 1_000 * 1_000_000

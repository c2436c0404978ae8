"""The columns that a schema of records declares: types by the path of each value, members inside members too.

Read from Avro, Protobuf and JSON schemas, and from those of Kafka Connect, which stand beside events of
Debezium. What a schema leaves open has no column here, so that records tell it: unions of several types,
objects without members. An array of objects is one of STRUCTs; a member that is too deep for a path of its
own, or whose members no STRUCT takes, is JSON.

Cost: O(types of the schema), each as often as a path leads to it, down to :data:`LEVELS_MAX`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from engine.model.paths import Path
from engine.model.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL_DIGITS_MAX,
    DOUBLE,
    INTEGER,
    JSON,
    STRING,
    TIMESTAMP,
    UUID,
    Type,
    array,
    decimal,
    map_of,
    struct,
)
from topics.formats.avro_schema import AvroType, parse_schema
from topics.formats.protobuf_program import BARE, DURATION, MESSAGE, VALUE, WRAPPER, kind_of
from topics.formats.protobuf_program import DATE as DATE_KIND
from topics.formats.protobuf_program import TIMESTAMP as TIMESTAMP_KIND
from topics.formats.protobuf_schema import message_at, message_named
from topics.formats.protobuf_schema import parse_schema as parse_protobuf
from topics.formats.unreadable import UnreadableSchema
from topics.registry import Registered

Declared = Mapping[Path, Type]

LEVELS_MAX = 4
"""Members inside of each other that have columns of their own, as those of records without a schema."""
STRUCT_LEVELS_MAX = 4
"""STRUCTs and ARRAYs inside of each other; what is deeper is JSON."""
MEMBERS_MAX = 50
COLUMNS_MAX = 10_000
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]{0,99}")

Members = list[tuple[str, Any]]


class _Dialect:
    """How a kind of schema says what the walk over it needs."""

    def __init__(
        self,
        members: Callable[[Any], Members | None],
        element: Callable[[Any], Any],
        value: Callable[[Any], Any],
        plain: Callable[[Any], Type | None],
        bare: Callable[[Any], Any],
    ) -> None:
        """members: of an object, None of others. element, value: of an array, of a map, None of others.
        plain: the type of what is none of these. bare: without NULL and references.
        """
        self.members = members
        self.element = element
        self.value = value
        self.plain = plain
        self.bare = bare

    def columns(self, schema: Any, inside: Path = ()) -> Iterator[tuple[Path, Type]]:
        """The columns of an object's members."""
        for name, inner in self.members(self.bare(schema)) or ():
            path, one = (*inside, name), self.bare(inner)
            if self.members(one) and len(path) < LEVELS_MAX:
                yield from self.columns(one, path)
            elif (type_ := self.type_of(one, 0)) is not None:
                yield path, type_

    def type_of(self, schema: Any, level: int) -> Type | None:
        one = self.bare(schema)
        members, element, value = self.members(one), self.element(one), self.value(one)
        if members is None and element is None and value is None:
            return self.plain(one)
        if level >= STRUCT_LEVELS_MAX:
            return JSON
        if element is not None or value is not None:
            inner = self.type_of(value if element is None else element, level + 1)
            if inner is None or inner == JSON:
                return JSON
            return array(inner) if element is not None else map_of(inner)
        given = [(name, self.type_of(inner, level + 1)) for name, inner in members or ()]
        names = {name.lower() for name, _ in given}
        if not 0 < len(given) == len(names) <= MEMBERS_MAX or not all(
            _PLAIN_NAME.fullmatch(n) for n, _ in given
        ):
            return JSON
        known = [(name, type_) for name, type_ in given if type_ is not None]
        return struct(known) if len(known) == len(given) else JSON


def declared_columns(
    registered: Registered, row: str | None = None, message: str | Sequence[int] | None = None
) -> Declared:
    """What a schema declares; nothing where it cannot be read. row: the member that columns are those of;
    None: they are those of the record. message: of Protobuf, by its name or the indexes that lead to it.
    """
    try:
        if registered.kind == "AVRO":
            found: Any = parse_schema(registered.text, [text for _, text in registered.references])
            dialect = _AVRO
        elif registered.kind == "JSON":
            found = orjson.loads(registered.text)
            dialect = _json_dialect(found)
        else:
            file = parse_protobuf(registered.text, dict(registered.references))
            if message is None or isinstance(message, str):
                found = message_named(file, message)
            else:
                found = message_at(file, message)
            dialect = _PROTOBUF
        if row is not None:
            found = dict(dialect.members(dialect.bare(found)) or ()).get(row)
        return _bounded(dialect.columns(found))
    except (UnreadableSchema, ValueError, TypeError, AttributeError, RecursionError):
        return {}


def connect_columns(schema: Any) -> Declared:
    """What the schema beside an event of Debezium declares of its rows; nothing where it is none."""
    try:
        return _bounded(_CONNECT.columns(dict(_connect_members(schema) or ()).get("after")))
    except (ValueError, TypeError, AttributeError, RecursionError):
        return {}


def _bounded(columns: Iterator[tuple[Path, Type]]) -> Declared:
    found: dict[Path, Type] = {}
    for path, type_ in columns:
        if len(found) >= COLUMNS_MAX:
            return {}
        found[path] = type_
    return found


# --- Avro -----------------------------------------------------------------------------------------

_OF_AVRO = {
    "boolean": BOOLEAN,
    "int": INTEGER,
    "long": BIGINT,
    "float": DOUBLE,
    "double": DOUBLE,
    "string": STRING,
    "enum": STRING,
    "bytes": BYTES,
    "fixed": BYTES,
}


def _avro_bare(type_: AvroType | None) -> AvroType | None:
    while type_ is not None and type_.kind == "union":
        there = [one for one in type_.inner if one.kind != "null"]
        if len(there) != 1:
            return None
        (type_,) = there
    return type_


def _avro_plain(type_: AvroType | None) -> Type | None:
    if type_ is None:
        return None
    if type_.logical == "decimal":
        return _decimal(type_.precision, type_.scale)
    if type_.logical == "uuid":
        return UUID
    if type_.logical == "date":
        return DATE
    return TIMESTAMP if type_.logical is not None else _OF_AVRO.get(type_.kind)


def _decimal(precision: int, scale: int) -> Type:
    """The DECIMAL of so many digits; of more than there are, as many as possible before the point."""
    if scale > DECIMAL_DIGITS_MAX:
        return STRING
    return decimal(max(1, min(precision, DECIMAL_DIGITS_MAX)), scale)


_AVRO = _Dialect(
    members=lambda one: (
        [(field.name, field.type) for field in one.fields]
        if one is not None and one.kind == "record"
        else None
    ),
    element=lambda one: one.inner[0] if one is not None and one.kind == "array" else None,
    value=lambda one: one.inner[0] if one is not None and one.kind == "map" else None,
    plain=_avro_plain,
    bare=_avro_bare,
)

# --- Protobuf -------------------------------------------------------------------------------------

_OF_PROTOBUF = {
    FieldDescriptor.CPPTYPE_BOOL: BOOLEAN,
    FieldDescriptor.CPPTYPE_INT32: INTEGER,
    FieldDescriptor.CPPTYPE_UINT32: BIGINT,
    FieldDescriptor.CPPTYPE_INT64: BIGINT,
    FieldDescriptor.CPPTYPE_UINT64: BIGINT,
    FieldDescriptor.CPPTYPE_FLOAT: DOUBLE,
    FieldDescriptor.CPPTYPE_DOUBLE: DOUBLE,
    FieldDescriptor.CPPTYPE_ENUM: STRING,
}
_OF_KIND = {TIMESTAMP_KIND: TIMESTAMP, DURATION: BIGINT, DATE_KIND: DATE, VALUE: JSON, BARE: JSON}


@dataclass(frozen=True, slots=True)
class _Item:
    """What a list has several of, or a map as values."""

    field: FieldDescriptor


def _protobuf_message(one: Any) -> Descriptor | None:
    """The message that is meant, whose members are its own."""
    if isinstance(one, _Item):
        one = one.field.message_type
    elif isinstance(one, FieldDescriptor):
        one = None if one.is_repeated else one.message_type
    return one if one is not None and kind_of(one) == MESSAGE else None


def _protobuf_members(one: Any) -> Members | None:
    message = _protobuf_message(one)
    if message is None:
        return None
    return [(field.name, field) for field in message.fields if field.type != FieldDescriptor.TYPE_GROUP]


def _is_map(one: Any) -> bool:
    return (
        isinstance(one, FieldDescriptor)
        and one.message_type is not None
        and bool(one.message_type.GetOptions().map_entry)
    )


def _protobuf_plain(one: Any) -> Type | None:
    field = one.field if isinstance(one, _Item) else one
    if field is None or isinstance(field, Descriptor):
        return None
    if field.message_type is not None:
        kind = kind_of(field.message_type)
        return _protobuf_plain(field.message_type.fields[0]) if kind == WRAPPER else _OF_KIND.get(kind)
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return STRING if field.type == FieldDescriptor.TYPE_STRING else BYTES
    return _OF_PROTOBUF[field.cpp_type]


_PROTOBUF = _Dialect(
    members=_protobuf_members,
    element=lambda one: (
        _Item(one) if isinstance(one, FieldDescriptor) and one.is_repeated and not _is_map(one) else None
    ),
    value=lambda one: _Item(one.message_type.fields_by_number[2]) if _is_map(one) else None,
    plain=_protobuf_plain,
    bare=lambda one: one,
)

# --- JSON schema ----------------------------------------------------------------------------------

_OF_JSON = {"boolean": BOOLEAN, "integer": BIGINT, "number": DOUBLE, "string": STRING}
_OF_JSON_FORMAT = {"date-time": TIMESTAMP, "date": DATE, "uuid": UUID}
_OF_CONNECT_TITLE = {
    "org.apache.kafka.connect.data.Timestamp": TIMESTAMP,
    "io.debezium.time.Timestamp": TIMESTAMP,
}
REFERENCES_MAX = 20


def _json_dialect(whole: Any) -> _Dialect:
    """whole: the schema, which its references lead into."""

    def bare(schema: Any) -> Any:
        for _ in range(REFERENCES_MAX):
            if not isinstance(schema, dict):
                return None
            some = schema.get("oneOf") or schema.get("anyOf")
            if isinstance(schema.get("$ref"), str):
                schema = _referred(whole, schema["$ref"])
            elif isinstance(some, list):
                there = [one for one in some if not (isinstance(one, dict) and one.get("type") == "null")]
                schema = there[0] if len(there) == 1 else None
            elif isinstance(schema.get("type"), list):
                kinds = [one for one in schema["type"] if one != "null"]
                return {**schema, "type": kinds[0]} if len(kinds) == 1 else None
            else:
                return schema
        return None

    def kind(schema: Any) -> Any:
        return schema.get("type", "object" if "properties" in schema else None) if schema else None

    return _Dialect(
        members=lambda one: (
            list(one["properties"].items()) if kind(one) == "object" and one.get("properties") else None
        ),
        element=lambda one: one.get("items") if kind(one) == "array" else None,
        value=lambda one: (
            one["additionalProperties"]
            if kind(one) == "object" and isinstance(one.get("additionalProperties"), dict)
            else None
        ),
        plain=_json_plain,
        bare=bare,
    )


def _referred(whole: Any, reference: str) -> Any:
    """What a reference inside the schema leads to; None: nothing, or it leads to another one."""
    if not reference.startswith("#"):
        return None
    found = whole
    for step in reference[1:].split("/")[1:]:
        found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return found


def _json_plain(schema: Any) -> Type | None:
    if not schema:
        return None
    kind = schema.get("type")
    if kind == "string" and schema.get("contentEncoding") == "base64":
        return BYTES
    if kind == "string":
        return _OF_JSON_FORMAT.get(str(schema.get("format")), STRING)
    return _OF_CONNECT_TITLE.get(str(schema.get("title"))) or _OF_JSON.get(str(kind))


# --- Kafka Connect --------------------------------------------------------------------------------

_OF_CONNECT = {
    "boolean": BOOLEAN,
    "int8": INTEGER,
    "int16": INTEGER,
    "int32": INTEGER,
    "int64": BIGINT,
    "float": DOUBLE,
    "float32": DOUBLE,
    "double": DOUBLE,
    "float64": DOUBLE,
    "string": STRING,
    "bytes": BYTES,
}
_OF_CONNECT_NAME = {
    "io.debezium.time.Date": DATE,
    "org.apache.kafka.connect.data.Date": DATE,
    "io.debezium.time.Timestamp": TIMESTAMP,
    "io.debezium.time.MicroTimestamp": TIMESTAMP,
    "io.debezium.time.NanoTimestamp": TIMESTAMP,
    "io.debezium.time.ZonedTimestamp": TIMESTAMP,
    "org.apache.kafka.connect.data.Timestamp": TIMESTAMP,
    "io.debezium.data.Uuid": UUID,
}


def _connect_members(schema: Any) -> Members | None:
    if not isinstance(schema, dict) or not isinstance(schema.get("fields"), list):
        return None
    return [(one["field"], one) for one in schema["fields"] if isinstance(one, dict) and "field" in one]


def _connect_plain(schema: Any) -> Type | None:
    if not isinstance(schema, dict):
        return None
    name = schema.get("name")
    if name == "org.apache.kafka.connect.data.Decimal":
        parameters = schema.get("parameters") or {}
        precision = parameters.get("connect.decimal.precision", DECIMAL_DIGITS_MAX)
        return _decimal(int(precision), int(parameters.get("scale", 0)))
    return _OF_CONNECT_NAME.get(str(name)) or _OF_CONNECT.get(str(schema.get("type")))


_CONNECT = _Dialect(
    members=_connect_members,
    element=lambda one: one.get("items") if isinstance(one, dict) and one.get("type") == "array" else None,
    value=lambda one: one.get("values") if isinstance(one, dict) and one.get("type") == "map" else None,
    plain=_connect_plain,
    bare=lambda one: one,
)

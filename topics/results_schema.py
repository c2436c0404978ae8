"""Schemas of result records: Avro and JSON Schema, for keys and values, from the columns of an answer.

| type            | Avro                     | JSON Schema                                |
|-----------------|--------------------------|--------------------------------------------|
| BOOLEAN         | boolean                  | boolean                                    |
| INTEGER, BIGINT | int, long                | integer, with its range                    |
| DOUBLE          | double                   | number, or "NaN", "Infinity", "-Infinity"  |
| DECIMAL(p, s)   | bytes, decimal(p, s)     | string of digits                           |
| STRING          | string                   | string                                     |
| DATE            | int, date                | string, date                               |
| TIMESTAMP       | long, timestamp-millis   | string, date-time                          |
| ARRAY           | array                    | array                                      |

Every value may be NULL: in Avro each type is in a union with null, which is the default.

Avro's names are letters, digits and _; a column with another name has its own with _ for what is not, and
says its name in ``doc``. So that schemas of queries that share a topic can follow each other, a field
more or less is no contradiction.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]")


@dataclass(frozen=True, slots=True)
class ResultSchemas:
    """The schemas of the records of one query in one topic. columns: the answer's columns. key: numbers of
    the columns that are the key, None where a text tells rows apart. form: upsert, debezium, diff.
    """

    topic: str
    columns: pa.Schema
    key: tuple[int, ...] | None
    form: str

    @property
    def fields(self) -> tuple[str, ...]:
        """Avro's names of the columns, no two alike."""
        return field_names(self.columns.names)

    @property
    def key_fields(self) -> tuple[str, ...]:
        """Avro's names of the key's columns; none where there is no key."""
        names = self.fields
        return tuple(names[number] for number in self.key or ())

    @property
    def namespace(self) -> str:
        """The topic's name as Avro takes it."""
        return ".".join(field_names(self.topic.split("."), distinct=False))

    # --- Avro -------------------------------------------------------------------------------------

    def avro_key(self) -> dict[str, Any]:
        names = self.fields
        if self.key is None:
            told: dict[str, Any] = {"name": "row", "type": "string"}
        else:
            fields = [_avro_field(names[number], self.columns.field(number)) for number in self.key]
            told = {"name": "key", "type": {"type": "record", "name": "Columns", "fields": fields}}
        return self._record("Key", [{"name": "query", "type": "string"}, told])

    def avro_value(self) -> dict[str, Any]:
        fields = [_avro_field(name, field) for name, field in zip(self.fields, self.columns, strict=True)]
        if self.form == "upsert":
            return self._record("Value", fields)
        row = self._record("Row", fields)
        if self.form == "diff":
            return self._record("Value", [{"name": "row", "type": row}, {"name": "weight", "type": "int"}])
        reference = f"{self.namespace}.Row"
        return self._record(
            "Value",
            [
                {"name": "before", "type": ["null", row], "default": None},
                {"name": "after", "type": ["null", reference], "default": None},
                {"name": "op", "type": "string"},
                {"name": "ts_ms", "type": "long"},
            ],
        )

    def _record(self, name: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
        return {"type": "record", "name": name, "namespace": self.namespace, "fields": fields}

    # --- JSON Schema ------------------------------------------------------------------------------

    def json_key(self) -> dict[str, Any]:
        if self.key is None:
            told: dict[str, Any] = {"row": {"type": "string"}}
        else:
            columns = (self.columns.field(number) for number in self.key)
            told = {"key": _json_object({field.name: _json_type(field.type) for field in columns})}
        return self._titled("Key", _json_object({"query": {"type": "string"}} | told))

    def json_value(self) -> dict[str, Any]:
        row = _json_object({field.name: _json_type(field.type) for field in self.columns})
        if self.form == "upsert":
            return self._titled("Value", row)
        if self.form == "diff":
            return self._titled("Value", _json_object({"row": row, "weight": {"enum": [1, -1]}}))
        may_be = {"oneOf": [{"type": "null"}, row]}
        members = {
            "before": may_be,
            "after": may_be,
            "op": {"enum": ["c", "r", "u", "d"]},
            "ts_ms": {"type": "integer"},
        }
        return self._titled("Value", _json_object(members))

    def _titled(self, title: str, schema: dict[str, Any]) -> dict[str, Any]:
        head = {"$schema": "http://json-schema.org/draft-07/schema#", "title": f"{self.topic}.{title}"}
        return head | schema

    def texts(self, encoding: str) -> tuple[str, str]:
        """The schemas of key and value as the registry takes them."""
        made = (
            (self.avro_key(), self.avro_value())
            if encoding == "avro"
            else (self.json_key(), self.json_value())
        )
        key, value = (orjson.dumps(one).decode() for one in made)
        return key, value


def field_names(names: Iterable[str], *, distinct: bool = True) -> tuple[str, ...]:
    """Names as Avro takes them, different ones where ``distinct``."""
    found: list[str] = []
    for name in names:
        plain = _NOT_IN_NAMES.sub("_", name)
        if not plain or plain[0].isdigit():
            plain = f"_{plain}"
        made, number = plain, 1
        while distinct and made in found:
            number += 1
            made = f"{plain}_{number}"
        found.append(made)
    return tuple(found)


def _avro_field(name: str, field: pa.Field) -> dict[str, Any]:
    told = {"name": name, "type": _nullable(_avro_type(field.type, name)), "default": None}
    return told if name == field.name else told | {"doc": field.name}


def _nullable(type_: Any) -> Any:
    return "null" if type_ == "null" else ["null", type_]


def _avro_type(type_: pa.DataType, name: str) -> Any:
    """name: what records inside of it are called after; no two fields have one name."""
    if pa.types.is_map(type_):
        return {"type": "map", "values": _nullable(_avro_type(type_.item_type, name))}
    if pa.types.is_list(type_):
        return {"type": "array", "items": _nullable(_avro_type(type_.value_type, name))}
    if pa.types.is_struct(type_):
        names = field_names(field.name for field in type_)
        inner = [
            {**_avro_field(one, field), "type": _nullable(_avro_type(field.type, f"{name}_{one}"))}
            for one, field in zip(names, type_, strict=True)
        ]
        return {"type": "record", "name": f"{name}_struct", "fields": inner}
    if isinstance(type_, pa.JsonType):
        return "string"
    if pa.types.is_decimal(type_):
        return {
            "type": "bytes",
            "logicalType": "decimal",
            "precision": type_.precision,
            "scale": type_.scale,
        }
    if pa.types.is_date(type_):
        return {"type": "int", "logicalType": "date"}
    if pa.types.is_timestamp(type_):
        return {"type": "long", "logicalType": "timestamp-millis"}
    return _AVRO[str(type_)]


_AVRO = {
    "bool": "boolean",
    "int32": "int",
    "int64": "long",
    "double": "double",
    "string": "string",
    "binary": "bytes",
    "null": "null",
}


def _json_object(members: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": members, "required": list(members)}


def _json_type(type_: pa.DataType) -> dict[str, Any]:
    if isinstance(type_, pa.JsonType):
        return {}
    if pa.types.is_map(type_):
        return {"type": ["object", "null"], "additionalProperties": _json_type(type_.item_type)}
    if pa.types.is_list(type_):
        return {"type": ["array", "null"], "items": _json_type(type_.value_type)}
    if pa.types.is_struct(type_):
        members = {field.name: _json_type(field.type) for field in type_}
        return _json_object(members) | {"type": ["object", "null"]}
    if pa.types.is_binary(type_):
        return {"type": ["string", "null"], "contentEncoding": "base64"}
    if pa.types.is_floating(type_):
        return {
            "oneOf": [{"type": ["number", "null"]}, {"enum": ["NaN", "Infinity", "-Infinity"]}],
        }
    if pa.types.is_integer(type_):
        high = 2 ** (type_.bit_width - 1)
        return {"type": ["integer", "null"], "minimum": -high, "maximum": high - 1}
    if pa.types.is_date(type_):
        return {"type": ["string", "null"], "format": "date"}
    if pa.types.is_timestamp(type_):
        return {"type": ["string", "null"], "format": "date-time"}
    if pa.types.is_decimal(type_):
        return {"type": ["string", "null"], "pattern": "^-?[0-9]+(\\.[0-9]+)?([eE][-+]?[0-9]+)?$"}
    if pa.types.is_boolean(type_):
        return {"type": ["boolean", "null"]}
    if pa.types.is_null(type_):
        return {"type": "null"}
    return {"type": ["string", "null"]}

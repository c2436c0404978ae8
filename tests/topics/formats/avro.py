"""Avro records for tests, written by fastavro."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import fastavro

from tests.topics.formats.rows import Row

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Row",
    "namespace": "tests",
    "fields": [
        {"name": name, "type": ["null", type_]}
        for name, type_ in {
            "b": "boolean",
            "i": "int",
            "l": "long",
            "f": "double",
            "d": {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 3},
            "s": "string",
            "day": {"type": "int", "logicalType": "date"},
            "at": {"type": "long", "logicalType": "timestamp-millis"},
            "u": {"type": "string", "logicalType": "uuid"},
            "y": "bytes",
            "j": "string",
            "a": {"type": "array", "items": ["null", "long"]},
            "o": {
                "type": "record",
                "name": "Inner",
                "fields": [{"name": "x", "type": ["null", "int"]}, {"name": "y", "type": ["null", "string"]}],
            },
            "m": {"type": "map", "values": "double"},
            "deep": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Deep",
                    "fields": [{"name": "n", "type": {"type": "array", "items": "string"}}],
                },
            },
        }.items()
    ],
}
TEXT = json.dumps(SCHEMA)


def written(rows: Sequence[Row], schema: Any = SCHEMA, head: bytes = b"") -> list[bytes]:
    """Each row by the schema's fields; ``j`` as a text of JSON. head: before each."""
    parsed = fastavro.parse_schema(schema)
    names = [one["name"] for one in schema["fields"]]
    return [head + encoded(parsed, {name: row[name] for name in names}) for row in rows]


def encoded(parsed: Any, value: Any) -> bytes:
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, parsed, value)
    return buffer.getvalue()

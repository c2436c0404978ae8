"""Data and helpers that ``results_test.py`` shares with other tests."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from engine.model.changes import Changes, Occasion, Operator
from engine.model.step import Position
from topics.destination import Destination, Encoding, Format
from topics.produce_loop import rows_of
from topics.results import Records, encode
from topics.results_codec import AvroCodec, Codec, JsonCodec
from topics.results_protobuf import ProtobufCodec, protobuf_texts
from topics.results_schema import ResultSchemas

Row = tuple[Any, ...]

Change = tuple[str, int, int, Row]
"""A change: query, weight, instant, row."""

COLUMNS = pa.schema([("k", pa.int64()), ("v", pa.string())])

AT = Position(3, 77)


def changes(
    given: list[Change], columns: pa.Schema = COLUMNS, occasion: Occasion = "step", copies: bool = False
) -> Changes:
    """In the order given, which is by query."""
    names = list(dict.fromkeys(one[0] for one in given))
    counts = Counter(one[0] for one in given)
    table = pa.table(
        [pa.array([row[i] for *_, row in given], field.type) for i, field in enumerate(columns)],
        schema=columns,
    )
    there: Counter[Any] = Counter()
    numbers = []
    for query, weight, _, row in given:
        there[query, repr(row)] += weight
        numbers.append(there[query, repr(row)] + (weight < 0))
    return Changes(
        tuple(names),
        np.cumsum([0, *(counts[name] for name in names)]),
        table,
        np.array([one[1] for one in given], np.int8),
        np.array([one[2] for one in given], np.int64),
        np.zeros(len(names), np.int64),
        occasion,
        np.array(numbers, np.int32) if copies else None,
    )


def to(form: Format, *, key: tuple[int, ...] | None, operator: Operator = "changes") -> Destination:
    return Destination("t.results.x", form == "upsert", False, form, "json", operator, key)


def written(one: Changes, where: Destination, codec: Codec | None = None) -> Records:
    return encode(one, where, AT, codec or JsonCodec(), numbered={}, partitions=4, bytes_max=1 << 20)


def pairs(records: Records) -> list[tuple[bytes, bytes | None]]:
    return list(zip(records.keys.to_pylist(), records.values.to_pylist(), strict=True))


def headers(records: Records) -> list[dict[str, bytes | None]]:
    anywhere = np.zeros(len(records), np.int32)
    every = rows_of(records.values, records.keys, anywhere, records.headers, 0, len(records))
    return [dict(own) for *_, own in every]


KEYED: list[Change] = [
    ("a", 1, 5, (1, "x")),
    ("a", -1, 6, (1, "x")),
    ("a", 1, 6, (1, "y")),
    ("a", -1, 7, (1, "y")),
    ("b", -1, 6, (1, "x")),
    ("b", 1, 7, (1, "y")),
]

WIDE = pa.schema(
    [
        ("b", pa.bool_()),
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("d", pa.float64()),
        ("m", pa.decimal128(9, 2)),
        ("s", pa.string()),
        ("day", pa.date32()),
        ("ts", pa.timestamp("ms")),
        ("some", pa.list_(pa.timestamp("ms"))),
        ("COUNT(*)", pa.int64()),
        ("COUNT_*_", pa.int64()),
    ]
)

INSTANT = datetime(2013, 1, 31, 9, 15, tzinfo=UTC)

FULL: Row = (
    True,
    -(2**31),
    2**63 - 1,
    0.1,
    Decimal("-12.30"),
    'Zoë "\\\n',
    date(2013, 1, 31),
    INSTANT.replace(tzinfo=None),
    [INSTANT.replace(tzinfo=None), None],
    1,
    2,
)

NULLS: Row = (None,) * len(WIDE)


def registered(form: Format, encoding: Encoding, key: tuple[int, ...] | None) -> tuple[Any, Codec]:
    client = SchemaRegistryClient.new_client({"url": "mock://here"})
    schemas = ResultSchemas("t.results.x", WIDE, key, form)
    kinds: dict[str, Literal["AVRO", "JSON", "PROTOBUF"]] = {"avro": "AVRO", "protobuf": "PROTOBUF"}
    kind = kinds.get(encoding, "JSON")
    key_text, value_text = protobuf_texts(schemas) if kind == "PROTOBUF" else schemas.texts(encoding)
    key_id = client.register_schema("t.results.x-key", Schema(key_text, kind))
    value_id = client.register_schema("t.results.x-value", Schema(value_text, kind))
    if encoding == "protobuf":
        return client, ProtobufCodec(schemas, key_id, value_id)
    if encoding == "avro":
        return client, AvroCodec(schemas, key_id, value_id)
    return client, JsonCodec(key_id, value_id)

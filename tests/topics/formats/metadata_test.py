"""Columns that tell of a record: its place, its time, its key and its headers, in every format."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from engine.model.paths import parse_path
from engine.model.record_format import RecordFormat
from engine.model.source import Schema, Stream
from engine.model.types import BIGINT, BYTES, INTEGER, STRING, TIMESTAMP, Type, map_of
from tests.topics.formats.rows import reasons, seen, stream
from topics.codec import Decoded
from topics.formats.metadata import Written
from topics.keyed import decode_messages, decode_records

COLUMNS: dict[str, Type] = {
    "_partition": INTEGER,
    "a": BIGINT,
    "_offset": BIGINT,
    "_timestamp": TIMESTAMP,
    "_key": STRING,
    "_headers": map_of(STRING),
}


@dataclass(frozen=True)
class Message:
    name: bytes | None
    more: list[tuple[str, bytes | None]] | None

    def key(self) -> bytes | None:
        return self.name

    def headers(self) -> Any:
        return self.more


def read(
    source: Stream,
    values: list[bytes | None],
    keys: list[bytes | None],
    headers: list[list[tuple[str, bytes | None]] | None],
) -> Decoded:
    messages = [Message(*one) for one in zip(keys, headers, strict=True)]
    n = len(values)
    return decode_messages(source, messages, values, np.full(n, 3), np.arange(n) + 70, np.full(n, 9_000))


@pytest.mark.parametrize(
    ("format_", "value"),
    [
        (RecordFormat(), b' {"a": 1} '),
        (RecordFormat("csv"), b"1"),
        (
            RecordFormat(
                "avro",
                schema=json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}),
                framed=False,
            ),
            b"\2",
        ),
        (RecordFormat("debezium", changelog=True), b'{"op": "c", "after": {"a": 1}}'),
    ],
)
def test_a_record_tells_of_itself(format_: RecordFormat, value: bytes) -> None:
    source = stream(format_, COLUMNS)
    headers: list[list[tuple[str, bytes | None]] | None] = [[("x", b"1"), ("y", None), ("x", b"2")], None]
    decoded = read(source, [value, value], [b'k"', None], headers)
    place = {"_partition": 3, "_timestamp": 9_000, "a": 1}
    assert seen(decoded) == [
        {**place, "_offset": 70, "_key": 'k"', "_headers": '{"x":"2","y":null}'},
        {**place, "_offset": 71, "_key": None, "_headers": "{}"},
    ]


def test_an_object_without_members_and_what_is_none() -> None:
    source = stream(RecordFormat(), {"a": BIGINT, "_offset": BIGINT})
    values: list[bytes | None] = [
        b"{}",
        b"{ }\n",
        b"[]",
        b'{"a":1',
        b'{"a":1,}',
        b'{"_offset":5}',
        None,
        b"{}}",
    ]
    decoded = read(source, values, [None] * 8, [None] * 8)
    assert seen(decoded) == [{"a": None, "_offset": 70}, {"a": None, "_offset": 71}]
    assert reasons(decoded).keys() == {2, 3, 4, 5, 6, 7}
    assert reasons(decoded)[5] == "column _offset: given twice"


def test_raw_records_with_their_key_as_bytes() -> None:
    source = stream(RecordFormat("raw"), {"v": STRING, "_key": BYTES, "_headers": map_of(BYTES)})
    decoded = read(source, [b"x"], [b"\xff"], [[("h", b"\xfe")]])
    assert seen(decoded) == [{"v": "x", "_key": "ff", "_headers": '{"h":"/g=="}'}]
    source = stream(RecordFormat("raw"), {"v": STRING, "_key": STRING})
    told = reasons(read(source, [b"x", b"y"], [b"\xff", b"k"], [None, None]))
    assert told == {0: "column _key: not UTF-8: invalid start byte; BYTES takes any bytes"}


def test_rows_of_a_table_have_them_and_deletions_do_not() -> None:
    source = stream(RecordFormat(), {"k": STRING, "v": BIGINT, "_offset": BIGINT, "_key": STRING}, ("k",))
    decoded = read(source, [b'{"v": 1}', None], [b"a", b"b"], [None, None])
    assert [(row["k"], row["v"], row["_offset"], row["_key"], row["deleted"]) for row in seen(decoded)] == [
        ("a", 1, 70, "a", False),
        ("b", None, None, None, True),
    ]


def test_a_path_reads_a_member_of_the_name() -> None:
    source = stream(RecordFormat(), {"_offset": BIGINT})
    field = replace(source.schema.fields[0], path=parse_path("$._offset"))
    source = replace(source, schema=Schema((field,)))
    assert seen(read(source, [b'{"_offset": 5}'], [None], [None])) == [{"_offset": 5}]


def test_what_nobody_knows_is_null() -> None:
    source = stream(RecordFormat(), {"_key": STRING, "_headers": map_of(STRING)})
    assert seen(decode_records(source, Written([b"{}"], [0], [1], [2]))) == [{"_key": None, "_headers": None}]

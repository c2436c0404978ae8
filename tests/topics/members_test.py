"""Which member of a record is which column: exactly, else without regard to letter case."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.model.source import Field, Schema, SourceName, Stream
from engine.model.types import BIGINT, STRING, TIMESTAMP
from topics.codec import decode
from topics.keyed import decode_keyed

DEVICES = Stream(
    SourceName("s"),
    Schema((Field("deviceid", STRING), Field("temp", BIGINT), Field("größe", BIGINT))),
    "s",
)


def rows_of(values: list[bytes], stream: Stream = DEVICES) -> tuple[list[tuple[Any, ...]], list[str]]:
    """The rows and the reasons of the records that gave none."""
    n = len(values)
    decoded = decode(stream, values, np.zeros(n), np.arange(n), np.full(n, 7_000))
    rows = decoded.batch.to_arrow().select(stream.schema.arrow.names).to_pylist()
    return [tuple(row.values()) for row in rows], [one.reason for one in decoded.bad]


@pytest.mark.parametrize(
    ("record", "row"),
    [
        ('{"deviceId": "a", "temp": 1}', ("a", 1, None)),
        ('{"DEVICEID": "a", "Temp": 1}', ("a", 1, None)),
        ('{"deviceid": "a", "deviceId": "b"}', ("a", None, None)),
        ('{"deviceId": "b", "deviceid": null}', (None, None, None)),
        ('{"device_id": "a", "temp": 1}', (None, 1, None)),
        ('{"device\\\\u0049d": "a"}', (None, None, None)),
        ('{"device\\u0049d": "a"}', ("a", None, None)),
        ('{"Größe": 3}', (None, None, 3)),
        ('{"gr\\u00f6\\u00dfe": 3}', (None, None, 3)),
        ('{"GR\\u00d6\\u00dfE": 3, "x\\u00e9": 1}', (None, None, 3)),
        ('{"inner": {"deviceId": "c"}, "list": [{"temp": 1}]}', (None, None, None)),
    ],
)
def test_member_is_a_column_by_exact_name_else_without_case(record: str, row: tuple[Any, ...]) -> None:
    assert rows_of([record.encode()]) == ([row], [])


def test_members_that_differ_in_case_alone_are_refused_by_name() -> None:
    rows, reasons = rows_of([b'{"deviceId": "a", "deviceID": "b"}', b'{"deviceId": "a", "deviceId": "b"}'])
    assert rows == []
    assert reasons == [
        "column deviceid: deviceID and deviceId differ in letter case alone",
        "column deviceid: given twice",
    ]


def test_columns_that_differ_in_case_alone_are_found_exactly() -> None:
    both = Stream(SourceName("s"), Schema((Field("a", BIGINT), Field("A", BIGINT))), "s")
    assert rows_of([b'{"A": 1}', b'{"a": 2}'], both) == ([(None, 1), (2, None)], [])


def test_records_of_many_layouts_keep_their_order() -> None:
    spellings = [
        "deviceid",
        "deviceId",
        "DeviceId",
        "DEVICEID",
        "deviceID",
        "Deviceid",
        "dEviceid",
        "deViceid",
    ]
    spellings += ["devIceid", "deviCeid", "devicEid", "deviceiD"]
    values = [f'{{"{spellings[i % len(spellings)]}": "{i}", "temp": {i}}}'.encode() for i in range(600)]
    values[77] = b"nothing"
    rows, reasons = rows_of(values)
    assert rows == [(str(i), i, None) for i in range(600) if i != 77]
    assert reasons == ["not a JSON object"]


def test_timestamps_as_text_are_read_from_members_in_other_case() -> None:
    stream = Stream(SourceName("s"), Schema((Field("createdat", TIMESTAMP),)), "s", "createdat")
    decoded = decode(
        stream, [b'{"createdAt": "1970-01-01T00:00:01Z"}'] * 300, [0] * 300, range(300), [9] * 300
    )
    assert decoded.batch.timestamp.tolist() == [1_000] * 300


def test_key_columns_of_a_table_are_no_columns_of_its_values() -> None:
    table = Stream(
        SourceName("t"),
        Schema((Field("Id", STRING, nullable=False), Field("id", BIGINT), Field("name", STRING))),
        "t",
        key=("Id",),
    )
    decoded = decode_keyed(table, [b'"k"'], [b'{"Id": "other", "ID": 5, "Name": "n"}'], [0], [0], [7])
    assert [tuple(row.values())[:3] for row in decoded.batch.to_arrow().to_pylist()] == [("k", None, "n")]


def test_registry_wire_format_is_named() -> None:
    rows, reasons = rows_of([b"\x00\x00\x00\x00\x07\x02hi", b"\x00", b'{"temp": 1}'])
    assert rows == [(None, 1, None)]
    assert reasons[0].startswith("looks like Avro")
    assert reasons[1] == "not a JSON object"

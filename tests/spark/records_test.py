"""Typed rows to messages, and JSON lines to raw rows."""

from __future__ import annotations

import json
from decimal import Decimal

import numpy as np
import pytest
from pyspark.sql import SparkSession

from engine.model.source import Stream
from spark_jobs.errors import InputMismatch
from spark_jobs.sources.declaring import declared_stream
from spark_jobs.sources.fitting import check
from spark_jobs.sources.reading import raw_of, raw_of_json
from spark_jobs.sources.records import MESSAGE_BYTES_MAX, messages, quarantined, with_messages
from topics.codec import decode

EVERYTHING = """
    CREATE STREAM everything (
        flag BOOLEAN, small INTEGER, big BIGINT, ratio DOUBLE, price DECIMAL(18, 10), name STRING, day DATE,
        at TIMESTAMP
    ) WITH (timestamp = 'at')
"""


def stream(sql: str) -> Stream:
    return declared_stream(sql).stream


def test_a_message_has_every_column_exactly(spark: SparkSession) -> None:
    everything = stream(EVERYTHING)
    table = spark.createDataFrame(
        [
            (
                "true",
                "-1",
                "9007199254740993",
                "0.1",
                "0",
                'Zü"r\n🚀',
                "2024-02-29",
                "1969-12-31 23:59:59.999",
            ),
            ("f", "0", "0", "1e300", "12345678.0123456789", "", "0001-01-01", "2024-06-01T10:00:00.123Z"),
            (None, None, None, None, None, None, None, "0"),
        ],
        ["flag", "small", "big", "ratio", "price", "name", "day", "at"],
    )
    written = with_messages(check(raw_of(table, everything.schema), everything), everything, None)
    values = [row.value for row in messages(written, everything).collect()]
    assert [json.loads(value) for value in values] == [
        {
            "flag": True, "small": -1, "big": 9007199254740993, "ratio": 0.1, "price": "0.0000000000",
            "name": 'Zü"r\n🚀', "day": "2024-02-29", "at": -1,
        },
        dict.fromkeys(("flag", "small", "big", "ratio", "price", "name", "day")) | {"at": 0},
        {
            "flag": False, "small": 0, "big": 0, "ratio": 1e300, "price": "12345678.0123456789",
            "name": "", "day": "0001-01-01", "at": 1_717_236_000_123,
        },
    ]  # fmt: skip
    numbers = np.arange(len(values))
    decoded = decode(everything, [v.encode() for v in values], np.zeros(len(values)), numbers, numbers)
    assert not decoded.bad
    assert [column.to_arrow().to_pylist() for column in decoded.batch.columns][4] == [
        Decimal("0E-10"),
        None,
        Decimal("12345678.0123456789"),
    ]


def test_messages_are_in_event_time_order_in_one_partition(spark: SparkSession) -> None:
    events = stream("CREATE STREAM s (id BIGINT, at TIMESTAMP) WITH (timestamp = 'at')")
    table = spark.createDataFrame([(n, str((n * 7) % 50)) for n in range(50)], ["id", "at"]).repartition(3)
    written = with_messages(check(raw_of(table, events.schema), events), events, "at")
    out = messages(written, events)
    assert out.rdd.getNumPartitions() == 1
    rows = out.collect()
    assert [json.loads(row.value)["at"] for row in rows] == list(range(50))
    assert [row.key for row in rows] == [str(n) for n in range(50)]


def test_without_event_time_rows_keep_their_order(spark: SparkSession) -> None:
    arrivals = stream("CREATE STREAM s (id BIGINT)")
    table = spark.createDataFrame([(n,) for n in (3, 1, 2)], ["id"])
    written = with_messages(check(raw_of(table, arrivals.schema), arrivals), arrivals, None)
    assert [(r.key, r.value) for r in messages(written, arrivals).collect()] == [
        (None, '{"id":3}'),
        (None, '{"id":1}'),
        (None, '{"id":2}'),
    ]


def test_no_row_is_lost_between_messages_and_quarantine(spark: SparkSession) -> None:
    rows = stream("CREATE STREAM s (name STRING NOT NULL)")
    table = spark.createDataFrame([("a", 1), (None, 2), ("x" * MESSAGE_BYTES_MAX, 3)], ["name", "extra"])
    written = with_messages(check(raw_of(table, rows.schema), rows), rows, "name")
    assert [(row.key, row.value) for row in messages(written, rows).collect()] == [("a", '{"name":"a"}')]
    null, long = quarantined(written, rows).orderBy("reason", ascending=False).collect()
    assert (null.stream, null.reason, null.record) == (
        "s",
        "name: NULL, but a value is required",
        '{"extra":2}',
    )
    assert long.reason == f"{MESSAGE_BYTES_MAX + 11} bytes are more than the {MESSAGE_BYTES_MAX} allowed"


def test_a_key_that_is_no_column_is_refused(spark: SparkSession) -> None:
    rows = stream("CREATE STREAM s (name STRING)")
    checked = check(raw_of(spark.createDataFrame([("a",)], ["name"]), rows.schema), rows)
    with pytest.raises(InputMismatch, match="'nam' is no column of s"):
        with_messages(checked, rows, "nam")


def test_json_lines_are_read_as_their_text(spark: SparkSession) -> None:
    rows = stream("CREATE STREAM s (price DECIMAL(18, 4), name STRING, n BIGINT)")
    lines = [
        '{"price": 12345678901234.1234, "name": "é", "n": 9007199254740993, "more": [1]}',
        '{"price": "0.10", "name": null}',
        "   ",
        '{"price": 1.0',
        "[1, 2]",
        '{"price": "a lot", "n": true}',
        '{"name": {"nested": 1}}',
        "7",
        '{"n": 1} {"n": 2}',
        '{"n": 1}, {"n": 2}',
        '{"n": 1} x',
        '{"n": NaN}',
        '{"n": 1, "n": 2}',
        ' {"n": -5, "name": "7", "price": 0.3} ',
        "{}",
    ]
    table = spark.createDataFrame([(line, "f") for line in lines], "value string, file string")
    checked = check(raw_of_json(table, rows.schema), rows).collect()
    assert [tuple(row.row) for row in checked if row.reason is None] == [
        (Decimal("12345678901234.1234"), "é", 9007199254740993),
        (Decimal("0.1000"), None, None),
        (None, '{"nested":1}', None),
        (Decimal("0.3000"), "7", -5),
        (None, None, None),
    ]
    assert [(row.record, row.reason) for row in checked if row.reason is not None] == [
        (lines[3], "the line is not one JSON object"),
        (lines[4], "the line is not one JSON object"),
        (lines[5], "price: 'a lot' is not a value of DECIMAL(18, 4); n: 'true' is not a value of BIGINT"),
        *((line, "the line is not one JSON object") for line in lines[7:13]),
    ]


def test_json_members_are_columns_without_regard_to_case(spark: SparkSession) -> None:
    devices = stream("CREATE STREAM devices (deviceId STRING, temp BIGINT)")
    lines = [
        '{"deviceId": "a", "temp": 1}',
        '{"deviceid": null, "deviceId": "b", "TEMP": 2}',
        '{"deviceId": "c", "DEVICEID": "d"}',
    ]
    raw = raw_of_json(spark.createDataFrame([(one, "f") for one in lines], ["value", "file"]), devices.schema)
    found = {row.record: (row.value.deviceid, row.value.temp, row.broken) for row in raw.collect()}
    assert [found[one] for one in lines[:2]] == [("a", "1", None), (None, "2", None)]
    assert found[lines[2]][2] == "members differ from column deviceid in letter case alone"

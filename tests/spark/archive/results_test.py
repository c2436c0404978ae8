"""Records of results in every format and encoding to rows that say the same."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from engine.model.changes import Operator
from spark_jobs.archive.results import avro_id, result_rows
from spark_jobs.archive.rows import RAW_KEY, RAW_VALUE, REASON
from tests.topics.results import (
    FULL,
    KEYED,
    NULLS,
    WIDE,
    Change,
    changes,
    headers,
    pairs,
    registered,
    written,
)
from topics.destination import Destination, Encoding, Format
from topics.results import Records
from topics.results_codec import JsonCodec
from topics.results_schema import ResultSchemas

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
ENCODINGS: tuple[Encoding, ...] = ("json", "json_schema", "avro")
SECOND: list[Change] = [("a", 1, 5, (1, "x")), ("a", 1, 5, (2, "x")), ("a", -1, 6, (1, "x"))]


def rows(records: Records, schemas: dict[int, str] | None = None) -> list[dict[str, Any]]:
    n = len(records)
    batch = pa.record_batch(
        {
            "partition": pa.array([0] * n, pa.int32()),
            "offset": pa.array(range(n), pa.int64()),
            "at_ms": pa.array([1_700_000_000_000 + i for i in range(n)], pa.int64()),
            "key": records.keys.cast(pa.binary()),
            "value": records.values.cast(pa.binary()),
            "headers": pa.array(
                [[{"key": k, "value": v} for k, v in one.items()] for one in headers(records)], HEADERS
            ),
        }
    )
    return [row for part in result_rows([batch], schemas or {}) for row in part.to_pylist()]


def some(one: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in one]


def record(key: bytes | None, value: bytes | None) -> Records:
    return Records("t", pa.array([key], pa.large_binary()), pa.array([value], pa.large_binary()), [], None, 0)


@pytest.mark.parametrize("form", ["upsert", "debezium", "diff"])
@pytest.mark.parametrize("key", [(2, 5), None])
def test_all_encodings_say_the_same(form: Format, key: tuple[int, ...] | None) -> None:
    """Every type, NULLs, names that Avro does not have."""
    whole = changes([("a", 1, 1, FULL), ("a", 1, 1, NULLS), ("a", -1, 2, NULLS)], WIDE, copies=True)
    found = []
    for encoding in ENCODINGS:
        where = Destination("t.results.x", form == "upsert", False, form, encoding, "changes", key)
        client, codec = (None, JsonCodec()) if encoding == "json" else registered(form, encoding, key)
        records = written(whole, where, codec)
        ids = {number for pair in pairs(records) for data in pair if (number := avro_id(data)) is not None}
        assert bool(ids) == (encoding == "avro")
        told = rows(records, {number: client.get_schema(number).schema_str for number in ids})
        assert {row["encoding"] for row in told} == {encoding}
        assert [row[REASON] for row in told] == [None] * len(told)
        found.append([{**row, "encoding": "", "raw_key": b"", "raw_value": b""} for row in told])
    assert found[0] == found[1] == found[2]
    assert found[0][0]["_date"].isoformat() == "2023-11-14"
    assert {row["kind"] for row in found[0]} == {"row"}


def test_upsert_by_key() -> None:
    told = rows(written(changes(KEYED), Destination("t", True, False, "upsert", "json", "changes", (0,))))
    assert some(told, "query_id", "op", "key", "row")[:4] == [
        ("a", "u", '{"k":1}', '{"k":1,"v":"x"}'),
        ("a", "u", '{"k":1}', '{"k":1,"v":"y"}'),
        ("a", "d", '{"k":1}', None),
        ("b", "d", '{"k":1}', None),
    ]
    assert some(told, "position", "sequence", "at_ms", "occasion")[0] == ("3-77", 77, 5, None)
    assert {row["format"] for row in told} == {"upsert"}
    assert told[2]["raw_value"] is None


def test_debezium_and_diff() -> None:
    told = rows(written(changes(KEYED), Destination("t", False, False, "debezium", "json", "changes", (0,))))
    x, y = '{"k":1,"v":"x"}', '{"k":1,"v":"y"}'
    assert some(told, "op", "before", "row")[:3] == [("c", None, x), ("u", x, y), ("d", y, None)]
    told = rows(written(changes(KEYED), Destination("t", False, False, "diff", "json", "changes", (0,))))
    assert some(told, "op", "weight", "row")[:3] == [("c", 1, x), ("d", -1, x), ("c", 1, y)]


@pytest.mark.parametrize("operator", ["istream", "dstream", "rstream"])
@pytest.mark.parametrize("form", ["upsert", "debezium", "diff"])
def test_logs(form: Format, operator: Operator) -> None:
    one: list[Change] = [("a", -1 if operator == "dstream" else 1, 5, (1, "x"))]
    told = rows(written(changes(one), Destination("t", False, False, form, "json", operator)))
    assert some(told, "kind", "key", "format") == [("log", '"77-0"', form)]
    assert (told[0]["row"] or told[0]["before"]) == '{"k":1,"v":"x"}'
    assert (told[0]["op"] is None) == (form == "upsert")


def test_a_snapshot_is_told_by_its_occasion() -> None:
    whole = changes(SECOND[:2], occasion="snapshot")
    told = rows(written(whole, Destination("t", False, False, "debezium", "json", "changes", (0,))))
    assert some(told, "op", "occasion") == [("r", "snapshot")] * 2


def test_rows_that_look_like_another_format_are_rows() -> None:
    columns = pa.schema(
        [("before", pa.string()), ("after", pa.string()), ("op", pa.string()), ("ts_ms", pa.int64())]
    )
    whole = changes([("a", 1, 1, (None, None, "c", 5))], columns, copies=True)
    told = rows(written(whole, Destination("t", True, False, "upsert", "json", "changes")))
    assert some(told, "format", "op") == [("upsert", "u")]
    assert json.loads(told[0]["row"]) == {"before": None, "after": None, "op": "c", "ts_ms": 5}


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (None, b"{}", "the key is not that of a result"),
        (b"{}", b"{}", "the key is not that of a result"),
        (b"\xff", b"{}", "the key is not JSON"),
        (b"[1]", b"{}", "the key is not a JSON object"),
        (b'{"query":"q","row":"x"}', b"{}", "the key is not that of a result"),
        (b'{"query":"q","row":"1-2"}', None, "a null value, whose key is not of a row"),
        (b'{"query":"q","key":{}}', b'{"a":{}}', "the value is of no format"),
        (b'{"query":"q","key":{}}', b"{", "the value is not JSON"),
        (b'{"query":"q","key":{}}', b"", "the value is not JSON"),
        (b'{"query":"q","key":{}}', b"\0\0\0\0\x07\x02", "the schema 7, which the registry does not know"),
        (b'{"query":"q","key":{}}', b'{"row":{"a":1},"weight":"x"}', "the weight is not 1 or -1"),
    ],
)
def test_what_is_no_result(key: bytes | None, value: bytes | None, reason: str) -> None:
    (told,) = rows(record(key, value))
    assert reason in told[REASON]
    assert (told[RAW_KEY], told[RAW_VALUE], told["_offset"], told["query_id"]) == (key, value, 0, None)


def test_avro_that_is_cut_off() -> None:
    schemas = ResultSchemas("t", WIDE, None, "upsert")
    (told,) = rows(record(b'{"query":"q","key":{}}', b"\0\0\0\0\x07\x02"), {7: schemas.texts("avro")[1]})
    assert "the value is not Avro of its schema" in told[REASON]

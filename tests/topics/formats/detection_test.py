"""What is proposed for records in other formats than JSON reads all of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from broker.http.errors import NotInferred
from broker.http.proposal import propose
from broker.http.sampled_topic import Topic
from engine.language.query import CreateFromTopic
from engine.language.statements import parse
from engine.model.limits import Limits
from tests.registry import TestRegistry
from tests.topics.formats.avro import encoded
from tests.topics.formats.protobuf import made
from topics.formats.schemas import use_registry
from topics.registry import wire_prefix
from tureen.errors import QueryError

NOW_MS = 1_780_000_000_000
SCHEMA = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {
            "name": "meta",
            "type": {"type": "record", "name": "M", "fields": [{"name": "fw", "type": "string"}]},
        },
    ],
}


@dataclass(frozen=True)
class Message:
    """A record as Kafka's client gives it, a second after the one before."""

    at: int
    data: bytes | None
    name: bytes | None

    def key(self) -> bytes | None:
        return self.name

    def value(self) -> bytes | None:
        return self.data

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self.at

    def timestamp(self) -> tuple[int, int]:
        return 1, NOW_MS + 1_000 * self.at

    def headers(self) -> Any:
        return ()


def proposed(
    values: Sequence[bytes | None],
    keys: Sequence[bytes | None] = (),
    asked: str | None = None,
    *,
    compacted: bool = False,
) -> dict[str, Any]:
    """asked: CREATE ... FROM TOPIC."""
    messages = [Message(at, one, keys[at] if keys else None) for at, one in enumerate(values)]
    statement = None if asked is None else parse(asked, {}, Limits())
    assert statement is None or isinstance(statement, CreateFromTopic)
    return propose(Topic("t", "s", 1, len(values), compacted, False), messages, Limits(), statement)


def lines(found: dict[str, Any]) -> list[str]:
    return [line.strip().rstrip(",") for line in found["sql"].splitlines()]


def records(count: int = 30) -> list[dict[str, Any]]:
    return [{"id": i, "at": NOW_MS + i * 1_000, "meta": {"fw": f"v{i}"}} for i in range(count)]


def test_avro_and_its_keys(here: TestRegistry) -> None:
    number, key = here.put("t-value", json.dumps(SCHEMA)), here.put("t-key", '"long"')
    parsed = fastavro.parse_schema(SCHEMA)
    values = [wire_prefix(number) + encoded(parsed, row) for row in records()]
    found = proposed(values)
    assert (found["kind"], found["format"]) == ("stream", "avro")
    assert lines(found) == [
        "CREATE STREAM s (",
        "id BIGINT",
        "at TIMESTAMP NOT NULL",
        "meta_fw STRING PATH '$.meta.fw'",
        ") WITH (topic = 't', format = 'avro', timestamp = 'at')",
    ]
    assert found["sample"] == {
        "records": 30, "read": 30, "late": 0, "unreadable": [], "heartbeats": 0, "names": 0,
    }  # fmt: skip
    keys = [wire_prefix(key) + encoded("long", i) for i in range(30)]
    found = proposed([*values[:29], None], keys, compacted=True)
    assert (found["kind"], found["format"], found["sample"]["read"]) == ("table", "avro", 30)
    assert found["format_options"] == ["format = 'avro'", "key_format = 'avro'"]
    assert ", ".join(found["format_options"]) in found["sql"]


def test_protobuf_and_its_keys(here: TestRegistry) -> None:
    text = """syntax = "proto3";
    import "google/protobuf/timestamp.proto"; import "google/protobuf/wrappers.proto";
    message Other {}
    message Reading { message Meta { string fw = 1; }
    int64 id = 1; google.protobuf.Timestamp at = 2; Meta meta = 3;
    map<string, int32> counts = 4; repeated Meta many = 5; google.protobuf.DoubleValue v = 6; uint64 u = 7;
    repeated bytes parts = 8; Reading next = 9; }"""
    number = here.put("t-value", text, "PROTOBUF")
    key = here.put("t-key", 'syntax = "proto3"; message K { int64 id = 1; }', "PROTOBUF")
    of: Any = made(text, "Reading")
    values = [
        wire_prefix(number)
        + b"\x02\x02"
        + of(id=row["id"], at={"seconds": row["at"] // 1_000}, meta=row["meta"]).SerializeToString()
        for row in records()
    ]
    found = proposed(values)
    assert (found["kind"], found["format"], found["sample"]["read"]) == ("stream", "protobuf", 30)
    assert {
        "id BIGINT",
        "at TIMESTAMP NOT NULL",
        "meta_fw STRING PATH '$.meta.fw'",
        "counts MAP<STRING, INTEGER>",
        "many ARRAY<STRUCT<fw STRING>>",
        "v DOUBLE",
        "u BIGINT",
        "parts ARRAY<BYTES>",
    } <= set(lines(found))
    assert lines(found)[-1] == ") WITH (topic = 't', format = 'protobuf', timestamp = 'at')"
    keys = [wire_prefix(key) + b"\x00\x08" + bytes([i + 1]) for i in range(30)]
    found = proposed([*values[:29], None], keys, compacted=True)
    assert (found["kind"], found["sample"]["read"]) == ("table", 30)
    assert found["format_options"] == ["format = 'protobuf'", "key_format = 'protobuf'"]


def test_json_behind_the_id_of_a_schema(here: TestRegistry) -> None:
    number = here.put("t-value", "{}", "JSON")
    found = proposed([wire_prefix(number) + json.dumps(row).encode() for row in records()])
    assert (found["format"], found["sample"]["read"]) == ("json-schema", 30)
    assert "format = 'json-schema'" in found["sql"]


@pytest.mark.parametrize("wrapped", [True, False])
def test_change_events_with_keys_are_a_table_and_without_a_stream_of_changes(wrapped: bool) -> None:
    values = []
    for row in records():
        event: Any = {
            "before": None,
            "after": row,
            "op": "c",
            "ts_ms": row["at"],
            "source": {"ts_ms": row["at"]},
        }
        values.append(json.dumps({"schema": None, "payload": event} if wrapped else event).encode())
    keys = [json.dumps({"id": i}).encode() for i in range(30)]
    found = proposed(values, keys)
    assert (found["kind"], found["key"], found["sample"]["read"]) == ("table", ["id"], 30)
    assert "format = 'debezium')" in found["sql"]
    found = proposed(values)
    assert (found["kind"], found["sample"]["read"]) == ("stream", 30)
    assert {"_op", "_source_ts", "id"} <= {one["name"] for one in found["columns"]}
    assert "format = 'debezium', changelog = true" in found["sql"]


def test_members_of_what_gives_no_row_are_no_columns(here: TestRegistry) -> None:
    events: list[bytes] = [
        json.dumps({"before": None, "after": row, "op": "c"}).encode() for row in records()
    ]
    others = [json.dumps(one).encode() for one in ({"op": "t", "before": None}, {"op": "m"}, {"foo": 1})]
    keys = [json.dumps({"id": i}).encode() for i in range(33)]
    clean = {one["name"] for one in proposed(events, keys[:30])["columns"]}
    found = proposed([*events, *others], keys)
    assert ({one["name"] for one in found["columns"]}, found["sample"]["read"]) == (clean, 30)
    prefix = wire_prefix(here.put("t-value", json.dumps(SCHEMA)))
    values = [prefix + encoded(SCHEMA, row) for row in records()]
    assert "timestamp = 'at'" in proposed([*values, b'{"id": 1}'])["sql"]


def test_what_the_registry_does_not_tell_stays_what_it_looks_like(here: TestRegistry) -> None:
    values = [wire_prefix(99) + b"abc"] * 30
    assert proposed(values)["sql"] is None
    (warning,) = proposed(values)["warnings"]
    assert warning["code"] == "schema_unknown"
    assert "(99)" in warning["message"]
    here.stop()
    (warning,) = proposed([wire_prefix(98) + b"abc"] * 30)["warnings"]
    assert "does not answer" in warning["message"]
    use_registry(None)
    found = proposed(values)
    assert (found["sql"], found["format"]) == (None, "json")
    assert "a schema registry's wire formats" in found["warnings"][0]["message"]


def test_json_is_json() -> None:
    found = proposed([json.dumps({**row, "op": "c"}).encode() for row in records()])
    assert (found["format"], found["format_options"], "format" in found["sql"]) == ("json", [], False)


TYPED = {
    "type": "record",
    "name": "T",
    "fields": [
        {"name": "small", "type": "int"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
        {"name": "picture", "type": ["null", "bytes"]},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "digits", "type": "string"},
        {"name": "kind", "type": {"type": "enum", "name": "K", "symbols": ["A", "B"]}},
        {"name": "limits", "type": {"type": "map", "values": "double"}},
        {"name": "never", "type": ["null", {"type": "record", "name": "N", "fields": [
            {"name": "x", "type": "long"}]}]},
        {"name": "lines", "type": {"type": "array", "items": {"type": "record", "name": "L", "fields": [
            {"name": "sku", "type": "string"}, {"name": "n", "type": ["null", "int"]}]}}},
        {"name": "either", "type": ["null", "string", "long"]},
        {"name": "ms", "type": "long"},
    ],
}  # fmt: skip


def test_types_are_those_of_the_avro_schema(here: TestRegistry) -> None:
    prefix = wire_prefix(here.put("t-value", json.dumps(TYPED)))
    parsed = fastavro.parse_schema(TYPED)
    rows = [
        {
            "small": i, "price": Decimal("12.50"), "picture": None, "day": date(2024, 2, 29),
            "at": datetime.fromtimestamp(NOW_MS / 1_000 + i, UTC), "digits": "0123", "kind": "A",
            "limits": {"a": 1.0}, "never": None, "lines": [{"sku": "x", "n": 1}], "either": 5,
            "ms": NOW_MS + 1_000 * i,
        }
        for i in range(30)
    ]  # fmt: skip
    found = proposed([prefix + encoded(parsed, row) for row in rows])
    assert {one["name"]: one["type"] for one in found["columns"]} == {
        "small": "INTEGER", "price": "DECIMAL(12, 2)", "picture": "BYTES", "day": "DATE", "at": "TIMESTAMP",
        "digits": "STRING", "kind": "STRING", "limits": "MAP<STRING, DOUBLE>", "never_x": "BIGINT",
        "lines": "ARRAY<STRUCT<sku STRING, n INTEGER>>", "either": "BIGINT", "ms": "TIMESTAMP",
    }  # fmt: skip
    assert (found["sample"]["read"], found["left_out"]) == (30, [])
    assert [one["name"] for one in found["columns"] if one["guessed"]] == ["ms"]


def test_types_are_those_of_the_json_schema(here: TestRegistry) -> None:
    schema = {
        "type": "object",
        "properties": {
            "id": {"type": ["integer", "null"]},
            "total": {"oneOf": [{"type": "null"}, {"type": "number"}]},
            "at": {"type": "string", "format": "date-time"},
            "code": {"type": "string"},
            "unseen": {"$ref": "#/definitions/Address"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "open": {"type": "object"},
        },
        "definitions": {"Address": {"type": "object", "properties": {"city": {"type": "string"}}}},
    }
    prefix = wire_prefix(here.put("t-value", json.dumps(schema), "JSON"))
    rows = [
        {
            "id": 1,
            "total": 5,
            "at": "2026-05-28T20:00:00Z",
            "code": "2024-02-29",
            "tags": [],
            "open": {"b": 1},
        }
        for _ in range(30)
    ]
    found = proposed([prefix + json.dumps(row).encode() for row in rows])
    assert {one["name"]: one["type"] for one in found["columns"]} == {
        "unseen_city": "STRING", "id": "BIGINT", "total": "DOUBLE", "at": "TIMESTAMP", "code": "STRING",
        "tags": "ARRAY<STRING>", "open_b": "BIGINT",
    }  # fmt: skip
    assert (found["sample"]["read"], [one for one in found["columns"] if one["guessed"]]) == (30, [])
    loop = json.dumps({"$ref": "#"})
    prefix = wire_prefix(here.put("loop-value", loop, "JSON"))
    assert lines(proposed([prefix + json.dumps(row).encode() for row in records()]))[1] == "id BIGINT"


def test_types_are_those_of_the_schema_beside_an_event() -> None:
    fields = [
        {"field": "id", "type": "int32"},
        {"field": "born", "type": "int32", "name": "io.debezium.time.Date"},
        {"field": "credit", "type": "bytes", "name": "org.apache.kafka.connect.data.Decimal",
         "parameters": {"scale": "2", "connect.decimal.precision": "12"}},
        {"field": "seen", "type": "int64", "name": "io.debezium.time.MicroTimestamp"},
    ]  # fmt: skip
    schema = {"type": "struct", "fields": [{"field": "after", "type": "struct", "fields": fields}]}
    row = {"born": 19_000, "credit": "BOE=", "seen": NOW_MS * 1_000}
    values = [
        json.dumps(
            {"schema": schema, "payload": {"before": None, "after": {"id": i, **row}, "op": "c"}}
        ).encode()
        for i in range(30)
    ]
    found = proposed(values, [json.dumps({"id": i}).encode() for i in range(30)], compacted=True)
    assert {one["name"]: one["type"] for one in found["columns"]} == {
        "id": "BIGINT", "born": "DATE", "credit": "DECIMAL(12, 2)", "seen": "TIMESTAMP",
    }  # fmt: skip
    assert (found["kind"], found["sample"]["read"]) == ("table", 30)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("has_names", [True, False])
def test_lines_of_fields_are_csv(delimiter: str, has_names: bool) -> None:
    rows = [
        f'{i},"a b{delimiter}c",,2026-05-2{i % 9},{i / 4},{str(i % 2 == 0).lower()},00{i}' for i in range(40)
    ]
    names = ["Id,Some name,none,day,share,flag,code"] if has_names else []
    values = [one.replace(",", delimiter).encode() for one in (*names, *rows)]
    found = proposed(values)
    assert (found["format"], found["sample"]["read"]) == ("csv", 40)
    types = [one["type"] for one in found["columns"][:-1]]
    assert types == ["BIGINT", "STRING", "STRING", "DATE", "DOUBLE", "BOOLEAN", "STRING"]
    told = [one["name"] for one in found["columns"][:-1]]
    expected = ["id", "some_name", "none", "day", "share", "flag", "code"]
    assert told == (expected if has_names else [f"column_{at}" for at in range(1, 8)])
    assert found["warnings"][0]["code"] == "format_guessed"
    assert ("delimiter" in found["sql"]) == (delimiter != ",")


@pytest.mark.parametrize(
    ("values", "column"),
    [
        ([b"plain text", "größer".encode(), None], "line STRING"),
        ([b"one, two", b"three", b"four, five, six"], "line STRING"),
        ([b"[1, 2]"], "line STRING"),
        ([b"\xff\xfe", b"\x00"], "data BYTES"),
    ],
)
def test_what_is_nothing_else_is_raw(values: list[bytes | None], column: str) -> None:
    found = proposed(values)
    assert lines(found)[1:3] == [column, "_timestamp TIMESTAMP NOT NULL"]
    assert "format = 'raw'" in found["sql"]
    assert found["sample"]["read"] == sum(one is not None for one in values)
    assert "is a guess" in found["columns"][0]["guessed"]


def test_what_is_asked_is_kept() -> None:
    values = [json.dumps({"id": i, "when": 1_000 * i, "at": NOW_MS + i}).encode() for i in range(30)]
    asked = (
        "CREATE STREAM IF NOT EXISTS s FROM TOPIC 't' WITH (timestamp = 'when', lateness = '2 seconds', "
        "past_max = '100000 days') RETAIN 2 DAYS"
    )
    found = proposed(values, asked=asked)
    assert lines(found) == [
        "CREATE STREAM IF NOT EXISTS s (",
        "id BIGINT",
        '"when" TIMESTAMP NOT NULL',
        "at TIMESTAMP",
        (
            ") WITH (topic = 't', timestamp = 'when', lateness = '2 seconds', past_max = '100000 days', "
            "retain = '2 days')"
        ),
    ]
    assert found["sample"]["read"] == 30
    assert (
        "timestamp = '_timestamp'"
        in proposed(values, asked="CREATE STREAM s FROM TOPIC 't' WITH (timestamp = '_timestamp')")["sql"]
    )
    with pytest.raises(QueryError, match="is no instant in 30 of 30"):
        proposed([b'{"x": "soon"}'] * 30, asked="CREATE STREAM s FROM TOPIC 't' WITH (timestamp = 'x')")
    with pytest.raises(QueryError, match="y"):
        proposed([b'{"x": "soon"}'] * 30, asked="CREATE STREAM s FROM TOPIC 't' WITH (timestamp = 'y')")
    with pytest.raises(NotInferred, match="none of a table"):
        proposed(values, asked="CREATE TABLE s FROM TOPIC 't'")
    keys = [str(i).encode() for i in range(30)]
    assert proposed(values, keys, "CREATE TABLE s FROM TOPIC 't'")["key"] == ["id"]
    assert proposed(values, keys, "CREATE STREAM s FROM TOPIC 't'", compacted=True)["kind"] == "stream"
    events = [json.dumps({"op": "c", "before": None, "after": {"id": i}}).encode() for i in range(30)]
    keys = [json.dumps({"id": i}).encode() for i in range(30)]
    found = proposed([*events[:29], None], keys, "CREATE STREAM s FROM TOPIC 't'")
    assert ("changelog = true" in found["sql"], found["sample"]["read"]) == (True, 30)


def test_a_format_that_is_given_is_not_guessed() -> None:
    lines_ = [f"{i}:x".encode() for i in range(30)]
    found = proposed(lines_, asked="CREATE STREAM s FROM TOPIC 't' WITH (format = 'csv', delimiter = ':')")
    assert [one["type"] for one in found["columns"]] == ["BIGINT", "STRING", "TIMESTAMP"]
    assert "format = 'csv', delimiter = ':'" in found["sql"]
    assert (
        lines(proposed(lines_, asked="CREATE STREAM s FROM TOPIC 't' WITH (format = 'raw')"))[1]
        == "line STRING"
    )
    schema = json.dumps(SCHEMA)
    asked = f"CREATE STREAM s FROM TOPIC 't' WITH (format = 'avro', schema = '{schema}')"
    parsed = fastavro.parse_schema(SCHEMA)
    found = proposed([encoded(parsed, row) for row in records()], asked=asked)
    assert (lines(found)[1:4], found["sample"]["read"]) == (
        ["id BIGINT", "at TIMESTAMP NOT NULL", "meta_fw STRING PATH '$.meta.fw'"], 30,
    )  # fmt: skip
    assert f"schema = '{schema}'" in found["sql"]


def test_raw_records_may_be_a_table_and_have_the_logs_timestamp_alone() -> None:
    values, keys = [b"some text", None], [b"k1", b"k2"]
    found = proposed(values, keys, "CREATE TABLE s FROM TOPIC 't'", compacted=True)
    assert (found["kind"], lines(found)[1:4]) == (
        "table",
        ["key STRING NOT NULL", "line STRING", "PRIMARY KEY (key)"],
    )
    assert found["sample"]["read"] == 2
    with pytest.raises(NotInferred, match="none of a table"):
        proposed(values, asked="CREATE TABLE s FROM TOPIC 't'")
    with pytest.raises(QueryError, match="at"):
        proposed(values, asked="CREATE STREAM s FROM TOPIC 't' WITH (timestamp = 'at')")
    asked = "CREATE TABLE s FROM TOPIC 't' WITH (timestamp = '_timestamp')"
    found = proposed([b'{"v": 1}'] * 30, [b"%d" % at for at in range(30)], asked, compacted=True)
    assert "_timestamp TIMESTAMP NOT NULL" in found["sql"]
    assert (found["timestamp"]["column"], found["sample"]["read"]) == ("_timestamp", 30)
    assert proposed([], asked="CREATE STREAM s FROM TOPIC 't' WITH (timestamp = 'at')")["sql"] is None


def test_columns_stand_in_the_order_of_the_schema(here: TestRegistry) -> None:
    fields = [
        {"name": "z", "type": ["null", "string"]},
        {"name": "either", "type": ["null", "string", "long"]},
        {"name": "m", "type": {"type": "record", "name": "M", "fields": [
            {"name": "b", "type": ["null", "long"]}, {"name": "a", "type": "long"}]}},
        {"name": "a", "type": "long"},
    ]  # fmt: skip
    schema = {"type": "record", "name": "R", "fields": fields}
    prefix = wire_prefix(here.put("t-value", json.dumps(schema)))
    row = {"z": None, "either": 5, "m": {"b": None, "a": 1}, "a": 2}
    found = proposed([prefix + encoded(fastavro.parse_schema(schema), row)] * 30)
    assert [one["name"] for one in found["columns"]] == ["z", "either", "m_b", "m_a", "a", "_timestamp"]


@pytest.mark.parametrize(("beyond", "type_"), [(0, "BIGINT"), (1, "BIGINT"), (30, "JSON")])
def test_whole_numbers_of_protobuf_keep_each_digit(here: TestRegistry, beyond: int, type_: str) -> None:
    text = 'syntax = "proto3"; message R { uint64 u = 1; string s = 2; }'
    prefix = wire_prefix(here.put("t-value", text, "PROTOBUF")) + b"\0"
    of: Any = made(text, "R")
    numbers = [2**64 - 1] * beyond + [2**63 - 1] * (30 - beyond)
    found = proposed([prefix + of(u=one, s="x").SerializeToString() for one in numbers])
    assert [one["type"] for one in found["columns"]] == [type_, "STRING", "TIMESTAMP"]
    assert found["sample"]["read"] == (30 if type_ == "JSON" else 30 - beyond)
    assert (found["columns"][0]["guessed"] is None) == (beyond == 0)


def test_a_line_of_names_is_none_of_the_lines_that_have_to_be_read() -> None:
    found = proposed([b"id,name", b"1,a", b"2,b"])
    sample = {name: found["sample"][name] for name in ("records", "read", "names")}
    assert sample == {"records": 3, "read": 2, "names": 1}


def test_event_time_in_seconds_is_told_what_to_do() -> None:
    values = [json.dumps({"id": i, "t": NOW_MS // 1_000 + i}).encode() for i in range(30)]
    assert "t BIGINT" in lines(proposed(values))
    with pytest.raises(QueryError, match="looks like seconds") as refused:
        proposed(values, asked="CREATE STREAM s FROM TOPIC 't' WITH (timestamp = 't')")
    assert "TIMESTAMP_SECONDS(t)" in str(refused.value.hint)
    asked = "CREATE STREAM s FROM TOPIC 't' WITH (timestamp = '_timestamp')"
    assert {"t BIGINT", "_timestamp TIMESTAMP NOT NULL"} <= set(lines(proposed(values, asked=asked)))


def test_odd_records_are_sampled_like_others() -> None:
    good = [b'{"a": 1}'] * 30
    deep = b'{"a":' * 500 + b"1" + b"}" * 500
    found = proposed([*good, deep])
    assert (lines(found)[1], found["sample"]["read"]) == ("a BIGINT", 30)
    assert proposed([deep] * 30, [deep] * 30, compacted=True)["sql"] is None
    asked = "CREATE STREAM s FROM TOPIC 't' WITH (format = 'csv')"
    assert proposed([*[b"1,a"] * 30, b"2,\xff"], asked=asked)["sample"]["read"] == 30
    proposed([b"1,a", b"2,\xff"] * 10, asked=asked)
    wide = json.dumps({f"m{place}": place for place in range(1_500)}).encode()
    found = proposed([wide] * 3)
    assert (len(found["columns"]), found["columns"][-1]["name"]) == (Limits().columns_max, "_timestamp")
    assert len(found["left_out"]) == 501

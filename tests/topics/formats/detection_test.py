"""What is proposed for records in other formats than JSON reads all of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import fastavro
import pytest

from broker.http.proposal import Topic, propose
from engine.model.limits import Limits
from tests.registry import TestRegistry
from tests.topics.formats.avro import encoded
from topics.formats.schemas import use_registry
from topics.registry import wire_prefix

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
    values: Sequence[bytes | None], keys: Sequence[bytes | None] = (), *, compacted: bool = False
) -> dict[str, Any]:
    messages = [Message(at, one, keys[at] if keys else None) for at, one in enumerate(values)]
    return propose(Topic("t", "s", 1, len(values), compacted, False), messages, Limits())


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
    assert found["sample"] | {"heartbeats": 0} == {
        "records": 30, "read": 30, "late": 0, "unreadable": [], "heartbeats": 0,
    }  # fmt: skip
    keys = [wire_prefix(key) + encoded("long", i) for i in range(30)]
    found = proposed([*values[:29], None], keys, compacted=True)
    assert (found["kind"], found["format"], found["sample"]["read"]) == ("table", "avro", 30)
    assert found["format_options"] == ["format = 'avro'", "key_format = 'avro'"]
    assert ", ".join(found["format_options"]) in found["sql"]


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
    use_registry(None)
    found = proposed(values)
    assert (found["sql"], found["format"]) == (None, "json")
    assert "a schema registry's wire formats" in found["warnings"][0]["message"]


def test_json_is_json() -> None:
    found = proposed([json.dumps({**row, "op": "c"}).encode() for row in records()])
    assert (found["format"], found["format_options"], "format" in found["sql"]) == ("json", [], False)

"""Records in other formats than JSON, over Kafka and a registry: the same answers, killed in between."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.broker.conftest import stream_sql
from tests.broker.running import FIRST_S, Broker, broker
from tests.kafka import wait_until
from tests.registry import TestRegistry, registry
from tests.topics.formats.avro import encoded
from tests.topics.formats.protobuf import made
from topics.formats.protobuf import FramedProtobuf
from topics.formats.protobuf_schema import parse_schema
from topics.registry import wire_prefix

BASE_MS = 1_700_000_000_000
SCHEMA = {
    "type": "record",
    "name": "Reading",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "v", "type": ["null", "double"]},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
COLUMNS = "id BIGINT, v DOUBLE, tags ARRAY<STRING>, first STRING PATH '$.tags[0]', ts TIMESTAMP"


@pytest.fixture(scope="module")
def reading(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, TestRegistry]]:
    """A broker and its registry, which may be stopped."""
    directory: Path = tmp_path_factory.mktemp("formats")
    with (
        registry() as known,
        broker(
            kafka, directory / "data", f"f{directory.stat().st_ino}", SCHEMA_REGISTRY_URL=known.url
        ) as one,
    ):
        yield one, known


def rows(start: int, count: int) -> list[dict[str, Any]]:
    return [
        {"id": i, "v": None if i % 3 == 0 else i / 7, "tags": [f"t{i % 2}"] * (i % 3), "ts": BASE_MS + i}
        for i in range(start, start + count)
    ]


def in_avro(schema_id: int, some: list[dict[str, Any]]) -> list[bytes]:
    return [wire_prefix(schema_id) + encoded(SCHEMA, row) for row in some]


MESSAGE = """syntax = "proto3";
import "google/protobuf/timestamp.proto";
message Unused {}
message Reading {
  int64 id = 1;
  optional double v = 2;
  repeated string tags = 3;
  google.protobuf.Timestamp ts = 4;
}
"""


def in_protobuf(schema_id: int, some: list[dict[str, Any]]) -> list[bytes]:
    """Of the schema's second message."""
    of: Any = made(MESSAGE, "Reading")
    found = []
    for row in some:
        instant = {"seconds": row["ts"] // 1_000, "nanos": row["ts"] % 1_000 * 10**6}
        message = of(**{**row, "ts": instant})
        found.append(wire_prefix(schema_id) + b"\x02\x02" + message.SerializeToString())
    return found


def letters_of(one: Broker, topic: str) -> list[str]:
    """The reasons of a topic's dead letters, in order."""
    found = []
    for letter in one.records(one.names.dead_letters):
        headers = dict(letter.headers())
        if headers["tureen-topic"] == topic.encode():
            found.append(headers["tureen-reason"].decode())
    return found


def test_avro_and_protobuf_give_the_answers_of_json_through_all_that_stops(
    reading: tuple[Broker, TestRegistry], name: str
) -> None:
    one, known = reading
    plain, avro, protobuf = f"{name}_json", f"{name}_avro", f"{name}_protobuf"
    of_messages = known.put(f"{protobuf}-value", MESSAGE, "PROTOBUF")
    first = known.put(f"{avro}-value", json.dumps(SCHEMA))
    for stream, more in (
        (plain, ""),
        *((one, f", format = '{one.split('_')[-1]}'") for one in (avro, protobuf)),
    ):
        one.create(stream_sql(stream, columns=COLUMNS, options=more))
    asked = "SELECT id, v, tags, first, ts FROM {} WHERE v > 1 OR v IS NULL"
    handles = [one.register(asked.format(stream)) for stream in (plain, avro, protobuf)]

    one.send(plain, rows(0, 50))
    one.send(avro, in_avro(first, rows(0, 50)))
    one.send(protobuf, in_protobuf(of_messages, rows(0, 50)))
    one.send(protobuf, [in_protobuf(first, rows(5, 1))[0], in_protobuf(of_messages, rows(5, 1))[0][:-3]])
    nobodys = first + 2
    one.send(avro, [b"{}", *in_avro(nobodys, rows(5, 1)), in_avro(first, rows(5, 1))[0][:-3]])
    answers = [one.await_rows(handle, 40) for handle in handles]
    assert answers[0] == answers[1] == answers[2]
    wait_until(lambda: len(letters_of(one, protobuf)) == 2, what="two dead letters")
    foreign, short = letters_of(one, protobuf)
    assert foreign == f"schema {first}: it is of kind avro, and protobuf is read"
    assert short.startswith(f"schema {of_messages}: ")
    wait_until(lambda: len(letters_of(one, avro)) == 3, what="three dead letters")
    framed, unknown, cut = letters_of(one, avro)
    assert framed.startswith("does not begin with byte 0 and a schema id")
    assert unknown == f"schema {nobodys}: the schema registry does not know it"
    assert cut.startswith(f"schema {first}: ")

    # A schema of which nothing was heard yet, while the registry is away: that stream waits, others do not.
    wider = {**SCHEMA, "fields": [{"name": "more", "type": "string", "default": ""}, *SCHEMA["fields"]]}
    second = known.put(f"{avro}-value", json.dumps(wider))
    known.stop()
    later = [{"more": "x", **row} for row in rows(50, 50)]
    one.send(plain, later)
    one.send(protobuf, in_protobuf(of_messages, rows(50, 50)))
    one.send(avro, [wire_prefix(second) + encoded(wider, row) for row in later])
    wait_until(
        lambda: "registry_unavailable" in json.dumps(one.readiness()[1]),
        FIRST_S,
        "it is told what is waited for",
    )
    one.await_read(plain)
    assert one.source(avro)["next_offsets"] == {"0": 53}
    one.kill()
    one.launch()
    known.start()
    one.await_ready()
    answers = [one.await_rows(handle, 80) for handle in handles]
    assert answers[0] == answers[1] == answers[2]
    wait_until(
        lambda: "registry_unavailable" not in json.dumps(one.readiness()[1]), what="nothing is waited for"
    )

    # What nobody knew when it was read stays a dead letter, although somebody does when steps are replayed.
    assert known.put(f"{name}-other", json.dumps({**SCHEMA, "name": "Other"})) == nobodys
    one.kill()
    one.start()
    assert [one.await_rows(handle, 80) for handle in handles] == answers
    assert len(letters_of(one, avro)) == 3


def test_results_in_protobuf_are_the_rows(reading: tuple[Broker, TestRegistry], name: str) -> None:
    one, known = reading
    one.create(stream_sql(name, columns=COLUMNS))
    one.register(f"SELECT id, v, first, ts FROM {name} EMIT CHANGES INTO {name} WITH (encoding = 'protobuf')")
    one.send(name, rows(0, 50))
    out = one.names.results_into(name)
    wait_until(lambda: len(one.records(out)) >= 49, FIRST_S, "all rows but the last are written")
    values = [record.value() for record in one.records(out)][:49]
    schema = known.client.get_schema(int.from_bytes(values[0][1:5], "big"))
    told = FramedProtobuf(parse_schema(schema.schema_str)).texts(values)
    found = sorted((json.loads(text or b"") for text in told.values), key=lambda row: row["id"])
    wanted = [{**row, "first": next(iter(row["tags"]), None)} for row in rows(0, 49)]
    assert found == [
        {at: value for at, value in row.items() if at != "tags" and value is not None} for row in wanted
    ]


def test_a_schema_that_nobody_can_read_is_refused_at_once(
    reading: tuple[Broker, TestRegistry], name: str
) -> None:
    one, _ = reading
    status, told = one.run(stream_sql(name, options=", format = 'avro', schema = '{', framed = false"))
    assert (status, told["code"]) == (400, "not_supported"), told
    assert "it is no JSON" in told["message"]
    more = ", format = 'protobuf', schema = 'message A {} message B {}'"
    status, told = one.run(stream_sql(name, options=more))
    assert (status, told["code"]) == (400, "not_supported"), told
    assert "message = '...' has to say which of its messages they are: A, B" in told["message"]
    assert one.run(f"CREATE STREAM {name} (v STRING) WITH (format = 'raw')")[0] == 201
    status, told = one.run(f"INSERT INTO {name} VALUES ('x')")
    assert (status, "raw" in told["message"]) == (400, True)


def test_a_table_and_a_stream_are_what_change_events_say(
    reading: tuple[Broker, TestRegistry], name: str
) -> None:
    one, _ = reading
    source = {"ts_ms": BASE_MS, "snapshot": "false"}

    def event(op: str, at: int, before: Any, after: Any) -> bytes:
        payload = {"before": before, "after": after, "op": op, "ts_ms": at, "source": {**source, "ts_ms": at}}
        return json.dumps({"schema": None, "payload": payload}).encode()

    one.create(f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, name STRING) WITH (format = 'debezium')")
    changes = "id BIGINT, name STRING, _op STRING, _before JSON, _source_ts TIMESTAMP"
    one.create(
        f"CREATE STREAM {name}_changes ({changes}) WITH (topic = '{name}', format = 'debezium', "
        "changelog = true, timestamp = '_source_ts', idle_timeout = '1 hour')"
    )
    rows_of = one.register(f"SELECT id, name FROM {name}")
    changes_of = one.register(f"SELECT id, name, _op, _before ->> 'name' AS was FROM {name}_changes")
    ann, bob, cid = ({"id": i, "name": text} for i, text in ((1, "Ann"), (2, "Bob"), (1, "Cid")))
    told = [
        (1, event("r", BASE_MS, None, ann)),
        (2, event("c", BASE_MS + 1, None, bob)),
        (1, event("u", BASE_MS + 2, ann, cid)),
        (2, event("d", BASE_MS + 3, bob, None)),
        (3, event("c", BASE_MS + 4, None, {"id": 3, "name": "Dee"})),
    ]
    for key, value in told:
        one.producer.send(name, value, json.dumps({"schema": None, "payload": {"id": key}}).encode())
    one.producer.flush()
    wait_until(
        lambda: one.rows(rows_of) == [[1, "Cid"], [3, "Dee"]], FIRST_S, "the table is what events leave"
    )
    assert one.await_rows(changes_of, 4)[:4] == [
        [1, "Ann", "r", None],
        [2, "Bob", "c", None],
        [1, "Cid", "u", "Ann"],
        [2, "Bob", "d", "Bob"],
    ]


def test_a_stream_has_the_columns_of_its_keys_through_a_restart(
    reading: tuple[Broker, TestRegistry], name: str
) -> None:
    one, known = reading
    prefix = wire_prefix(known.put(f"{name}-key", '"long"'))
    columns = "k BIGINT KEY, v DOUBLE, ts TIMESTAMP"
    one.create(stream_sql(name, columns=columns, options=", key_format = 'avro'"))
    plain = f"{name}_plain"
    one.create(stream_sql(plain, columns=columns.replace("BIGINT", "STRING")))
    handle = one.register(f"SELECT k, v FROM {name} ORDER BY v")
    for place, key in enumerate([prefix + encoded("long", 7), None, b"rubbish", prefix + encoded("long", 8)]):
        value = json.dumps({"k": "passed over", "v": place, "ts": BASE_MS + place}).encode()
        one.producer.send(name, value, key)
    one.producer.send(name, json.dumps({"ts": BASE_MS + 9}).encode(), prefix + encoded("long", 9))
    one.producer.flush()
    expected = [[7, 0.0], [None, 1.0], [8, 3.0]]
    assert one.await_rows(handle, 3) == expected
    (reason,) = letters_of(one, name)
    assert reason.startswith("key: ")
    status, told = one.run(
        f"INSERT INTO {plain} VALUES ('x', 1.5, {BASE_MS}), (NULL, 2, {BASE_MS + 1}), ('y', 3, {BASE_MS + 2})"
    )
    assert (status, told["written"]) == (200, 3)
    other = one.register(f"SELECT k, v FROM {plain}")
    assert one.await_rows(other, 2) == [["x", 1.5], [None, 2.0]]
    assert [record.key() for record in one.records(plain)] == [b'"x"', None, b'"y"']
    one.kill()
    one.start()
    assert (one.await_rows(handle, 3), one.rows(other)) == (expected, [["x", 1.5], [None, 2.0]])
    assert one.source(name)["columns"][0] == {
        "name": "k",
        "type": "BIGINT",
        "nullable": True,
        "from_key": True,
    }

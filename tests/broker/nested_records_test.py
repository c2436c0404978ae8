"""What is nested too deep to be written again: it is refused, by request and by record, and others come."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.broker.conftest import stream_sql
from tests.broker.running import JSON, Broker, broker
from tests.kafka import wait_until
from topics.json_object import JSON_LEVELS_MAX
from tureen.protocol import new_handle, query_id

DEPTHS = (JSON_LEVELS_MAX, 240, 251, 253, 254, 400, 1_020, 100_000)


def nested(depth: int) -> bytes:
    """A list in lists."""
    return b"[" * depth + b"]" * depth


def letters(one: Broker, topic: str, key: str) -> list[str]:
    """Why records of a control topic with this key are dead letters."""
    told = [(message.key(), dict(message.headers() or ())) for message in one.records(one.names.dead_letters)]
    return [
        headers["tureen-reason"].decode()
        for found, headers in told
        if found == key.encode() and headers.get("tureen-topic") == topic.encode()
    ]


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_request_is_refused(shared: Broker, name: str, depth: int) -> None:
    shared.create(stream_sql(name))
    handle, sql = str(new_handle()), f"SELECT id FROM {name}"
    standing = shared.register(sql)
    body = orjson.dumps({"sql": sql, "handle": handle, "options": {"mine": 0}})
    body = body.replace(b'"mine":0', b'"mine":' + nested(depth))
    for method, path in (
        ("POST", "/queries"),
        ("PATCH", f"/queries/{standing}"),
        ("POST", "/queries/unregister"),
        ("POST", "/sources"),
        ("POST", "/statements"),
        ("POST", "/statements/check"),
        ("POST", f"/sources/{name}/heartbeat"),
        ("POST", "/plans/validate"),
    ):
        reply = shared.http.request(method, path, content=body, headers=JSON)
        assert (reply.status_code, reply.json()["code"]) == (400, "bad_request"), (path, reply.text)
    record = b'{"source": "%s", "record": %s}' % (name.encode(), nested(depth))
    reply = shared.http.post("/match", content=record, headers=JSON)
    assert reply.status_code == 400
    assert shared.state(handle) is None
    assert shared.http.delete(f"/queries/{shared.register(sql)}").status_code == 200


def test_what_may_be_nested_is_kept(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    mine = orjson.loads(nested(JSON_LEVELS_MAX - 2))
    handle = shared.register(f"SELECT id FROM {name}", mine=mine)
    assert shared.http.get(f"/queries/{handle}").json()["options"] == {"mine": mine}
    assert shared.http.patch(f"/queries/{handle}", json={"weight": 2}).status_code == 200


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_record_is_a_dead_letter(shared: Broker, name: str, depth: int) -> None:
    shared.create(stream_sql(name))
    control = shared.children()["broker.control"].pid
    by_options, by_template, names = str(new_handle()), str(new_handle()), shared.names
    shared.publish(
        by_options, b'{"sql": "SELECT id FROM %s", "options": {"a": %s}}' % (name.encode(), nested(depth))
    )
    template = b'{"template": "SELECT id FROM %s WHERE id = ?", "parameters": %s}'
    shared.publish(by_template, template % (name.encode(), nested(depth)))
    deep = b'{"sql": "%s", "a": %s}' % (stream_sql(f"{name}_b").encode(), nested(depth))
    shared.producer.send(names.sources, deep, f"{name}_b".encode())
    asked = b'{"handle": "%s", "reply_to": "%sx", "correlation_id": "%s", "at": %s}'
    values = (by_options.encode(), names.reply_prefix.encode(), name.encode(), nested(depth))
    shared.producer.send(names.snapshot_requests, asked % values, query_id(by_options).encode())
    shared.producer.flush()
    for topic, key in (
        (names.queries, query_id(by_options)),
        (names.queries, query_id(by_template)),
        (names.sources, f"{name}_b"),
        (names.snapshot_requests, query_id(by_options)),
    ):
        wait_until(lambda topic=topic, key=key: letters(shared, topic, key), what=f"a dead letter of {topic}")  # type: ignore[misc]
    for handle in (by_options, by_template):
        wait_until(lambda handle=handle: shared.state(handle) == "ERROR")  # type: ignore[misc]
        assert shared.http.delete(f"/queries/{handle}").status_code == 200
    assert shared.children()["broker.control"].pid == control
    shared.register(f"SELECT id FROM {name}")


def test_an_entry_of_an_earlier_version_is_refused_at_the_start(
    kafka: str, tmp_path: Path, service_id: str, name: str
) -> None:
    """Its registry took what it could not say to its worker."""
    with broker(kafka, tmp_path / "data", service_id) as one:
        one.create(stream_sql(name))
        sql = f"SELECT id FROM {name}"
        poisoned, other = one.register(sql), one.register(sql)
        wait_until(lambda: all_acknowledged(one), what="no registration is read again")
        assert one.stop() == 0
        table = f"{one.names.control_group}-registry-changelog"
        key = query_id(poisoned).encode()
        (partition,) = {found.partition() for found in one.records(table) if found.key() == key}
        entry = {"sql": sql, "parameters": None, "state": None, "error": None, "refused": None}
        value = orjson.dumps(entry | {"options": {"mine": orjson.loads(nested(251))}})
        writer = Producer({"bootstrap.servers": kafka})  # not compressed, as the control process writes them
        writer.produce(table, value, key, partition)
        assert writer.flush(30) == 0
        one.start()
        wait_until(lambda: one.state(poisoned) == "ERROR")
        assert "nested too deep" in one.http.get(f"/queries/{poisoned}").json()["error"]["message"]
        assert one.state(other) == "RUNNING"
        one.register(sql)
        assert one.http.delete(f"/queries/{poisoned}").status_code == 200
        assert not [
            event for event in one.events() if event["event"] in ("control_failed", "control_crashed")
        ]


def all_acknowledged(one: Broker) -> bool:
    """Whether the control process has acknowledged all registrations."""
    topic = one.names.queries
    reader = Consumer({"bootstrap.servers": one.bootstrap, "group.id": one.names.control_group})
    try:
        ends = {number: end for number, end in one.admin.end_offsets(topic).items() if end}
        found = reader.committed([TopicPartition(topic, number) for number in ends], 30)
        return all(place.offset == ends[place.partition] for place in found)
    finally:
        reader.close()

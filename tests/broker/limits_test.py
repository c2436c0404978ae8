"""Records at the limits of every topic that the broker writes: none may hold a shard, or the registry.

Source topics take more than the topics of the broker do, and topics are made, and changed, by others.
"""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from tests.broker.conftest import stream_sql
from tests.broker.running import READY_S, Broker, broker
from tests.kafka import takes, wait_until
from tureen.protocol import new_handle, query_id

MIB = 1024 * 1024
LARGE = 8 * MIB
"""What the topics of sources take here, as the embedded Kafka's do by default."""
LETTER_MAX = 4 * MIB
"""What the broker's own topics take by default."""


@pytest.fixture(scope="module")
def limited(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker of this module's own: what is tried here once stopped it for ever."""
    directory: Path = tmp_path_factory.mktemp("limits")
    with broker(kafka, directory / "data", f"t{uuid.uuid4().hex[:12]}") as one:
        yield one


@pytest.fixture(scope="module")
def writer(kafka: str) -> Producer:
    return Producer({"bootstrap.servers": kafka, "message.max.bytes": LARGE, "linger.ms": 0, "log_level": 0})


def make_topic(kafka: str, topic: str, **config: object) -> None:
    client = AdminClient({"bootstrap.servers": kafka})
    made = client.create_topics(
        [NewTopic(topic, 1, 1, config={name.replace("_", "."): str(value) for name, value in config.items()})]
    )
    made[topic].result(30)


def alter(kafka: str, topic: str, **config: object) -> None:
    entries = [
        ConfigEntry(name.replace("_", "."), str(value), incremental_operation=AlterConfigOpType.SET)
        for name, value in config.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    client = AdminClient({"bootstrap.servers": kafka})
    (done,) = client.incremental_alter_configs([resource]).values()
    done.result(30)


def produce(writer: Producer, topic: str, value: bytes, key: bytes | None = None, **more: Any) -> None:
    """Write a record; again where the node does not keep yet to what the topic was altered to."""

    def is_taken() -> bool:
        failed: list[KafkaError] = []
        writer.produce(topic, value, key, on_delivery=lambda error, _: error and failed.append(error), **more)
        assert writer.flush(30) == 0
        assert all(error.code() == KafkaError.MSG_SIZE_TOO_LARGE for error in failed), failed
        return not failed

    wait_until(is_taken, what=f"{topic} takes a record")


def record(size: int, ident: int, ts: int = 1_000) -> bytes:
    """A JSON record of this many bytes."""
    head = json.dumps({"id": ident, "v": 1.0, "ts": ts, "padding": ""}).encode()
    return head[:-2] + b"x" * (size - len(head)) + head[-2:]


def works(one: Broker, stream: str, handle: str, restart: bool = False) -> None:
    """Registering, unregistering and dropping answer with their outcomes, and do so after a restart too."""
    other = one.register(f"SELECT id FROM {stream} WHERE id > 0")
    assert one.http.delete(f"/queries/{other}").json()["state"] == "GONE"
    if restart:
        assert one.stop() == 0
        one.start()
    other = one.register(f"SELECT id FROM {stream} WHERE id > 1")
    for each in (other, handle):
        assert one.http.delete(f"/queries/{each}").json()["state"] == "GONE"
    reply = one.http.post("/sources", json={"sql": f"DROP STREAM {stream}"})
    assert (reply.status_code, reply.json()["state"]) == (200, "GONE")


def letters(one: Broker, topic: str, source: str) -> dict[int, tuple[Any, dict[str, bytes]]]:
    """offset of the original -> (the record, its headers) of what was forwarded from a topic."""
    found = {}
    for message in one.records(topic):
        headers = dict(message.headers() or ())
        if headers.get("tureen-topic") == source.encode():
            found[int(headers["tureen-offset"])] = (message, headers)
    return found


def test_dead_letters_of_every_size(limited: Broker, writer: Producer, kafka: str, name: str) -> None:
    make_topic(kafka, name, max_message_bytes=LARGE)
    limited.create(stream_sql(name))
    handle = limited.register(f"SELECT id FROM {name}")
    sizes = [MIB - 1, MIB, MIB + 1, LETTER_MAX - 5_000, *range(LETTER_MAX - 1_500, LETTER_MAX + 1, 250),
             LETTER_MAX + 1, LARGE - 5_000]  # fmt: skip
    for number, size in enumerate(sizes):
        produce(writer, name, record(size, number))
    produce(writer, name, b"broken", key=b"k" * (6 * MIB))
    produce(writer, name, b"broken", headers=[("h", b"v" * (6 * MIB))])
    produce(writer, name, record(100, 1_000, ts=5_000_000))
    produce(writer, name, record(100, 1_001, ts=5_000_001))
    fits = [number for number, size in enumerate(sizes) if size <= MIB]
    wait_until(lambda: {1_000, *fits} <= {row[0] for row in limited.rows(handle)})
    found = letters(limited, limited.names.dead_letters, name)
    assert sorted(found) == [n for n in range(len(sizes) + 2) if n not in fits]
    for number, (message, headers) in found.items():
        whole = sizes[number] if number < len(sizes) else 6 * MIB + len(b"broken")
        size = len(message.value()) + len(message.key() or b"")
        assert headers["tureen-partition"] == b"0"
        if "tureen-cut-from-bytes" in headers:
            assert int(headers["tureen-cut-from-bytes"]) >= whole > LETTER_MAX - 3_000
            assert message.value() == b"broken" or record(sizes[number], number).startswith(message.value())
        else:
            assert message.value() == record(whole, number)
            assert size < LETTER_MAX
    assert "tureen-cut-from-bytes" not in found[3][1]
    assert "tureen-cut-from-bytes" in found[len(sizes) - 1][1]
    assert limited.readiness()[0] == 200
    works(limited, name, handle, restart=True)


def test_late_records_with_large_keys_and_headers(
    limited: Broker, writer: Producer, kafka: str, name: str
) -> None:
    make_topic(kafka, name, max_message_bytes=LARGE)
    limited.create(stream_sql(name))
    handle = limited.register(f"SELECT id FROM {name}")
    for number in (1, 2):
        produce(writer, name, record(100, number, ts=5_000_000 + number))
    wait_until(lambda: [1] in limited.rows(handle))
    produce(writer, name, record(MIB, 3, ts=1), key=b"k" * (3 * MIB))
    produce(writer, name, record(MIB, 4, ts=1), key=b"k" * (6 * MIB))
    produce(writer, name, record(MIB, 5, ts=1), headers=[("h", b"v" * (6 * MIB))])
    produce(writer, name, record(MIB, 6, ts=1))
    wait_until(lambda: limited.source(name)["late"] == 4)
    produce(writer, name, record(100, 7, ts=5_000_003))
    wait_until(lambda: [2] in limited.rows(handle))
    found = letters(limited, limited.names.late, name)
    assert sorted(found) == [2, 3, 4, 5]
    assert "tureen-cut-from-bytes" not in found[5][1]
    assert found[5][0].value() == record(MIB, 6, ts=1)
    assert int(found[3][1]["tureen-cut-from-bytes"]) >= 7 * MIB
    works(limited, name, handle)


def test_control_records_that_are_too_large(limited: Broker, writer: Producer, kafka: str, name: str) -> None:
    make_topic(kafka, name)
    limited.create(stream_sql(name))
    handle = limited.register(f"SELECT id FROM {name}")
    names = limited.names
    for topic in (names.queries, names.sources, names.snapshot_requests):
        alter(kafka, topic, max_message_bytes=LARGE)
    large = [2 * MIB - 5_000, 2 * MIB, 2 * MIB + 5_000, 4 * MIB, 6 * MIB]
    wrong = {query_id(new_handle()): size for size in large}
    for ident, size in wrong.items():
        value = json.dumps({"sql": "x" * (size - 11)}).encode()
        produce(writer, names.queries, value, key=ident.encode(), partition=0)
        produce(writer, names.sources, value, key=b"no_such_stream")
        produce(writer, names.sources, b"{}", key=b"k" * size)
        produce(writer, names.queries, b"{}", key=b"k" * size, partition=0)
        produce(writer, names.snapshot_requests, value, key=ident.encode())
        produce(writer, names.snapshot_requests, b"{}", key=b"k" * size)
    other = limited.register(f"SELECT id FROM {name} WHERE id > 0")
    wait_until(lambda: wrong.keys() <= limited.status_topic().keys(), what="each is told of")
    states = limited.status_topic()
    for ident in wrong:
        assert states[ident][-1]["error"]["code"] == "limit_exceeded"  # type: ignore[index]
    for topic in (names.snapshot_requests, names.queries, names.sources):
        wait_until(
            lambda topic=topic: len(letters(limited, names.dead_letters, topic)) == 2 * len(large),  # type: ignore[misc]
            what=f"all of {topic} are dead letters",
        )
    limited.http.delete(f"/queries/{other}")
    works(limited, name, handle, restart=True)


@pytest.mark.slow
def test_registrations_that_are_larger_together_than_a_step(
    limited: Broker, writer: Producer, kafka: str, name: str
) -> None:
    """A thousand of 20 KiB make a batch of 20 MiB; those that go together as well."""
    make_topic(kafka, name)
    limited.create(stream_sql(name))
    handle = limited.register(f"SELECT id FROM {name}")
    filler = "/*" + "x" * 20_000 + "*/"
    handles = [new_handle() for _ in range(1_000)]
    lines = [
        json.dumps({"sql": f"SELECT id FROM {name} WHERE id > {number} {filler}", "handle": each})
        for number, each in enumerate(handles)
    ]
    reply = limited.http.post(
        "/queries", content="\n".join(lines), headers={"Content-Type": "application/x-ndjson"}
    )
    assert reply.status_code == 200, reply.text
    wait_until(lambda: limited.state(handles[-1]) == "RUNNING", what="the last of them is running")
    for each in handles:
        limited.producer.send(limited.names.queries, None, query_id(each).encode())
    limited.producer.flush()
    wait_until(lambda: limited.state(handles[-1]) is None, what="the last of them is gone")
    works(limited, name, handle, restart=True)


@pytest.mark.parametrize("field", ["parameters", "options"])
def test_a_registration_that_is_too_large_is_refused_on_sight(
    limited: Broker, kafka: str, name: str, field: str
) -> None:
    make_topic(kafka, name)
    limited.create(stream_sql(name, columns="id BIGINT, s STRING, ts TIMESTAMP"))
    body: dict[str, Any] = {"template": f"SELECT id FROM {name} WHERE s = ?", "parameters": ["a"]}
    body[field] = ["x" * 500_000] if field == "parameters" else {"team": "x" * 500_000}
    reply = limited.http.post("/queries", json=body)
    assert (reply.status_code, reply.json()["code"]) == (413, "limit_exceeded"), reply.text
    assert limited.readiness()[0] == 200


def test_letters_that_their_topic_refuses_are_passed_over(
    limited: Broker, writer: Producer, kafka: str, name: str
) -> None:
    """An operator has made the topic smaller; one that was deleted is made again."""
    make_topic(kafka, name)
    limited.create(stream_sql(name))
    handle = limited.register(f"SELECT id FROM {name}")
    topic = limited.names.dead_letters
    alter(kafka, topic, max_message_bytes=10_000)
    wait_until(lambda: not takes(kafka, topic, 20_000), what="the node keeps to the topic's new limit")
    produce(writer, name, random.randbytes(60_000))
    for number in (1, 2):
        produce(writer, name, record(100, number, ts=5_000_000 + number))
    wait_until(lambda: [1] in limited.rows(handle))
    told = {one.get("topic"): one for one in limited.readiness()[1]["degraded"]}
    assert (told[topic]["records"], told[topic]["code"]) == (1, "topic_policy_mismatch")
    assert f'tureen_forwarded_records_lost_total{{topic="{topic}"}} 1.0' in limited.http.get("/metrics").text
    assert "forwarded_records_lost" in {one.get("event") for one in limited.events()}
    limited.admin.delete_topics([topic])
    produce(writer, name, random.randbytes(60_000))
    produce(writer, name, record(100, 3, ts=5_000_003))
    wait_until(lambda: [2] in limited.rows(handle))
    assert list(letters(limited, topic, name)) == [3]
    works(limited, name, handle)


def test_replies_that_their_topic_refuses(limited: Broker, writer: Producer, kafka: str, name: str) -> None:
    """A topic of another's making that takes no chunk is refused; a smaller one is told, too."""
    make_topic(kafka, name)
    limited.create(stream_sql(name))
    handle = limited.register(f"SELECT id, v, ts FROM {name}")
    for start in range(0, 20_000, 1_000):
        limited.send(name, [json.loads(record(100, start + i, ts=1_000 + start + i)) for i in range(1_000)])
    limited.await_rows(handle, 19_000)
    names = limited.names
    small, later = f"{names.reply_prefix}{name}.small", f"{names.reply_prefix}{name}.later"
    make_topic(kafka, small, max_message_bytes=100_000)

    def ask(topic: str) -> None:
        request = {"handle": handle, "format": "json", "reply_to": topic, "correlation_id": "one"}
        produce(writer, names.snapshot_requests, json.dumps(request).encode(), query_id(handle).encode())

    def replies(topic: str) -> list[Any]:
        return limited.records(topic) if topic in limited.admin.topics() else []

    before = len(letters(limited, names.dead_letters, names.snapshot_requests))
    ask(small)
    ask(later)
    wait_until(lambda: replies(later))
    alter(kafka, later, max_message_bytes=10_000)
    wait_until(lambda: not takes(kafka, later, 20_000), what="the node keeps to the topic's new limit")
    ask(later)
    wait_until(lambda: len(letters(limited, names.dead_letters, names.snapshot_requests)) == before + 2)
    alter(kafka, later, max_message_bytes=LARGE)
    wait_until(lambda: takes(kafka, later, 20_000), what="the node takes large records again")
    count = len(replies(later))
    ask(later)
    wait_until(lambda: len(replies(later)) > count)
    works(limited, name, handle)


def test_topics_that_take_less_are_refused_at_the_start(kafka: str, tmp_path: Path, service_id: str) -> None:
    one = Broker(kafka, tmp_path / "data", service_id)
    make_topic(kafka, one.names.dead_letters, cleanup_policy="delete", max_message_bytes=MIB)
    process = one.launch()
    assert process.wait(READY_S) == 1
    assert f"{one.names.dead_letters}" in one.tail()
    assert "max.message.bytes" in one.tail()
    one.settings["RECORD_BYTES_MAX"] = str(MIB)
    one.settings["RESULT_RECORD_BYTES_MAX"] = str(LETTER_MAX)
    assert one.launch().wait(READY_S) == 1
    assert "record_bytes_max" in one.tail()
    one.settings = {"RECORD_BYTES_MAX": str(MIB)}
    one.start()
    assert one.stop() == 0

"""Tables end to end: keyed records of a compacted topic to answers, through a crash after compaction."""

from __future__ import annotations

import time
from pathlib import Path

import click.testing
import orjson
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from broker.commands.topic import topic
from tests.broker.running import Broker
from tests.broker.tables import put
from tests.kafka import wait_until
from topics.admin import TopicPolicy
from tureen.protocol import query_id


def table_sql(name: str) -> str:
    return f"CREATE TABLE {name} (tail STRING PRIMARY KEY, seats INTEGER)"


def test_rows_are_put_replaced_and_deleted_by_key(shared: Broker, name: str) -> None:
    made = {"name": name, "kind": "table", "topic": name, "state": "RUNNING", "error": None}
    assert made.items() <= shared.create(table_sql(name)).items()
    config = shared.admin.configs([name])[name]
    assert (config["cleanup.policy"], config["message.timestamp.type"]) == ("compact", "LogAppendTime")
    plain = shared.register(f"SELECT tail, seats FROM {name}")
    total = shared.register(f"SELECT COUNT(*), SUM(seats) FROM {name} WHERE seats > 100")
    put(shared, name, {"N1": {"seats": 100}, '"N2"': {"seats": 180}, '{"tail": "N3"}': {"seats": 300}})
    assert shared.await_rows(plain, 3) == [["N1", 100], ["N2", 180], ["N3", 300]]
    put(shared, name, {"N1": {"seats": 110, "tail": "ignored"}, "N3": None})
    wait_until(lambda: shared.rows(plain) == [["N2", 180], ["N1", 110]])
    assert shared.rows(total) == [[2, 290]]
    record = {"tail": "N9", "seats": 200}
    (found,) = shared.http.post("/match", json={"source": name, "record": record}).json()["matches"]
    assert set(found["queries"]) == {query_id(plain), query_id(total)}
    listed = shared.source(name)
    assert (listed["kind"], listed["key"], listed["rows"], listed["queries"]) == ("table", ["tail"], 2, 2)
    shown = shared.http.post("/statements", json={"sql": "SHOW TABLES"}).json()
    assert [row[:4] for row in shown["rows"] if row[0] == name] == [[name, "RUNNING", name, "tail"]]
    streams = shared.http.post("/statements", json={"sql": "SHOW STREAMS"}).json()
    assert name not in [row[0] for row in streams["rows"]]


def test_what_is_no_key_is_a_dead_letter(shared: Broker, name: str) -> None:
    shared.create(f"CREATE TABLE {name} (a INTEGER, b STRING, v DOUBLE, PRIMARY KEY (a, b))")
    handle = shared.register(f"SELECT b, a, v FROM {name}")
    put(
        shared,
        name,
        {
            '[1, "x"]': {"v": 1},
            "[1]": {"v": 2},
            '{"b": "y", "a": 2}': {"v": 3},
            '{"b": "y"}': None,
            "x": {"v": 4},
            '[3, "z"]': b"{broken",
            '["1", "x"]': {"v": 5},
        },
    )
    assert shared.await_rows(handle, 2) == [["x", 1, 1.0], ["y", 2, 3.0]]
    wait_until(lambda: shared.source(name)["dead_letters"] == 5)
    letters = shared.records(shared.names.dead_letters)
    ours = [record for record in letters if dict(record.headers())["tureen-topic"] == name.encode()]
    assert [record.key() for record in ours][:2] == [b"[1]", b'{"b": "y"}']
    assert ours[1].value() is None


def test_a_topic_that_forgets_is_no_table(shared: Broker, name: str) -> None:
    shared.admin.ensure([TopicPolicy(name, 1, {"message.timestamp.type": "LogAppendTime"}, ())])
    reply = shared.http.post("/sources", json={"sql": table_sql(name)})
    told = reply.json()
    assert (reply.status_code, told["code"]) == (400, "topic_policy_mismatch")
    assert told["hint"] == f"set it: tureen topic set {name} cleanup.policy=compact; or use another topic"
    said = click.testing.CliRunner().invoke(
        topic, ["set", name, "cleanup.policy=compact", "--kafka", f"bootstrap.servers={shared.bootstrap}"]
    )
    assert said.exit_code == 0, said.output
    assert shared.create(table_sql(name))["state"] == "RUNNING"


def test_a_topic_with_times_of_producers_is_a_table_by_offset(shared: Broker, name: str) -> None:
    """As Kafka, and ``tureen topic create --table``, make it: CreateTime."""
    made = click.testing.CliRunner().invoke(
        topic, ["create", name, "--table", "--kafka", f"bootstrap.servers={shared.bootstrap}"]
    )
    assert made.exit_code == 0, made.output
    config = shared.admin.configs([name])[name]
    assert (config["cleanup.policy"], config["message.timestamp.type"]) == ("compact", "CreateTime")
    writer = Producer({"bootstrap.servers": shared.bootstrap})
    now_ms = time.time_ns() // 1_000_000
    year_ms, soon_ms = 365 * 86_400_000, 1_800_000  # what Kafka takes
    for seats, at_ms in enumerate([now_ms, now_ms + soon_ms, now_ms - year_ms, 0, now_ms - 2 * year_ms]):
        for key in (b"N1", b"N2" if seats == 3 else b"N3"):
            writer.produce(name, orjson.dumps({"seats": seats}), key, timestamp=at_ms)
    writer.produce(name, None, b"N2", timestamp=1)
    assert writer.flush(30) == 0
    shared.create(table_sql(name))
    handle = shared.register(f"SELECT tail, seats FROM {name}")
    wait_until(lambda: sorted(shared.rows(handle)) == [["N1", 4], ["N3", 4]], what="the last of each key")
    assert shared.source(name)["late"] == 0


def test_dropped_as_what_it_is(shared: Broker, name: str) -> None:
    shared.create(table_sql(name))
    reply = shared.http.post("/sources", json={"sql": f"DROP STREAM {name}"})
    assert (reply.status_code, reply.json()["hint"]) == (409, f"write DROP TABLE {name}")
    dropped = shared.http.post("/sources", json={"sql": f"DROP TABLE {name}"})
    assert (dropped.status_code, dropped.json()["kind"]) == (200, "table")


@pytest.fixture
def eager_cleaner(kafka: str) -> None:
    """The node looks for something to compact many times a second."""
    client = AdminClient({"bootstrap.servers": kafka})
    entry = ConfigEntry("log.cleaner.backoff.ms", "100", incremental_operation=AlterConfigOpType.SET)
    for node in client.list_topics(timeout=10).brokers:
        resource = ConfigResource(ResourceType.BROKER, str(node), incremental_configs=[entry])
        for future in client.incremental_alter_configs([resource]).values():
            future.result()


def test_a_crash_after_which_records_are_compacted_changes_no_answer(
    kafka: str, tmp_path: Path, service_id: str, name: str, eager_cleaner: None
) -> None:
    one = Broker(kafka, tmp_path / "data", service_id, SAVE_INTERVAL_MS=3_600_000, SAVE_ROWS=1_000_000)
    compacting = {
        "cleanup.policy": "compact",
        "message.timestamp.type": "LogAppendTime",
        "min.cleanable.dirty.ratio": "0.0",
        "segment.ms": "1",
    }
    one.admin.ensure([TopicPolicy(name, 1, compacting)])
    one.start()
    one.create(table_sql(name))
    handle = one.register(f"SELECT tail, seats FROM {name}")
    total = one.register(f"SELECT COUNT(*), SUM(seats) FROM {name}")
    for seats in range(1, 6):
        put(one, name, {f"N{n}": {"seats": seats * n} for n in range(20)})
    put(one, name, {"N1": None})
    put(one, name, {"last": {"seats": 1}})
    expected = [[f"N{n}", 5 * n] for n in range(20) if n != 1] + [["last", 1]]
    wait_until(lambda: one.rows(handle) == expected)
    read = one.source(name)["next_offsets"]
    one.kill()
    wait_until(lambda: len(one.records(name)) < 40, 90.0, "records are compacted")
    one.start()
    assert one.rows(handle) == expected
    assert one.rows(total) == [[20, sum(row[1] for row in expected)]]
    assert one.source(name)["next_offsets"] == read
    put(one, name, {"N2": None, "N19": {"seats": 0}})
    after = [row for row in expected if row[0] not in ("N2", "N19")] + [["N19", 0]]
    wait_until(lambda: one.rows(handle) == after)

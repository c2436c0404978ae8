"""The job as it is run, and what it says when something is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from spark_jobs.errors import CheckpointMismatch, RecordsLost
from spark_jobs.running import Stop
from spark_jobs.scale_out.driver import Driver
from spark_jobs.scale_out.job import run
from spark_jobs.scale_out.settings import ScaleOutSettings
from spark_jobs.scale_out.shards.layout import Layout
from spark_jobs.settings import StreamSettings
from topics.admin import Admin, TopicPolicy
from topics.consumer import BatchConsumer
from topics.producer import BatchProducer
from tureen.errors import SettingsError
from tureen.protocol import HEADER_HEARTBEAT, TopicNames, query_id


def _settings(kafka: str, service_id: str, checkpoint: Path, shards: int = 0) -> ScaleOutSettings:
    stream = StreamSettings(str(checkpoint), once=True)
    return ScaleOutSettings({"bootstrap.servers": kafka}, service_id, "run", stream, Layout(shards))


def _records(kafka: str, topic: str) -> list[dict[str, Any]]:
    consumer = BatchConsumer({"bootstrap.servers": kafka})
    consumer.add(topic, dict.fromkeys(range(Admin({"bootstrap.servers": kafka}).partitions(topic)), -1))
    found = []
    while consumer.lagging(topic):
        for polled in consumer.poll(1_000, 0.2):
            found += [json.loads(value) for value in polled.values if value is not None]
    consumer.close()
    return found


def test_a_run_goes_on_where_the_last_ended_and_says_what_is_gone(
    kafka: str, service_id: str, spark: SparkSession, tmp_path: Path
) -> None:
    names, topic = TopicNames(service_id), f"{service_id}-source"
    admin = Admin({"bootstrap.servers": kafka})
    admin.ensure_service_topics(names)
    admin.ensure([TopicPolicy(topic, 1, {})])
    sql = (
        "CREATE STREAM s (a INTEGER, ts TIMESTAMP NOT NULL) "
        f"WITH (topic='{topic}', timestamp='ts', idle_timeout='1 hour')"
    )
    producer = BatchProducer({"bootstrap.servers": kafka})
    producer.send(names.sources, json.dumps({"sql": sql}).encode(), b"s")
    wanted = json.dumps({"sql": "SELECT a FROM s WHERE a >= 2 EMIT CHANGES WITH (snapshot = false)"}).encode()
    producer.send(names.queries, wanted, query_id("mine").encode())
    producer.send_many(topic, [b'{"a": %d, "ts": %d}' % (n, 1_000 + n) for n in range(5)])
    # Heartbeats: no rows, and NOW is where it would be without them.
    for said, row in (b"1004", b'{"a": 5, "ts": 1004}'), (b"1009", None), (b"soon", None):
        producer.send(topic, row, headers=[(HEADER_HEARTBEAT, said)])
    producer.flush()
    settings = _settings(kafka, service_id, tmp_path / "checkpoint")

    report = run(spark, settings, Stop())

    assert report.rows == 8
    assert report.counts == {"records": 2, "late": 0, "dead_letters": 1}, "one heartbeat has no instant"
    assert _records(kafka, names.results_log) == [{"a": 2}, {"a": 3}], (
        "NOW is a millisecond behind the last row"
    )

    producer.send_many(topic, [b'{"a": 7, "ts": 1010}'])
    producer.flush()
    assert run(spark, settings, Stop()).rows == 1
    assert _records(kafka, names.results_log) == [{"a": 2}, {"a": 3}, {"a": 4}]

    with pytest.raises(CheckpointMismatch):
        run(spark, _settings(kafka, service_id, tmp_path / "checkpoint", shards=1), Stop())

    producer.send_many(topic, [b'{"a": 8, "ts": 1020}'] * 2)
    producer.flush()
    client = AdminClient({"bootstrap.servers": kafka})
    for gone in client.delete_records([TopicPartition(topic, 0, 10)]).values():
        gone.result()
    checkpoint = json.loads((tmp_path / "checkpoint" / "tureen.json").read_text())["id"]
    driver = Driver(spark, settings, checkpoint)
    with pytest.raises(RecordsLost):
        driver.next()

    admin.delete_topics([topic])
    assert driver.next() is None, "that ends the stream, not the run"
    admin.ensure([TopicPolicy(topic, 1, {})])
    producer.send_many(topic, [b'{"a": 9, "ts": 1030}'] * 9)
    producer.close()
    assert driver.next() is None
    driver.close()
    told = [one["degraded"][0] for one in _records(kafka, names.status) if "degraded" in one]
    assert [(one["stream"], one["code"]) for one in told] == [
        ("s", "topic_missing"),
        ("s", "topic_recreated"),
    ]


@pytest.mark.parametrize("name", ["", "a b", "a/b", "x" * 101])
def test_a_name_that_cannot_be_one_is_refused(name: str) -> None:
    stream = StreamSettings("somewhere")
    with pytest.raises(SettingsError):
        ScaleOutSettings({"bootstrap.servers": "k:1"}, "tureen", name, stream, Layout(1))


def test_sizes_that_cannot_be_are_refused() -> None:
    stream = StreamSettings("somewhere")
    with pytest.raises(SettingsError):
        ScaleOutSettings({"bootstrap.servers": "k:1"}, "tureen", "run", stream, Layout(1), rows_max=0)
    with pytest.raises(SettingsError):
        ScaleOutSettings({}, "tureen", "run", stream, Layout(1))

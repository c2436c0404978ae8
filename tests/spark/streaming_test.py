"""A job's stream on a real Kafka: done once, stopped, refused, and what it says of what was lost."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.checkpoint import NAME, Checkpoint, Identity
from spark_jobs.errors import CheckpointMismatch, PathNotWritable, RecordsLost, SparkError
from spark_jobs.running import Stop
from spark_jobs.settings import StreamSettings
from spark_jobs.streaming import (
    SHUFFLES,
    SHUFFLES_OF_SPARK,
    BatchCounts,
    StreamReport,
    kafka_source,
    run_stream,
)
from tests.kafka import Node, free_ports, wait_until
from topics.admin import Admin
from tureen.errors import KafkaUnavailable, TopicMissing

JOB = Identity("copy", {"root": "a"})


class Copy:
    """A job that keeps the values that it is given, by batch.

    first: called before each batch's work. failed: where that could not read its rows.
    """

    def __init__(self, spark: SparkSession, kafka: str, topic: str, tmp_path: Path) -> None:
        self.spark = spark
        self.kafka = {"bootstrap.servers": kafka}
        self.kafka_after = self.kafka  # which is asked whether it is back
        self.topic = topic
        self.checkpoint = str(tmp_path / "checkpoint")
        self.batches: dict[int, list[str]] = {}
        self.shuffles: str | None = None
        self.first: Callable[[int], None] = lambda number: None
        self.failed: Callable[[], None] = lambda: None
        self.stop = Stop()
        self.options = {"subscribe": topic}
        Admin(self.kafka).ensure_source_topic(topic)

    def send(self, *values: str) -> None:
        producer = Producer(self.kafka)
        for value in values:
            producer.produce(self.topic, value.encode())
        producer.flush()

    def batch(self, rows: DataFrame, number: int, checkpoint: Checkpoint) -> BatchCounts:
        self.shuffles = rows.sparkSession.conf.get(SHUFFLES)
        self.first(number)
        try:
            found = [row.v for row in rows.selectExpr("CAST(value AS STRING) AS v").collect()]
        except (PySparkException, Py4JJavaError):
            self.failed()
            raise
        self.batches[number] = found
        return BatchCounts(len(found), {"seen": len(found)})

    def run(
        self, *, once: bool = True, identity: Identity = JOB, accept_gap: bool = False, give_up: float = 60.0
    ) -> StreamReport:
        settings = StreamSettings(self.checkpoint, once, 0.0, give_up, accept_gap)
        return run_stream(
            self.spark,
            lambda: kafka_source(self.spark, self.kafka, accept_gap=accept_gap, **self.options),
            self.batch,
            settings,
            identity,
            self.stop,
            kafka=self.kafka_after,
            topics=(self.topic,),
        )


@pytest.fixture
def copy(spark: SparkSession, kafka: str, service_id: str, tmp_path: Path) -> Copy:
    return Copy(spark, kafka, f"{service_id}-in", tmp_path)


@contextmanager
def set_to(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    before = spark.conf.get(name)
    assert before is not None
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.set(name, before)


def test_each_run_takes_what_came_since(copy: Copy) -> None:
    copy.send("a", "b")
    with set_to(copy.spark, SHUFFLES, SHUFFLES_OF_SPARK):
        report = copy.run()
    assert copy.shuffles == str(copy.spark.sparkContext.defaultParallelism)
    assert (report.rows, report.batches, report.counts, report.stopped) == (2, 1, {"seen": 2}, False)
    copy.send("c")
    assert copy.run().rows == 1
    assert copy.batches == {0: ["a", "b"], 1: ["c"]}
    with pytest.raises(CheckpointMismatch, match="root was 'a' and is 'b'"):
        copy.run(identity=Identity("copy", {"root": "b"}))
    with pytest.raises(CheckpointMismatch, match="is of the job copy"):
        copy.run(identity=Identity("other"))
    told = Path(copy.checkpoint, NAME)
    told.write_text(json.dumps(json.loads(told.read_text()) | {"version": 2}))
    with pytest.raises(CheckpointMismatch, match="version 2") as caught:
        copy.run()
    assert "--checkpoint" in str(caught.value.hint)


def test_a_stop_lets_the_batch_end_and_the_next_run_goes_on(copy: Copy) -> None:
    copy.send("a")

    def stop_meanwhile(number: int) -> None:
        copy.send("b")
        copy.stop.ask()

    copy.first = stop_meanwhile
    with set_to(copy.spark, SHUFFLES, "7"):
        report = copy.run(once=False)
    assert copy.shuffles == "7", "as the user told it"
    assert (report.rows, report.stopped) == (1, True)
    copy.stop, copy.first = Stop(), lambda number: None
    assert copy.run().rows == 1
    assert copy.batches == {0: ["a"], 1: ["b"]}


def test_an_idle_stream_stops(copy: Copy) -> None:
    found: list[StreamReport] = []
    runs = threading.Thread(target=lambda: found.append(copy.run(once=False)))
    runs.start()
    wait_until(lambda: copy.spark.streams.active)
    copy.stop.ask()
    runs.join(30)
    assert [report.rows for report in found] == [0]


def test_a_failed_batch_is_handed_out_again(copy: Copy) -> None:
    copy.send("a")

    def fail(number: int) -> None:
        raise SparkError("no", hint="because")

    copy.first = fail
    with pytest.raises(SparkError, match="no") as caught:
        copy.run()
    assert caught.value.hint == "because"
    copy.send("b")
    copy.first = lambda number: None
    copy.run()
    assert copy.batches == {0: ["a"], 1: ["b"]}


def test_retention_that_overtook_the_job(copy: Copy) -> None:
    copy.send("a")
    copy.run()
    copy.send("b", "c")
    admin = AdminClient(copy.kafka)
    [deleted] = admin.delete_records([TopicPartition(copy.topic, 0, 2)]).values()
    deleted.result(30)
    with pytest.raises(RecordsLost) as caught:
        copy.run()
    assert f"{copy.topic}" in caught.value.message
    assert "--accept-gap" in str(caught.value.hint)
    copy.run(accept_gap=True)
    assert copy.batches == {0: ["a"], 1: ["c"]}


def test_a_topic_that_was_deleted(copy: Copy) -> None:
    copy.send("a", "b")
    copy.run()
    admin = Admin(copy.kafka)
    admin.delete_topics([copy.topic])
    wait_until(lambda: copy.topic not in admin.topics())
    with pytest.raises(TopicMissing) as caught:
        copy.run()
    assert caught.value.topic == copy.topic
    admin.ensure_source_topic(copy.topic)
    copy.send("c")
    with pytest.raises(RecordsLost, match=f"{copy.topic}-0"):
        copy.run()


def test_checkpoints_that_cannot_be_used(copy: Copy, tmp_path: Path) -> None:
    copy.send("a")
    copy.run()
    log = Path(copy.checkpoint, "offsets", "0")
    (Path(copy.checkpoint, "commits", "0")).unlink()
    whole = log.read_text()
    log.write_text(whole.replace("v1", "v9", 1))
    with pytest.raises(CheckpointMismatch, match="another version of Spark"):
        copy.run()
    log.write_text("")
    with pytest.raises(CheckpointMismatch, match="damaged"):
        copy.run()

    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "metadata").write_text("{}")
    copy.checkpoint = str(foreign)
    with pytest.raises(CheckpointMismatch, match="not a checkpoint of Tureen"):
        copy.run()
    copy.checkpoint = str(foreign / "metadata" / "below")
    with pytest.raises(PathNotWritable):
        copy.run()


def test_a_kafka_that_comes_back_is_waited_for(
    spark: SparkSession, kafka_node: Node, service_id: str, tmp_path: Path
) -> None:
    copy = Copy(spark, kafka_node.bootstrap, f"{service_id}-in", tmp_path)
    copy.options |= {
        "kafkaConsumer.pollTimeoutMs": "500",
        "kafka.request.timeout.ms": "1000",
        "kafka.default.api.timeout.ms": "2000",
    }
    copy.send("a")
    back = threading.Thread(target=kafka_node.start)

    def away(number: int) -> None:
        if back.ident is None:
            kafka_node.kill()  # the batch is planned, its records are not read yet

    copy.first, copy.failed = away, back.start
    report = copy.run()
    back.join()
    assert (report.rows, report.restarts) == (1, 1)
    assert copy.batches == {0: ["a"]}


def test_a_kafka_that_stays_away_ends_the_run_in_the_end(copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_jobs.streaming.PROBE_TIMEOUT_S", 0.5)
    monkeypatch.setattr("spark_jobs.streaming.BACKOFF_S", 0.01)
    copy.send("a")
    [port] = free_ports(1)
    copy.kafka_after = {"bootstrap.servers": f"127.0.0.1:{port}"}

    def gone(number: int) -> None:
        raise KafkaUnavailable("gone for good")

    copy.first = gone
    with pytest.raises(KafkaUnavailable, match="gone for good"):
        copy.run(give_up=0)
    copy.first = lambda number: None
    assert copy.run().rows == 1  # from where it was

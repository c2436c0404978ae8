"""Queries with state on a real Spark and Kafka: shards write what one engine would tell, exactly once."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from engine.engine import Engine
from engine.model.batch import concatenate
from engine.model.source import Stream
from engine.model.step import Body, Position, Records, Register, Step, Unregister
from spark_jobs.scale_out.driver import Driver
from spark_jobs.scale_out.micro_batch import MicroBatch, SourceStep
from spark_jobs.scale_out.settings import ScaleOutSettings
from spark_jobs.scale_out.shards.cutting import place_values
from spark_jobs.scale_out.shards.layout import Layout
from spark_jobs.settings import StreamSettings
from topics.admin import Admin, Policies, service_topics
from topics.codec import decode
from topics.keyed import decode_keyed
from topics.producer import BatchProducer
from tureen.protocol import TopicNames, query_id
from tureen.results import ResultTopic

START_MS = 1_700_000_000_000
TIME = (
    "timestamp = 'ts', lateness = '50 milliseconds', idle_timeout = '500 milliseconds', idle_advances = true"
)
COLUMNS = {
    "s": "STREAM s (k STRING, v INT, ts TIMESTAMP NOT NULL)",
    "t": "STREAM t (k STRING, w INT, ts TIMESTAMP NOT NULL)",
    "names": "TABLE names (k STRING, name STRING, ts TIMESTAMP NOT NULL, PRIMARY KEY (k))",
}
PARTITIONS = {"s": 2, "t": 1, "names": 1}
QUERIES = {
    "counted": "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 300 MILLISECONDS] GROUP BY k",
    "joined": "SELECT s.k, v, w FROM s [RANGE 200 MILLISECONDS] JOIN t [RANGE 200 MILLISECONDS] ON s.k = t.k",
    "plain": "SELECT v FROM s [RANGE 200 MILLISECONDS]",
    "named": "SELECT s.k, v, name FROM s [RANGE 200 MILLISECONDS] LEFT JOIN names ON s.k = names.k",
    "all": "SELECT COUNT(*) AS n FROM s [RANGE 300 MILLISECONDS]",
}


@dataclass
class Service:
    """Topics of a service, what was written to them, and an engine that is given all of it."""

    kafka: dict[str, str]
    service_id: str
    checkpoint: Path
    clock_ms: int = START_MS
    written: dict[tuple[str, int], list[tuple[bytes | None, bytes]]] = field(default_factory=dict)
    engine: Engine = field(default_factory=Engine)

    def __post_init__(self) -> None:
        self.names = TopicNames(self.service_id)
        self.producer = BatchProducer(self.kafka)
        admin = Admin(self.kafka)
        admin.ensure(service_topics(self.names, Policies()))
        for name in COLUMNS:
            admin.ensure_source_topic(f"{self.service_id}-{name}", PARTITIONS[name], table=name == "names")
            sql = self.create(name)
            self.producer.send(self.names.sources, orjson.dumps({"sql": sql}), name.encode())
            self.engine.create(sql)
        self.producer.flush()

    def create(self, name: str) -> str:
        topic = f"{self.service_id}-{name}"
        return f"CREATE {COLUMNS[name]} WITH (topic = '{topic}', partitions = {PARTITIONS[name]}, {TIME})"

    def register(self, *names: str) -> None:
        for name in names:
            value = orjson.dumps({"sql": f"{QUERIES[name]} EMIT CHANGES"})
            self.producer.send(self.names.queries, value, query_id(name).encode())
        self.producer.flush()

    def unregister(self, name: str) -> None:
        self.producer.send(self.names.queries, None, query_id(name).encode())
        self.producer.flush()

    def write(self, seed: int) -> None:
        """Rows of every source around the clock, some of them late."""
        rng = random.Random(seed)
        for name, partitions in PARTITIONS.items():
            for _ in range(6 if name == "names" else 25):
                key = rng.choice(["a", "b", "c", "d", None])
                at_ms = self.clock_ms + rng.randint(-150, 20)
                row: dict[str, Any] = {"k": key, "ts": at_ms}
                message_key = None
                if name == "names":
                    message_key = (row.pop("k") or "e").encode()
                    row["name"] = rng.choice(["A", "B"])
                else:
                    row["v" if name == "s" else "w"] = rng.randrange(3)
                partition = rng.randrange(partitions)
                told = self.written.setdefault((name, partition), [])
                told.append((message_key, orjson.dumps(row)))
                self.producer.send(f"{self.service_id}-{name}", told[-1][1], message_key, partition)
        self.producer.flush()

    def driver(self, spark: SparkSession, layout: Layout) -> Driver:
        settings = ScaleOutSettings(
            self.kafka,
            self.service_id,
            "test",
            StreamSettings(str(self.checkpoint), once=True),
            layout,
        )
        return Driver(spark, settings, "one", lambda: self.clock_ms)

    # --- the engine that is given all ----------------------------------------------------------------

    def follow(self, batch: MicroBatch) -> None:
        """Take the micro-batch as steps of a broker."""
        bodies: list[Body] = [Unregister(batch.going), Register(batch.coming)]
        bodies += [self._rows(step) for step in batch.steps]
        for body in bodies:
            last = self.engine.position
            self.engine.enqueue(Step(Position(1, last.sequence + 1), batch.clock_ms, body))
            (result,) = self.engine.run()
            assert not result.failed

    def _rows(self, step: SourceStep) -> Records:
        stream = self.engine.catalogue[step.source]
        assert isinstance(stream, Stream)
        found = []
        for partition, first, until in step.ranges:
            told = self.written.get((step.source, partition), [])[first:until]
            keys, values = [key for key, _ in told], [value for _, value in told]
            places = [partition] * len(told), range(first, until), [0] * len(told)
            given = (
                decode_keyed(stream, keys, values, *places)
                if stream.is_table
                else decode(stream, values, *places)
            )
            assert not given.bad
            found.append(given.batch)
        return Records(step.source, concatenate(stream.stored_schema, found), {}, step.lagging)

    def answers(self) -> dict[str, Counter[bytes]]:
        view = self.engine.view()
        return {name: rows_of(view.snapshot(name).table.to_pylist()) for name in view.standing}

    def folded(self, names: Mapping[str, Any]) -> dict[str, Counter[bytes]]:
        """What readers of the result topic have."""
        found = {}
        for name in names:
            with ResultTopic(self.kafka, name, service_id=self.service_id) as topic:
                assert topic.read()
                found[name] = rows_of(topic.rows())
        return found


def rows_of(rows: list[dict[str, Any]]) -> Counter[bytes]:
    return Counter(orjson.dumps(row) for row in rows)


@pytest.fixture
def service(kafka: str, service_id: str, tmp_path: Path) -> Service:
    return Service({"bootstrap.servers": kafka}, service_id, tmp_path / "checkpoint")


LAYOUT = Layout(2, {"s": "k", "t": "k"}, frozenset({"s"}))


@pytest.mark.slow
@pytest.mark.timeout(240, func_only=True)
def test_folded_topics_are_the_answers_of_one_engine(spark: SparkSession, service: Service) -> None:
    """Rows, late rows, at last time alone; groups, joins of streams and with a table; queries come and go."""
    driver = service.driver(spark, LAYOUT)
    service.register("counted", "joined", "plain", "all")
    for number in range(3):
        if number == 1:
            service.register("named")
            service.unregister("joined")
        if number == 2:
            service.clock_ms += 10_000  # and no row any more
        else:
            service.clock_ms += 100
            service.write(number)
        report = driver.next()
        assert report is not None
        assert not report.broken
        service.follow(driver.journal.read(report.number))
        answers = service.answers()
        assert service.folded(answers) == answers
    driver.close()
    assert service.folded([query_id("joined")]) == {query_id("joined"): Counter()}
    assert not any(answers[query_id(name)] for name in ("counted", "plain"))  # time alone took all of it


def test_every_shard_has_a_task_of_its_own(spark: SparkSession) -> None:
    places = place_values(5)
    rows = spark.createDataFrame([(place,) for place in places], "place int").repartition(5, "place")
    found = {
        row.place: row.task for row in rows.select("place", F.spark_partition_id().alias("task")).collect()
    }
    assert [found[place] for place in places] == [0, 1, 2, 3, 4]

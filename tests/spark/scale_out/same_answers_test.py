"""A run of the scale-out against an engine that is given the same steps: the same records, whatever happens.

Rows are late, out of order, ahead of NOW, have NULLs, some records are none; micro-batches cut them anywhere,
queries come and go between them, and drivers die at every stage and begin again.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from engine.engine import Engine
from engine.model.changes import Changes
from engine.model.source import Stream
from engine.model.step import Position, Records, Register, Step, Unregister
from spark_jobs.scale_out.driver import Driver
from spark_jobs.scale_out.micro_batch import MicroBatch
from spark_jobs.scale_out.settings import ScaleOutSettings
from spark_jobs.scale_out.shards.layout import Layout
from spark_jobs.settings import StreamSettings
from topics.admin import Admin, TopicPolicy
from topics.codec import decode
from topics.consumer import BatchConsumer
from topics.json_rows import json_objects
from tureen.protocol import HEADER_AT_MS, TopicNames, query_id

PARTITIONS = 2
CLOCK_MS = 1_000_000
SQL = (
    "CREATE STREAM s (k INTEGER, v DOUBLE, t STRING, ts TIMESTAMP NOT NULL) "
    "WITH (topic='{topic}', timestamp='ts', lateness='3 milliseconds', idle_timeout='1 hour')"
)
COUNTED = "SELECT t, COUNT(*) AS n FROM s WHERE k > 2 GROUP BY t EMIT CHANGES"
SUMMED = "SELECT COUNT(*) AS n, MAX(k) AS top FROM s [RANGE 20 MILLISECONDS] EMIT CHANGES"
DEATHS = ("tell",), ("shards",)
DEATHS_ALL = ("plan", "tell", "done"), ("decode", "shards")
"""Each before that stage of a micro-batch, those of a round one after another."""


class Died(Exception):
    """The driver is gone."""


class World:
    """A service with a stream, the records that were sent, and an engine that follows the micro-batches."""

    def __init__(self, kafka: str, service_id: str, seed: int) -> None:
        self.kafka = {"bootstrap.servers": kafka}
        self.names = TopicNames(service_id)
        self.topic = f"{service_id}-source"
        self.rng = random.Random(seed)
        self.admin = Admin(self.kafka)
        self.admin.ensure_service_topics(self.names)
        self.admin.ensure([TopicPolicy(self.topic, PARTITIONS, {})])
        self.producer = Producer(self.kafka)
        self.sent: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
        self.engine = Engine()
        self.expected: Counter[tuple[str, bytes, int]] = Counter()
        self.late = 0
        self.dead = 0
        self.applied = 0
        sql = SQL.format(topic=self.topic)
        self.producer.produce(self.names.sources, json.dumps({"sql": sql}).encode(), b"s")

    def register(self, name: str, sql: str | None) -> None:
        value = None if sql is None else json.dumps({"sql": sql}).encode()
        self.producer.produce(self.names.queries, value, query_id(name).encode())
        self.producer.flush()

    def send(self, rows: int, since_ms: int) -> None:
        rng = self.rng
        for n in range(rows):
            value: dict[str, Any] = {
                "k": rng.choice([None, 0, 1, 2, 3, 4, 5]),
                "v": rng.choice([None, 0.0, -0.0, 1.5, 2.5, -1e300]),
                "t": rng.choice([None, "", "a", "b", "é"]),
                "ts": since_ms + n + rng.randrange(-9, 3),
            }
            if rng.random() < 0.03:
                value["ts"] = CLOCK_MS + 2 * 86_400_000
            record = b'{"k": 1, "ts":' if rng.random() < 0.03 else json.dumps(value).encode()
            partition = rng.randrange(PARTITIONS)
            self.sent[partition].append(record)
            self.producer.produce(self.topic, record, partition=partition)
        self.producer.flush()

    def selection(self) -> str:
        rng = self.rng
        terms = [
            rng.choice(
                [
                    f"k {rng.choice(['<', '>=', '=', '<>'])} {rng.randrange(6)}",
                    f"v {rng.choice(['<', '>', '<='])} {rng.choice([0.0, 1.5, 2.0])}",
                    f"t = '{rng.choice(['', 'a', 'b', 'é'])}'",
                    f"t IN ('a', '{rng.choice(['b', 'z'])}')",
                    f"k BETWEEN {rng.randrange(3)} AND {rng.randrange(3, 6)}",
                    "v IS NULL",
                    "NOT (k = 3)",
                    "10 / k > 3",
                    "k + v > 2",
                ]
            )
            for _ in range(rng.randrange(1, 4))
        ]
        columns = rng.choice(["*", "k, v", "t, k + 1 AS more", "ts, v"])
        window = rng.choice(["", "", " [UNBOUNDED]"])
        where = f" {rng.choice(['AND', 'OR'])} ".join(terms)
        snapshot = rng.choice(["true", "false"])
        return f"SELECT {columns} FROM s{window} WHERE {where} EMIT CHANGES WITH (snapshot = {snapshot})"

    # --- the engine ---------------------------------------------------------------------------------

    def follow(self, batch: MicroBatch) -> None:
        """Give the engine the steps of a micro-batch, once."""
        if batch.number <= self.applied:
            return
        assert batch.number == self.applied + 1
        self.applied = batch.number
        bodies: list[Any] = [*batch.definitions]
        if batch.going:
            bodies.append(Unregister(batch.going))
        if batch.coming:
            bodies.append(Register(batch.coming))
        for step in batch.steps:
            stream = self.engine.catalogue[step.source] if not batch.definitions else None
            if stream is None:
                stream = next(one.stream for one in batch.definitions if hasattr(one, "stream"))
            assert isinstance(stream, Stream)
            places = [(p, o) for p, first, until in step.ranges for o in range(first, until)]
            values = [self.sent[p][o] for p, o in places]
            found = decode(stream, values, [p for p, _ in places], [o for _, o in places], [0] * len(places))
            self.dead += len(found.bad)
            bodies.append(Records(step.source, found.batch, step.next_offsets, step.lagging))
        for body in bodies:
            sequence = self.engine.position.sequence + 1
            self.engine.enqueue(Step(Position(0, sequence), batch.clock_ms, body))
            (result,) = self.engine.run()
            assert not result.failed
            self.late += len(result.late)
            self.dead += len(result.rejected)
            for changes in result.changes:
                self.note(changes)
            if isinstance(body, Records):
                (step,) = (one for one in batch.steps if one.source == body.source)
                assert result.now_ms == step.now_ms

    def note(self, changes: Changes) -> None:
        rows = json_objects(changes.table).to_pylist()
        for place, name in enumerate(changes.query_ids):
            for row in range(int(changes.starts[place]), int(changes.starts[place + 1])):
                self.expected[name, rows[row], int(changes.at_ms[row])] += 1

    # --- what was written ---------------------------------------------------------------------------

    def records(self, topic: str) -> Iterator[Any]:
        consumer = BatchConsumer(self.kafka)
        consumer.add(topic, dict.fromkeys(range(self.admin.partitions(topic)), -1))
        while consumer.lagging(topic):
            for polled in consumer.poll(10_000, 0.2):
                yield from polled.messages
        consumer.close()

    def check(self) -> None:
        """What is in the topics is what the engine told."""
        told: Counter[tuple[str, bytes, int]] = Counter()
        keys = set()
        for record in self.records(self.names.results_log):
            headers = dict(record.headers())
            told[json.loads(record.key())["query"], record.value(), int(headers[HEADER_AT_MS])] += 1
            assert record.key() not in keys
            keys.add(record.key())
        stateful = {query_id("counted"), query_id("summed")}
        selected = {one: n for one, n in self.expected.items() if one[0] not in stateful}
        assert told == Counter(selected)
        folded: dict[bytes, bytes] = {}
        for record in self.records(self.names.results):
            if record.value() is None:
                folded.pop(record.key(), None)
            else:
                folded[record.key()] = record.value()
        rows: Counter[tuple[str, bytes]] = Counter()
        for key, value in folded.items():
            rows[json.loads(key)["query"], value] += 1
        view = self.engine.view()
        answers: Counter[tuple[str, bytes]] = Counter()
        for name in ("counted", "summed"):
            if query_id(name) in view.standing:
                for row in json_objects(view.snapshot(query_id(name)).table).to_pylist():
                    answers[query_id(name), row] += 1
        assert rows == answers
        assert sum(1 for _ in self.records(self.names.late)) == self.late
        assert sum(1 for _ in self.records(self.names.dead_letters)) == self.dead


@pytest.fixture
def world(kafka: str, service_id: str, spark: SparkSession) -> World:
    return World(kafka, service_id, seed=11)


def _settings(world: World, checkpoint: Path, rows_max: int) -> ScaleOutSettings:
    stream = StreamSettings(str(checkpoint), once=True)
    layout = Layout(2, {"s": "t"})
    return ScaleOutSettings(world.kafka, world.names.service_id, "run", stream, layout, rows_max)


def _run(driver: Driver, world: World) -> int:
    """Micro-batches until there is nothing to do."""
    done = 0
    while (report := driver.next()) is not None:
        world.follow(driver.journal.read(report.number))
        done += 1
    return done


@pytest.mark.parametrize("deaths", [DEATHS, pytest.param(DEATHS_ALL, marks=pytest.mark.slow)])
def test_cuts_queries_and_deaths_change_no_record(
    world: World, spark: SparkSession, tmp_path: Path, deaths: tuple[tuple[str, ...], ...]
) -> None:
    """Drivers die in the middle of micro-batches, with queries that come and go and rows of any time."""
    dying: list[str] = []

    def stop_at(stage: str) -> None:
        if stage in dying:
            dying.clear()
            raise Died

    def clock() -> int:
        return CLOCK_MS

    for number in range(8):
        world.register(f"first{number}", world.selection())
    world.register("counted", COUNTED)
    world.register("summed", SUMMED)
    world.send(60, CLOCK_MS)
    settings = _settings(world, tmp_path, 50)
    driver = Driver(spark, settings, "one", clock, stop_at)
    for round_, stages in enumerate(deaths):
        for stage in stages:
            dying[:] = [stage]
            with pytest.raises(Died):
                _run(driver, world)
            driver.close()
            driver = Driver(spark, settings, "one", clock, stop_at)
        _run(driver, world)
        world.register(f"later{round_}", world.selection())
        world.register(f"first{round_}", None)
        world.send(30, CLOCK_MS + 60 + 30 * round_)
    _run(driver, world)  # the driver that stands notices what came and went
    driver.close()
    assert world.late
    assert world.dead
    assert world.expected
    world.check()
    states = {}
    for record in world.records(world.names.status):
        states[record.key()] = record.value() and orjson.loads(record.value())["state"]
    assert states[query_id("first0").encode()] is None
    assert states[query_id("first1").encode()] is None
    assert states[query_id("later1").encode()] == "RUNNING"
    assert states[query_id("first7").encode()] == "RUNNING"

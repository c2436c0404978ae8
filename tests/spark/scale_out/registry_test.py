"""The registry against a real Kafka: what a micro-batch is told of what came and went."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from engine.model.limits import Limits
from engine.model.step import CreateSource, DropSource
from spark_jobs.scale_out.micro_batch import Plan
from spark_jobs.scale_out.registry import Registry
from tests.kafka import wait_until
from topics.admin import Admin, Policies, service_topics
from topics.outputs import Outputs, OutputSettings
from topics.producer import BatchProducer
from tureen.errors import ChangesBroken, KafkaUnavailable, TureenError
from tureen.protocol import SUMMARY_KEY, TopicNames, query_id


class World:
    """A service's topics and its registry."""

    def __init__(self, kafka: str, service_id: str) -> None:
        self.kafka = {"bootstrap.servers": kafka}
        self.names = TopicNames(service_id)
        self.admin = Admin(self.kafka)
        self.admin.ensure(service_topics(self.names, Policies()))
        wait_until(self._led, what="leaders of new topics")
        self.producer = BatchProducer(self.kafka)
        self.letters: list[str] = []
        self.registry = self.begin()

    def _led(self) -> bool:
        try:
            return all(self.admin.end_offsets(topic) for topic in (self.names.queries, self.names.sources))
        except KafkaUnavailable:
            return False

    def begin(self) -> Registry:
        outputs = Outputs(OutputSettings(), self.admin)
        return Registry(self.kafka, self.names, Limits(), outputs, lambda *_: "rows", self._letter)

    def begin_again(self) -> None:
        """As another run on the same checkpoint."""
        plan = Plan.from_dict(self.registry.plan().as_dict())
        self.registry.close()
        self.registry = self.begin()
        self.registry.adopt(plan)

    def at_the_ends(self) -> None:
        """The registry's consumer has been told that there is no more."""
        consumer = self.registry._consumer
        for topic in (self.names.sources, self.names.queries):
            while not all(place.at_end for place in consumer._places[topic].values()):
                consumer.poll(100, 0.1)

    def _letter(self, message: Any, refused: TureenError) -> None:
        self.letters.append(refused.code)

    def source(self, column: str | None) -> None:
        sql = f"CREATE STREAM s ({column} INT) WITH (topic = '{self.names.service_id}-{column}')"
        value = None if column is None else orjson.dumps({"sql": sql})
        self.producer.send(self.names.sources, value, b"s")
        self.producer.flush()

    def query(self, sql: str | None) -> None:
        value = None if sql is None else orjson.dumps({"sql": sql})
        self.producer.send(self.names.queries, value, query_id("q").encode())
        self.producer.flush()


@pytest.fixture
def world(kafka: str, service_id: str) -> Iterator[World]:
    found = World(kafka, service_id)
    yield found
    found.registry.close()
    found.producer.close()


def test_a_stream_that_is_dropped_and_made_anew_at_once_is_another(world: World) -> None:
    world.source("a")
    (made,) = world.registry.poll(whole=True).definitions
    assert isinstance(made, CreateSource)
    world.source(None)
    world.source("b")
    dropped, other = world.registry.poll().definitions
    assert dropped == DropSource(made.stream.name)
    assert isinstance(other, CreateSource)
    assert [one.name for one in other.stream.schema] == ["b"]
    world.source(None)
    assert world.registry.poll().definitions == [dropped]
    assert not world.letters
    world.source("b")
    world.source("a")
    world.registry.poll()
    assert world.letters == []
    assert [one.name for one in next(iter(world.registry.streams.values())).schema] == ["a"]


def test_a_query_that_is_another_now_holds_no_stream_back(world: World) -> None:
    world.source("a")
    world.query("SELECT a FROM s EMIT CHANGES")
    world.registry.poll(whole=True)
    world.source(None)
    world.source("b")
    world.query("SELECT b FROM s EMIT CHANGES")
    changes = world.registry.poll()
    assert [type(one) for one in changes.definitions] == [DropSource, CreateSource]
    assert changes.going == [one.query_id for one, _ in changes.coming] == [query_id("q")]
    assert not world.registry.poll()
    assert not world.letters


def test_a_run_that_begins_again_does_not_drop_what_stands(world: World) -> None:
    world.source("a")
    world.source(None)
    world.source("b")
    world.query("SELECT b FROM s EMIT CHANGES")
    world.registry.poll(whole=True)
    world.begin_again()
    assert not world.registry.poll(whole=True)
    world.source(None)
    world.source("a")
    assert not world.registry.poll(), "a query reads it"
    assert set(world.letters) == {"source_conflict"}


def test_what_comes_after_a_silence_is_seen(world: World) -> None:
    """Also where the end of the topics had been told before."""
    world.source("a")
    world.registry.poll(whole=True)
    world.at_the_ends()
    world.query("SELECT a FROM s EMIT CHANGES")
    assert [one.query_id for one, _ in world.registry.poll().coming] == [query_id("q")]
    world.query(None)
    assert world.registry.poll().going == [query_id("q")]


def test_a_query_that_could_not_be_told_stays_ended_until_it_is_another(world: World) -> None:
    world.source("a")
    world.query("SELECT a FROM s EMIT CHANGES")
    world.registry.poll(whole=True)
    reason = ChangesBroken("too many").as_dict()
    assert world.registry.give_up({query_id("q"): reason, "unknown": reason}).going == [query_id("q")]
    for _ in range(2):
        world.begin_again()
        assert not world.registry.poll(whole=True)
        entry = world.registry.entries[query_id("q")]
        assert (entry.state, entry.error) == ("ERROR", reason)
        assert not world.registry.plan().queries
    world.query("SELECT a + 1 AS b FROM s EMIT CHANGES")
    (came,) = world.registry.poll().coming
    assert came[0].query_id == query_id("q")
    assert not world.registry.plan().broken


def test_summaries_and_preferences_are_refused(world: World) -> None:
    """A query with a preference does not wait for a summary that never comes."""
    world.source("a")
    sql = "CREATE SUMMARY x ON s (a) WITH GRANULARITY 1 MINUTE AND COLLAPSE(2, 2)"
    world.producer.send(world.names.sources, orjson.dumps({"sql": sql}), f"{SUMMARY_KEY}x".encode())
    world.query("SELECT a FROM s WITH PREFERENCE SUMMARY.Estimate.Count(a) EMIT CHANGES")
    changes = world.registry.poll(whole=True)
    assert not changes.coming
    assert world.letters == ["not_supported"]
    error = world.registry.entries[query_id("q")].error
    assert error is not None
    assert (error["code"], error["line"], error["column"]) == ("not_supported", 1, 33)
    world.query("SELECT a FROM s EMIT CHANGES")
    assert [one.query_id for one, _ in world.registry.poll().coming] == [query_id("q")]

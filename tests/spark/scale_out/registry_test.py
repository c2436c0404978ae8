"""The registry against a real Kafka: what a micro-batch is told of what came and went."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from engine.model.limits import Limits
from engine.model.step import CreateDerived, CreateSource, DropSource
from spark_jobs.scale_out.micro_batch import Plan
from spark_jobs.scale_out.registry import Registry
from tests.definitions import CASES, NAMES, Case
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
        consumer = self.registry._topics.consumer
        for topic in (self.names.sources, self.names.queries):
            while not all(place.at_end for place in consumer._places[topic].values()):
                consumer.poll(100, 0.1)

    def _letter(self, message: Any, refused: TureenError) -> None:
        self.letters.append(refused.code)

    def define(self, name: str, sql: str | None) -> None:
        self._send(self.names.sources, name, sql)

    def source(self, column: str | None) -> None:
        sql = f"CREATE STREAM s ({column} INT) WITH (topic = '{self.names.service_id}-{column}')"
        self.define("s", None if column is None else sql)

    def query(self, sql: str | None, handle: str = "q") -> None:
        self._send(self.names.queries, query_id(handle), sql)

    def _send(self, topic: str, key: str, sql: str | None) -> None:
        self.producer.send(topic, None if sql is None else orjson.dumps({"sql": sql}), key.encode())
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


def test_a_view_that_a_query_reads_stands_as_it_did_when_a_run_begins_again(world: World) -> None:
    world.source("a")
    world.define("v", "CREATE VIEW v AS SELECT a FROM s")
    world.query("SELECT a FROM v EMIT CHANGES")
    world.registry.poll(whole=True)
    world.begin_again()
    assert not world.registry.poll(whole=True)
    assert not world.letters


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


RECORDED = {
    name: case
    for name, case in CASES.items()
    if not case.of_summary and "IF NOT EXISTS" not in case.statement  # which is answered before it is written
}


@pytest.fixture(scope="module")
def one_world(kafka: str) -> Iterator[World]:
    """For all cases; each has names of its own."""
    found = World(kafka, f"t{uuid.uuid4().hex[:12]}")
    found.registry.poll(whole=True)
    yield found
    found.registry.close()
    found.producer.close()


@pytest.mark.parametrize("case", RECORDED.values(), ids=RECORDED)
def test_what_becomes_of_a_statement(one_world: World, case: Case) -> None:
    world, registry = one_world, one_world.registry
    names = {letter: f"{letter}{uuid.uuid4().hex[:10]}" for letter in NAMES}
    world.letters.clear()
    for sql in case.stands:
        world.define(names[Case((), sql, "").about], sql.format(**names))
    if case.reads is not None:
        world.query(case.reads.format(**names), names["s"])
    assert len(registry.poll().definitions) == len(case.stands)
    before = dict(registry.catalogue.definitions)
    about = names[case.about]
    world.define(about, None if case.statement.startswith("DROP") else case.statement.format(**names))
    changes = registry.poll().definitions
    after = registry.catalogue.definitions
    if case.becomes in ("create", "replace"):
        (made,) = changes
        assert isinstance(made, CreateSource | CreateDerived)
        assert (about in before) == (case.becomes == "replace")
        assert after[about] != before.get(about)
    elif case.becomes == "drop":
        assert changes == [DropSource(before[about].name)]
        assert about not in after
    else:
        assert not changes
        assert after == before
    decided = case.becomes in {"create", "replace", "same", "drop", "absent", "waits"}
    assert world.letters == ([] if decided else [case.becomes])
    assert (about in registry._waiting) == (case.becomes == "waits")

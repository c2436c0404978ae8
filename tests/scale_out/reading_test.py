"""Which records come next, on a real Kafka; topics that go, and come back as others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from engine.model.source import Schema, SourceName, Stream
from spark_jobs.scale_out.clock import with_time
from spark_jobs.scale_out.micro_batch import RecordRange, SourceStep, Summary
from spark_jobs.scale_out.reading import Reading
from topics.admin import Admin, TopicPolicy
from topics.producer import BatchProducer

CLOCK_MS = 1_000


class World:
    """Two streams, each over a topic of its own."""

    def __init__(self, kafka: str, service_id: str) -> None:
        settings = {"bootstrap.servers": kafka}
        self.admin = Admin(settings)
        self.producer = BatchProducer(settings)
        self.streams = {
            name: Stream(name, Schema(()), f"{service_id}-{name}", "ts", idle_timeout_ms=3_600_000)
            for name in (SourceName("kept"), SourceName("lost"))
        }
        for stream in self.streams.values():
            self.admin.ensure([TopicPolicy(stream.topic, 1, {})])
        self.lost = self.streams[SourceName("lost")]
        self.reading = self.begin()

    def begin(self) -> Reading:
        return Reading(self.admin, rows_max=4, wait_ms=0, accept_gap=False)

    def send(self, name: str, records: int) -> None:
        self.producer.send_many(self.streams[SourceName(name)].topic, [b"{}"] * records)
        self.producer.flush()

    def make(self) -> None:
        self.admin.ensure([TopicPolicy(self.lost.topic, 1, {})])

    def read(self) -> dict[str, SourceStep]:
        """A micro-batch; its rows have the timestamps of their offsets."""
        steps = self.reading.steps(self.streams.values())
        done = [self.told(step) for step in steps]
        self.reading.went_on(done)
        return {step.source: step for step in done}

    def told(self, step: SourceStep) -> SourceStep:
        rows = [Summary(p, first, until - first, until) for p, first, until in step.ranges if first < until]
        return with_time(self.streams[step.source], step, rows, CLOCK_MS)

    def code(self) -> str:
        return self.reading.lost[self.lost.name].code


@pytest.fixture
def world(kafka: str, service_id: str) -> Iterator[World]:
    found = World(kafka, service_id)
    yield found
    found.producer.close()


def test_records_are_shared_out_and_read_once(world: World) -> None:
    world.send("kept", 5)
    world.send("lost", 1)
    first, second, third = world.read(), world.read(), world.read()
    assert [one["kept"].ranges for one in (first, second, third)] == [
        (RecordRange(0, 0, 2),),
        (RecordRange(0, 2, 5),),
        (RecordRange(0, 5, 5),),
    ]
    assert first["kept"].lagging == {0}
    assert first["lost"].ranges == (RecordRange(0, 0, 1),)
    assert not world.reading.lost


def test_a_topic_that_goes_takes_its_stream_alone(world: World) -> None:
    world.send("lost", 2)
    before = world.read()["lost"]
    world.admin.delete_topics([world.lost.topic])
    world.send("kept", 1)
    step = world.read()
    assert step["kept"].ranges == (RecordRange(0, 0, 1),)
    assert (step["lost"].lost, step["lost"].ranges) == (True, ())
    assert step["lost"].after == before.after, "its NOW stands still"
    assert world.code() == "topic_missing"
    world.make()
    world.send("lost", 9)
    assert world.read()["lost"].lost
    assert world.code() == "topic_recreated"
    world.reading.dropped(world.lost.name)
    assert world.read()["lost"].ranges == (RecordRange(0, 0, 4),), "created again it is read from the start"
    assert not world.reading.lost


def test_a_topic_that_was_made_again_between_two_runs_is_another(world: World) -> None:
    """Though it has records at the offsets where the last run ended."""
    world.send("lost", 2)
    last = world.read().values()
    world.admin.delete_topics([world.lost.topic])
    world.make()
    world.send("lost", 9)
    journalled = [SourceStep.from_dict(one.as_dict()) for one in last]
    for _ in range(2):
        world.reading = world.begin()
        world.reading.went_on(journalled)
        journalled = list(world.read().values())
        assert [one.source for one in journalled if one.lost] == ["lost"]
        assert world.code() == "topic_recreated"
        assert world.reading.lost[world.lost.name].hint


def test_what_was_chosen_of_a_topic_that_goes_meanwhile_is_left_out(world: World) -> None:
    world.send("lost", 2)
    world.send("kept", 2)
    steps = world.reading.steps(world.streams.values())
    assert world.reading.without_lost(steps, world.streams) == steps
    world.admin.delete_topics([world.lost.topic])
    world.make()
    world.send("lost", 2)
    kept, lost = world.reading.without_lost(steps, world.streams)
    assert kept == steps[0]
    assert lost == replace(steps[1], ranges=(), lagging=frozenset(), lost=True)
    assert world.code() == "topic_recreated"


def test_the_clock_alone_is_followed_where_somebody_needs_it_or_rows_wait(world: World) -> None:
    lost = world.streams[world.lost.name] = replace(
        world.lost, timestamp_column=None
    )  # its NOW is the clock's

    def would_move(timed: set[SourceName], clock_ms: int) -> bool:
        steps = world.reading.steps(world.streams.values())
        return world.reading.would_move(world.streams, timed, steps, clock_ms)

    world.send("lost", 1)
    world.read()
    assert would_move(set(), CLOCK_MS + 1), "the row that came last may be above NOW"
    world.read()
    assert not would_move(set(), CLOCK_MS + 2)
    assert would_move({lost.name}, CLOCK_MS + 2)

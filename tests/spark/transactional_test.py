"""A batch's records on a real Kafka once, whoever writes them; no Spark is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from spark_jobs import transactional
from spark_jobs.transactional import answer, close_writers, next_batch, outcome, write_once
from tests.spark.job import messages_of
from topics.admin import Admin
from topics.producer import Transaction, TransactionAborted
from tureen.errors import KafkaUnavailable, TopicMissing, TureenError


class Lane:
    """A writer's place: the topic, the id, the group."""

    def __init__(self, kafka: str, service_id: str) -> None:
        self.kafka = {"bootstrap.servers": kafka}
        self.topic = f"{service_id}-out"
        self.group = f"{service_id}.lane"
        Admin(self.kafka).ensure_source_topic(self.topic)

    def write(self, batch: int, *values: str) -> bool:
        def send(transaction: Transaction) -> None:
            for value in values:
                transaction.send(self.topic, value.encode())

        return self.write_by(batch, send)

    def write_by(self, batch: int, send: Callable[[Transaction], None]) -> bool:
        return write_once(
            self.kafka,
            transactional_id=self.group,
            group=self.group,
            topic=self.topic,
            batch=batch,
            send=send,
        )

    def values(self) -> list[str]:
        return [
            (message.value() or b"").decode() for message in messages_of(*self.kafka.values(), self.topic)
        ]


@pytest.fixture
def lane(kafka: str, service_id: str) -> Iterator[Lane]:
    yield Lane(kafka, service_id)
    close_writers()


def test_a_batch_is_written_once(lane: Lane) -> None:
    assert next_batch(lane.kafka, lane.group, lane.topic) == 0
    assert lane.write(0, "a", "b")
    assert not lane.write(0, "a", "b")
    close_writers()  # as in another process
    assert not lane.write(0, "a", "b")
    assert lane.write(1, "c")
    assert lane.values() == ["a", "b", "c"]
    assert next_batch(lane.kafka, lane.group, lane.topic) == 2


def test_a_writer_that_was_overtaken_finds_out_before_it_takes_the_records(lane: Lane) -> None:
    lane.write(0, "a")
    mine = dict(transactional._writers)
    transactional._writers.clear()
    lane.write(1, "b")  # by another process, which has the id now
    [theirs] = transactional._writers.values()
    transactional._writers.clear()
    transactional._writers.update(mine)
    asked: list[Any] = []
    assert not lane.write_by(1, asked.append)
    assert asked == []
    assert lane.write(2, "c")
    theirs.close()
    assert lane.values() == ["a", "b", "c"]


def test_nothing_of_a_batch_that_failed_is_seen(lane: Lane) -> None:
    def half(transaction: Transaction) -> None:
        transaction.send(lane.topic, b"half")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        lane.write_by(0, half)
    assert lane.write(0, "whole")
    assert lane.values() == ["whole"]


def test_a_topic_that_is_not_there(lane: Lane) -> None:
    with pytest.raises(TopicMissing):
        write_once(
            lane.kafka,
            transactional_id=lane.group,
            group=lane.group,
            topic=f"{lane.topic}-other",
            batch=0,
            send=lambda _: None,
            timeout_s=4.0,
        )


def test_an_error_of_a_task_reaches_the_driver_as_itself() -> None:
    def raising(error: TureenError) -> Callable[[], bool]:
        def write() -> bool:
            raise error

        return write

    assert answer(outcome(lambda: True), "t") is True
    with pytest.raises(TopicMissing) as missing:
        answer(outcome(raising(TopicMissing("gone", hint="make it"))), "gone")
    assert (missing.value.topic, missing.value.hint) == ("gone", "make it")
    for error in (KafkaUnavailable("away", hint="wait"), TransactionAborted("rolled back"), TureenError("x")):
        with pytest.raises(type(error)) as caught:
            answer(outcome(raising(error)), "t")
        assert (caught.value.message, caught.value.hint) == (error.message, error.hint)

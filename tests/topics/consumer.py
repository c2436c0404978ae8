"""Data and helpers that ``consumer_test.py`` shares with other tests."""

from __future__ import annotations

from collections.abc import Callable

from tests.kafka import wait_until
from topics.consumer import BatchConsumer, Polled
from topics.producer import BatchProducer

START = {0: -1}


def settings(bootstrap: str) -> dict[str, str]:
    return {"bootstrap.servers": bootstrap}


def write(bootstrap: str, topic: str, values: list[bytes], partition: int = 0) -> None:
    producer = BatchProducer(settings(bootstrap))
    producer.send_many(topic, values, partitions=[partition] * len(values))
    producer.close()


def read_until(consumer: BatchConsumer, done: Callable[[list[Polled]], object]) -> list[Polled]:
    polled: list[Polled] = []

    def more() -> object:
        polled.extend(consumer.poll(8192, 0.05))
        return done(polled)

    wait_until(more)
    return polled


def values_of(polled: list[Polled]) -> list[bytes | None]:
    return [value for one in polled for value in one.values]

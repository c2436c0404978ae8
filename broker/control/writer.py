"""Writes what the control process tells: states, dead letters, and the changelogs of its tables.

Records are handed to librdkafka, which batches and sends them in threads of its own; :meth:`Writer.written`
returns when Kafka has all of them. What is away is waited for: a record that cannot be written at all
ends the process, and what it had not acknowledged comes again.

Cost: a few microseconds a record. One event loop, no locks: callbacks run where it polls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import faust
from confluent_kafka import Producer
from faust.types import TP

from tureen.errors import KafkaUnavailable

Headers = Sequence[tuple[str, bytes]]

POLL_S = 0.002
POLL_EVERY = 256


class Writer:
    """``send`` at any time, then ``written``. ends: the last offset written, by topic and partition."""

    def __init__(self, kafka: dict[str, str]) -> None:
        self._producer = Producer(
            {"log_level": "0"}
            | kafka
            | {
                "acks": "all",
                "enable.idempotence": "true",
                "partitioner": "murmur2_random",  # as Java's clients and Faust's
                "linger.ms": "5",
                "message.timeout.ms": "0",
                "message.max.bytes": str(2 << 20),
                "queue.buffering.max.messages": "1000000",
            }
        )
        self.ends: dict[tuple[str, int], int] = {}
        self._failure: Any = None
        self._sent = 0
        self._told = 0

    def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: Headers | None = None,
        partition: int | None = None,
    ) -> None:
        """Hand a record over. Records of one key stay in order."""
        options: dict[str, Any] = {} if partition is None else {"partition": partition}
        if headers:
            options["headers"] = list(headers)
        while True:
            try:
                self._producer.produce(topic, value, key, on_delivery=self._delivered, **options)
                break
            except BufferError:
                self._producer.poll(0.01)
        self._sent += 1
        if self._sent % POLL_EVERY == 0:
            self._producer.poll(0)

    def _delivered(self, error: Any, message: Any) -> None:
        self._told += 1
        if error is not None:
            self._failure = error
        else:
            self.ends[message.topic(), message.partition()] = message.offset()

    async def written(self) -> None:
        """Return once Kafka has everything sent so far. Raises KafkaUnavailable where it refuses a record."""
        wanted = self._sent
        while self._told < wanted:
            self._producer.poll(0)
            if self._told < wanted:
                await asyncio.sleep(POLL_S)
        if self._failure is not None:
            raise KafkaUnavailable(f"a record could not be written: {self._failure}")


class WrittenTable(faust.Table):
    """A table of bytes whose changelog goes by a :class:`Writer`; set ``writer`` before it is used.

    :meth:`settle`, when the writer has written, notes in the store how far the changelog is in it: a start
    reads the rest.
    """

    writer: Writer

    def on_key_set(self, key: bytes, value: bytes) -> None:
        self._tell(key, value)

    def on_key_del(self, key: bytes) -> None:
        self._tell(key, None)

    def _tell(self, key: bytes, value: bytes | None) -> None:
        topic = self.changelog_topic.get_topic_name()
        self.writer.send(topic, key, value, partition=self.partition_for_key(key))

    def settle(self) -> None:
        """Everything that was written is in the store."""
        topic = self.changelog_topic.get_topic_name()
        for (name, partition), offset in list(self.writer.ends.items()):
            if name == topic:
                self.data.set_persisted_offset(TP(topic, partition), offset)
                del self.writer.ends[name, partition]

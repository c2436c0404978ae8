"""Writes what the control process tells: states, dead letters, and the changelogs of its tables.

Records are handed to librdkafka, which batches and sends them in threads of its own; :meth:`Writer.written`
returns when Kafka has all of them. A Kafka that is away is waited for. A state or a dead letter that its
topic refuses is logged and passed over; another record that cannot be written ends the process, and what it
had not acknowledged comes again.

Cost: two microseconds a record. One event loop, no locks: errors are told where it polls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

import faust
from confluent_kafka import KafkaError, KafkaException, Message
from faust.stores import rocksdb
from faust.types import TP

from broker.base import logs
from broker.runtime.producing import producer
from topics.failures import REFUSED_BY_TOPIC, cause_of
from topics.letters import Headers
from tureen.errors import KafkaUnavailable

POLL_S = 0.002

log = logs.get()


class Writer:
    """``send`` at any time, then ``written``."""

    def __init__(self, kafka: dict[str, str], record_bytes_max: int, may_refuse: Collection[str]) -> None:
        """may_refuse: topics whose records are passed over, where the topic refuses them."""
        self._may_refuse = frozenset(may_refuse)
        self._failure: KafkaError | None = None
        self._producer = producer(
            kafka,
            record_bytes_max,
            {
                "linger.ms": "5",
                "message.timeout.ms": "0",
                "delivery.report.only.error": True,
                "on_delivery": self._refused,
            },
        )

    def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: Headers | None = None,
        partition: int | None = None,
    ) -> None:
        """Hand a record over. Records of one key stay in order. Blocks while 100,000 are on their way."""
        options: dict[str, Any] = {} if partition is None else {"partition": partition}
        if headers:
            options["headers"] = list(headers)
        while True:
            try:
                return self._producer.produce(topic, value, key, **options)
            except BufferError:
                self._producer.poll(0.01)
            except KafkaException as refused:
                return self._note(topic, cause_of(refused))

    def _refused(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._note(message.topic(), error)

    def _note(self, topic: str | None, error: KafkaError) -> None:
        if topic in self._may_refuse and error.code() in REFUSED_BY_TOPIC:
            log.error("record_lost", topic=topic, reason=error.str())
        else:
            self._failure = error

    async def written(self) -> None:
        """Return once Kafka has everything sent so far. Raises KafkaUnavailable where it refuses a record."""
        while True:
            self._producer.poll(0)
            if self._failure is not None:
                raise KafkaUnavailable(f"a record could not be written: {self._failure}")
            if not len(self._producer):
                return
            await asyncio.sleep(POLL_S)


class WrittenTable(faust.Table[bytes, bytes]):
    """A table of bytes whose changelog goes by a :class:`Writer`; set ``writer`` before it is used."""

    writer: Writer

    def on_key_set(self, key: bytes, value: bytes) -> None:
        self._tell(key, value)

    def on_key_del(self, key: bytes) -> None:
        self._tell(key, None)

    def _tell(self, key: bytes, value: bytes | None) -> None:
        self.writer.send(self.changelog, key, value, partition=self.partition_for_key(key))

    @property
    def changelog(self) -> str:
        """The changelog's topic."""
        return str(self.changelog_topic.get_topic_name())

    @property
    def store(self) -> rocksdb.Store:
        """Where its entries are."""
        store = self.data
        assert isinstance(store, rocksdb.Store)
        return store

    def settle(self, ends: Mapping[int, int]) -> None:
        """Note in the store how far the changelog is in it, so that a start reads the rest alone.

        ends: where it ended at some moment. What was written then is in the store: both happen in one turn
        of the event loop.
        """
        store = self.store
        for partition, end in ends.items():
            if end > 0 and partition in store._dbs:
                store.set_persisted_offset(TP(self.changelog, partition), end - 1)

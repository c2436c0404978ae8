"""The Kafka consumers of this process: how they are set, and what a reader asks of one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

from topics.settings import KafkaSettings

DEFAULTS: KafkaSettings = {
    "group.id": "tureen-reader",  # named because the client insists; nothing is ever committed to it
    # For each partition: what the records of another may have to wait for.
    "queued.min.messages": 30_000,
    "queued.max.messages.kbytes": 65_536,
    "fetch.max.bytes": 16 * 1024 * 1024,
    # Small enough that no partition waits for long behind the fetched records of another.
    "max.partition.fetch.bytes": 1024 * 1024,
    "fetch.wait.max.ms": 50,
    "fetch.queue.backoff.ms": 5,
    "fetch.error.backoff.ms": 100,
    "reconnect.backoff.max.ms": 1000,
    "topic.metadata.refresh.interval.ms": 5000,
    "log_level": 0,
}
FIXED: KafkaSettings = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
    "allow.auto.create.topics": False,
}
ASK_TIMEOUT_S = 0.5


class Client(Protocol):
    """What a reader reads with."""

    def assign(self, topic: str, offsets: Mapping[int, int]) -> None:
        """Read these partitions from these offsets on; a negative offset is the beginning."""

    def unassign(self, topic: str, numbers: Iterable[int]) -> None:
        """Read these partitions no more; what was fetched of them is dropped."""

    def consume(self, records_max: int, timeout_s: float) -> list[Any]:
        """Records and events, at once where there are any, else within ``timeout_s``."""

    def known_end(self, topic: str, number: int) -> int:
        """Where the log ended as of the last fetch; negative: not known."""

    def close(self) -> None:
        """Give the connections back."""


class LoneClient:
    """A consumer of one reader's own."""

    def __init__(self, settings: KafkaSettings, on_error: Callable[[Any], None]) -> None:
        """on_error: told what is wrong with all of Kafka."""
        self._consumer = Consumer({**DEFAULTS, **settings, **FIXED, "error_cb": on_error})

    def assign(self, topic: str, offsets: Mapping[int, int]) -> None:
        """As :meth:`Client.assign`."""
        self._consumer.incremental_assign(
            [TopicPartition(topic, number, offset_of(offset)) for number, offset in offsets.items()]
        )

    def unassign(self, topic: str, numbers: Iterable[int]) -> None:
        """As :meth:`Client.unassign`."""
        self._consumer.incremental_unassign([TopicPartition(topic, number) for number in numbers])

    def consume(self, records_max: int, timeout_s: float) -> list[Any]:
        """As :meth:`Client.consume`."""
        return consume(self._consumer, records_max, timeout_s)

    def known_end(self, topic: str, number: int) -> int:
        """As :meth:`Client.known_end`."""
        return known_end(self._consumer, topic, number)

    def ask_end(self, topic: str, number: int) -> int:
        """Where the log ends. Raises KafkaException where no answer comes soon."""
        _, end = self._consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=ASK_TIMEOUT_S)
        return int(end)

    def close(self) -> None:
        """As :meth:`Client.close`."""
        self._consumer.close()


def consume(
    consumer: Consumer, records_max: int, timeout_s: float, arriving_s: float = 0.0, rest_s: float = 0.0
) -> list[Any]:
    """What a consumer has, at once where it has any, else within ``timeout_s``. arriving_s: how long what
    comes with the first is waited for. rest_s: how long what comes next is waited for after that, if it was
    not there at once.
    """
    messages: list[Any] = consumer.consume(records_max, 0)
    if not messages:
        messages = consumer.consume(1, timeout_s)
        if messages and records_max > 1:
            messages += consumer.consume(records_max - 1, arriving_s)
            if rest_s > 0 and len(messages) < records_max:
                following: list[Any] = consumer.consume(1, rest_s)
                if following and len(messages) + 1 < records_max:
                    following += consumer.consume(records_max - len(messages) - 1, arriving_s)
                messages += following
    return messages


def known_end(consumer: Consumer, topic: str, number: int) -> int:
    """Where a log ended as of the last fetch; negative: not known."""
    try:
        _, high = consumer.get_watermark_offsets(TopicPartition(topic, number), cached=True)
    except (KafkaException, RuntimeError):  # nothing of it was fetched; or the consumer is closed
        return -1
    return int(high)


def offset_of(offset: int) -> int:
    """As the client has it: a negative offset is the beginning."""
    return OFFSET_BEGINNING if offset < 0 else offset

"""The streams that were declared to the broker, read from its topic of sources."""

from __future__ import annotations

import time
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaException, TopicPartition

from engine.language.query import CreateStream
from engine.language.statements import parse
from engine.limits import Limits
from engine.model.source import Stream
from topics.admin import Admin
from topics.control_records import source
from topics.failures import as_ours, cause_of
from tureen.errors import KafkaUnavailable, TopicMissing, TureenError
from tureen.protocol import TopicNames

TIMEOUT_S = 30.0
AT_ONCE = 1_000


class Statements:
    """What stands on ``<service>.sources``; each :meth:`refresh` reads what has come since the last."""

    def __init__(self, kafka: Mapping[str, str], service_id: str) -> None:
        self._topic = TopicNames(service_id).sources
        self._admin = Admin(kafka)
        self._consumer = Consumer(
            {
                **kafka,
                "group.id": "tureen-archive",  # the client insists; nothing is ever committed to it
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "allow.auto.create.topics": False,
                "log_level": 0,
                "error_cb": lambda _: None,
            }
        )
        self._next: dict[int, int] = {}
        self._texts: dict[str, str] = {}

    def refresh(self) -> dict[str, Stream]:
        """Every stream and table that reads a topic, by name, as of now.

        Raises KafkaUnavailable, TopicMissing.
        """
        try:
            ends = self._admin.end_offsets(self._topic)
        except TopicMissing as missing:
            raise TopicMissing(
                missing.topic, hint="the broker makes it, or the first stream; is --service-id the broker's?"
            ) from None
        if any(end > self._next.get(number, 0) for number, end in ends.items()):
            self._read(ends)
        return {name: stream for name, text in self._texts.items() if (stream := _stream(text)) is not None}

    def close(self) -> None:
        self._consumer.close()

    def _read(self, ends: Mapping[int, int]) -> None:
        start = [TopicPartition(self._topic, number, self._next.get(number, 0)) for number in ends]
        deadline = time.monotonic() + TIMEOUT_S
        try:
            self._consumer.assign(start)
            while any(self._next.get(number, 0) < end for number, end in ends.items()):
                if time.monotonic() > deadline:
                    raise KafkaUnavailable(f"{self._topic} was not read to its end in {TIMEOUT_S:g} s")
                for message in self._consumer.consume(AT_ONCE, 0.2):
                    error = message.error()
                    partition, offset = int(message.partition() or 0), int(message.offset() or 0)
                    if error is None:
                        self._note(message.key(), message.value())
                        self._next[partition] = offset + 1
                    elif error.code() == error._PARTITION_EOF:
                        self._next[partition] = max(offset, self._next.get(partition, 0))
            self._consumer.unassign()
        except KafkaException as error:
            cause_of(error)
            raise as_ours(error, f"reading {self._topic}", self._topic) from error

    def _note(self, key: bytes | None, value: bytes | None) -> None:
        try:
            command = source(key, value, Limits().sql_bytes_max)
        except TureenError:
            return  # the broker refuses it as well, and says so on its status topic
        if command["kind"] == "drop":
            self._texts.pop(command["name"], None)
        else:
            self._texts[command["name"]] = command["sql"]


def _stream(sql: str) -> Stream | None:
    """The stream that a statement declares; None of a view, or of what the broker refuses."""
    try:
        statement = parse(sql, {}, Limits())
    except TureenError:
        return None
    return statement.stream if isinstance(statement, CreateStream) else None

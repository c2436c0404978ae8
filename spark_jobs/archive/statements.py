"""The streams that were declared to the broker, read from its topic of sources."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing

from engine.language.query import CreateStream
from engine.language.statements import parse
from engine.model.limits import Limits
from engine.model.source import Stream
from topics.admin import Admin
from topics.consumer import BatchConsumer
from topics.control_records import source
from topics.settings import KafkaSettings
from tureen.errors import TopicMissing, TureenError
from tureen.protocol import TopicNames

TIMEOUT_S = 30.0


class Statements:
    """What stands on ``<service>.sources``; :meth:`refresh` reads the topic where something has come.

    Every statement counts in the order in which it was made, and the topic is compacted, so it is read whole.
    O(statements).
    """

    def __init__(self, kafka: KafkaSettings, service_id: str) -> None:
        self._topic = TopicNames(service_id).sources
        self._kafka = kafka
        self._admin = Admin(kafka)
        self._ends: Mapping[int, int] = {}
        self._texts: dict[str, str] = {}

    def refresh(self) -> dict[str, Stream]:
        """Every stream and table that reads a topic, by name, as of now.

        Raises KafkaUnavailable, TopicMissing.
        """
        try:
            ends = self._admin.end_offsets(self._topic)
            if ends != self._ends:
                self._texts = self._read(ends)
                self._ends = ends
        except TopicMissing as missing:
            raise TopicMissing(
                missing.topic,
                hint="the broker creates it, or the first stream; is --service-id the broker's?",
            ) from None
        return {name: stream for name, text in self._texts.items() if (stream := _stream(text)) is not None}

    def _read(self, ends: Mapping[int, int]) -> dict[str, str]:
        """The statements that stand before these ends, by name."""
        texts: dict[str, str] = {}
        with closing(BatchConsumer(self._kafka)) as consumer:
            consumer.add(self._topic, dict.fromkeys(ends, -1), append_times=False)
            for polled in consumer.until(lambda: consumer.has_read({self._topic: ends}), TIMEOUT_S):
                for message in polled.messages:
                    _note(texts, message.key(), message.value())
        return texts


def _note(texts: dict[str, str], key: bytes | None, value: bytes | None) -> None:
    try:
        command = source(key, value, Limits().sql_bytes_max)
    except TureenError:
        return  # the broker refuses it as well, and says so on its status topic
    if command["kind"] == "drop":
        texts.pop(command["name"], None)
    else:
        texts[command["name"]] = command["sql"]


def _stream(sql: str) -> Stream | None:
    """The stream that a statement declares; None of a view, or of what the broker refuses."""
    try:
        statement = parse(sql, {}, Limits())
    except TureenError:
        return None
    return statement.stream if isinstance(statement, CreateStream) else None

"""What the driver tells: states of queries on ``.status``, records that are none, and lines for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from confluent_kafka import Message

from engine.model.source import SourceName
from spark_jobs.scale_out.registry import Changes, RegistryEntry, as_record
from topics.letters import forwarded
from topics.producer import BatchProducer
from tureen.errors import TureenError
from tureen.protocol import TopicNames


class Notices:
    """Written by the driver's thread alone."""

    def __init__(self, kafka: Mapping[str, str], names: TopicNames, say: Callable[[str], None]) -> None:
        """say: is told what becomes of queries and streams, for people."""
        self._producer = BatchProducer(dict(kafka))
        self._names = names
        self._say = say
        self._told_lost: dict[SourceName, str] = {}
        """Streams that were told to be lost, and by which code."""

    def close(self) -> None:
        """Nothing more is told."""
        self._producer.close()

    def letter(self, message: Message, refused: TureenError) -> None:
        """Write a record that is none to the topic for such, with why."""
        value, key, headers = forwarded(message, f"{refused.code}: {refused.message}")
        self._producer.send(self._names.dead_letters, value, key, headers=headers)

    def tell(
        self,
        changes: Changes,
        entries: Mapping[str, RegistryEntry],
        lost: Mapping[SourceName, TureenError],
        position: str | None,
    ) -> None:
        """Write what became of queries, those in changes and those that read a stream which was lost now.

        entries: what is registered. lost: streams that are read no more, and why. position: of the last step
        that was done; None: nothing was. Raises KafkaUnavailable.
        """
        for line in changes.lines():
            self._say(line)
        for name, error in lost.items():
            if self._told_lost.get(name) != error.code:
                self._say(f"stream {name} is read no more: {error}")
                for query_id, reader in entries.items():
                    if reader.reads(name):
                        changes.told.setdefault(query_id, reader)
        self._told_lost = {name: error.code for name, error in lost.items()}
        for query_id, entry in changes.told.items():
            key, value = as_record(query_id, entry, position, lost)
            self._producer.send(self._names.status, value, key)
        self._producer.flush()

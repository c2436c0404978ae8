"""The topics in which a registry stands, ``.sources`` and ``.queries``, read by the driver of a scale-out.

Both are compacted: whoever begins reads them whole. Between two readings the newest record of each key
counts. A record that is none is a letter; one whose statement is refused later is found again for that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Message

from topics import control_records
from topics.admin import Admin
from topics.consumer import BatchConsumer
from topics.control_records import Command
from tureen.errors import TureenError
from tureen.protocol import TopicNames

READ_S = 30.0


@dataclass(frozen=True, slots=True)
class NewCommands:
    """What came since the last reading, by name, the newest of each."""

    sources: dict[str, Command]
    queries: dict[str, Command]
    dropped: frozenset[str]
    """Streams and views that were dropped before that."""


class RegistryTopics:
    """Read by the driver's thread alone."""

    def __init__(
        self,
        kafka: Mapping[str, str],
        admin: Admin,
        names: TopicNames,
        sql_bytes_max: int,
        letter: Callable[[Any, TureenError], None],
    ) -> None:
        """letter: takes a record that is none, and why. Raises KafkaUnavailable, TopicMissing."""
        self._admin = admin
        self._names = names
        self._sql_bytes_max = sql_bytes_max
        self._letter = letter
        self.consumer = BatchConsumer(dict(kafka))
        for topic in (names.sources, names.queries):
            offsets = dict.fromkeys(range(admin.partitions(topic)), -1)
            self.consumer.add(topic, offsets, append_times=False)
        self._messages: dict[str, Message] = {}
        """The newest of each source, by its name."""

    def close(self) -> None:
        """Nothing more is read."""
        self.consumer.close()

    def read(self) -> NewCommands:
        """Read both topics up to their ends. Raises KafkaUnavailable."""
        ends = {topic: self._admin.end_offsets(topic) for topic in (self._names.sources, self._names.queries)}
        found: dict[str, dict[str, Command]] = {topic: {} for topic in ends}
        dropped = set()
        for one in self.consumer.until(lambda: self.consumer.has_read(ends), READ_S):
            for message in one.messages:
                command = self._command(one.topic, message)
                if command is not None:
                    earlier = found[one.topic].pop(command["name"], None)
                    if earlier is not None and earlier["kind"] == "drop":
                        dropped.add(command["name"])
                    found[one.topic][command["name"]] = command
        return NewCommands(found[self._names.sources], found[self._names.queries], frozenset(dropped))

    def refuse(self, name: str, refused: TureenError) -> None:
        """The newest statement of a source cannot stand: its record is a letter."""
        self._letter(self._messages[name], refused)

    def _command(self, topic: str, message: Message) -> Command | None:
        try:
            if topic == self._names.sources:
                command = control_records.source(message.key(), message.value(), self._sql_bytes_max)
                self._messages[command["name"]] = message
                return command
            name = control_records.query_id_of(message.key())
        except TureenError as refused:
            self._letter(message, refused)
            return None
        try:
            return control_records.registration(name, message.value(), self._sql_bytes_max)
        except TureenError as refused:
            self._letter(message, refused)
            return {"kind": "refuse", "name": name, "error": refused.as_dict()}

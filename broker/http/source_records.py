"""GET /sources/{name}/records: what is in the topic of a source, and which records gave no row, and why.

Rows of data: for the operator alone. Kafka is read in another thread, a few readers at a time, no further
back than a bound on bytes allows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Literal

from broker.base.settings import Settings
from broker.http.errors import BadRequest
from broker.node.node import Node
from engine.model.source import Stream
from topics.keyed import decode_messages
from topics.newest import facts_of, look
from topics.shown import Refusal, headers_of, refusal_of, text_of
from tureen.errors import UnknownSource

Which = Literal["newest", "late", "dead_letters"]
LIMIT_MAX = 100
SHOWN_BYTES_MAX = 4_096
"""Most bytes that are shown of a key, and of a value."""
HELD_BYTES_MAX = 8 * 1024 * 1024
SCANNED_MAX = 20_000
WAIT_S = 5.0
READERS_MAX = 2


class SourceRecords:
    """Reads topics for those who look."""

    def __init__(self, settings: Settings, node: Node) -> None:
        self._settings = settings
        self._node = node
        self._readers = asyncio.Semaphore(READERS_MAX)

    async def shown(self, name: str, which: Which, limit: int) -> dict[str, Any]:
        """The newest records, the newest first. Raises UnknownSource, BadRequest, KafkaUnavailable,
        TopicMissing.
        """
        entry = self._node.directory.sources.get(name)
        if entry is None:
            if name in self._node.directory.views or name in self._node.directory.waiting:
                raise BadRequest(f"{name} is a view and has no records", hint="ask for what it reads")
            raise UnknownSource(name, hint="GET /sources lists those there are")
        async with self._readers:
            return await asyncio.to_thread(self._read, entry.stream, which, limit)

    def _read(self, stream: Stream, which: Which, limit: int) -> dict[str, Any]:
        names = self._settings.names
        letters = {"late": names.late, "dead_letters": names.dead_letters}
        topic = letters.get(which, stream.topic)
        looked = look(
            self._node.setup.kafka,
            topic,
            facts_of(self._node.setup.admin, topic),
            limit,
            wanted=(lambda _: True) if which == "newest" else (lambda one: _came_from(one, stream.topic)),
            scanned_max=SCANNED_MAX,
            timeout_s=WAIT_S,
            bytes_max=HELD_BYTES_MAX,
        )
        found = _newest(stream, looked.messages) if which == "newest" else [*map(_letter, looked.messages)]
        return {
            "source": stream.name,
            "which": which,
            "topic": stream.topic,
            "records": found[::-1],
            "scanned": looked.scanned,
            "whole": looked.whole,
        }


def _came_from(message: Any, topic: str) -> bool:
    return refusal_of(headers_of(message)).topic == topic


def _newest(stream: Stream, messages: Sequence[Any]) -> list[dict[str, Any]]:
    """Each with the reason why it gives no row, if it gives none, and the instant of a heartbeat."""
    decoded = decode_messages(
        stream,
        messages,
        [one.value() for one in messages],
        [one.partition() for one in messages],
        [one.offset() for one in messages],
        [one.timestamp()[1] for one in messages],
    )
    reasons = {one.place: one.reason for one in decoded.bad}
    return [
        _record(one, Refusal(stream.topic, one.partition(), one.offset(), reasons.get(place), None))
        | {"heartbeat_ms": decoded.heartbeats.get(place)}
        for place, one in enumerate(messages)
    ]


def _letter(message: Any) -> dict[str, Any]:
    return _record(message, refusal_of(headers_of(message))) | {"heartbeat_ms": None}


def _record(message: Any, place: Refusal) -> dict[str, Any]:
    """place: where the record is in the topic of its source."""
    key, value = text_of(message.key(), SHOWN_BYTES_MAX), text_of(message.value(), SHOWN_BYTES_MAX)
    return {
        "partition": place.partition,
        "offset": place.offset,
        "timestamp_ms": message.timestamp()[1],
        "key": None if key is None else key.as_dict(),
        "value": None if value is None else value.as_dict(),
        "reason": place.reason,
        "cut_bytes": place.cut_bytes,
    }

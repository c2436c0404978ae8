"""The newest records of a topic, for people to look at: what is in a topic, and why records were refused.

Nothing is committed and no group is joined. Cost: O(records read), which are so many of each partition as are
asked for; where only some are wanted, further back in growing parts, up to :data:`SCANNED_MAX`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from topics.admin import Admin
from topics.consumer import BatchConsumer
from topics.settings import KafkaSettings

SCANNED_MAX = 100_000
TIMEOUT_S = 10.0
_FETCH: KafkaSettings = {"queued.min.messages": 1_000, "queued.max.messages.kbytes": 16_384}


@dataclass(frozen=True, slots=True)
class TopicExtent:
    """A topic as it is: the offsets of its partitions. records: at most so many; markers and gaps count."""

    begin: Mapping[int, int]
    end: Mapping[int, int]

    @property
    def partitions(self) -> int:
        return len(self.end)

    @property
    def records(self) -> int:
        return sum(end - self.begin.get(number, 0) for number, end in self.end.items())


def facts_of(admin: Admin, topic: str) -> TopicExtent:
    """Raises TopicMissing, KafkaUnavailable."""
    return TopicExtent(admin.begin_offsets(topic), admin.end_offsets(topic))


def newest(
    settings: KafkaSettings,
    topic: str,
    facts: TopicExtent,
    count: int,
    *,
    wanted: Callable[[Any], bool] = lambda _: True,
    scanned_max: int = SCANNED_MAX,
    timeout_s: float = TIMEOUT_S,
) -> list[Any]:
    """Messages of a topic, the newest ``count`` wanted, by (timestamp, partition, offset).

    They are as of ``facts``. Where fewer than ``count`` of ``scanned_max`` are wanted, it gives those.
    Raises KafkaUnavailable when nothing comes for ``timeout_s``, TopicMissing.
    """
    looked = look(settings, topic, facts, count, wanted=wanted, scanned_max=scanned_max, timeout_s=timeout_s)
    return looked.messages


@dataclass(frozen=True, slots=True)
class Looked:
    """The newest messages that were wanted, oldest first. scanned: how many were read for them. whole:
    whether those were all that the topic has, so that there are no others.
    """

    messages: list[Any]
    scanned: int
    whole: bool


def look(
    settings: KafkaSettings,
    topic: str,
    facts: TopicExtent,
    count: int,
    *,
    wanted: Callable[[Any], bool] = lambda _: True,
    scanned_max: int = SCANNED_MAX,
    timeout_s: float = TIMEOUT_S,
    bytes_max: int | None = None,
) -> Looked:
    """As :func:`newest`, and how far it looked. bytes_max: of the keys and values that are held at a time,
    the newest of those wanted, and of those read in one pass; it looks back no further than that many allow.
    Raises as :func:`newest`.
    """
    part = max(1, -(-count // max(1, facts.partitions)))
    while True:
        first = {n: max(facts.begin.get(n, 0), end - part) for n, end in facts.end.items()}
        kept = _Kept(count, bytes_max)
        for one in _between(settings, topic, first, facts.end, timeout_s):
            kept.read(one, wanted(one))
        whole = all(at <= facts.begin.get(number, 0) for number, at in first.items())
        enough = part * facts.partitions >= scanned_max
        further = 8 if bytes_max is None else min(8, bytes_max // max(1, kept.bytes_read))
        if len(kept.messages) >= count or whole or enough or further < 2:
            return Looked(kept.newest(), kept.scanned, whole and not kept.dropped)
        part = min(part * further, -(-scanned_max // facts.partitions))


class _Kept:
    """The newest of the messages that are wanted, of bounded size."""

    def __init__(self, count: int, bytes_max: int | None) -> None:
        self.messages: list[Any] = []
        self.scanned = 0
        self.bytes_read = 0
        self.dropped = False
        self._count = count
        self._bytes_max = bytes_max
        self._bytes = 0

    def read(self, message: Any, wanted: bool) -> None:
        size = _size(message)
        self.scanned += 1
        self.bytes_read += size
        if not wanted:
            return
        self.messages.append(message)
        self._bytes += size
        over = self._bytes_max is not None and self._bytes > self._bytes_max
        if over or len(self.messages) >= 2 * self._count + 1_000:
            self._shrink()

    def newest(self) -> list[Any]:
        self.messages.sort(key=_order)
        return self.messages[-self._count :]

    def _shrink(self) -> None:
        held = self.newest()
        size = sum(map(_size, held))
        while self._bytes_max is not None and size > self._bytes_max and len(held) > 1:
            size -= _size(held.pop(0))
            self.dropped = True
        self.messages, self._bytes = held, size


def _order(message: Any) -> tuple[int, int, int]:
    return message.timestamp()[1], message.partition(), message.offset()


def _size(message: Any) -> int:
    return len(message.key() or b"") + len(message.value() or b"")


def _between(
    settings: KafkaSettings,
    topic: str,
    first: Mapping[int, int],
    end: Mapping[int, int],
    timeout_s: float,
) -> Iterator[Any]:
    wanted = {number: at for number, at in first.items() if at < end[number]}
    if not wanted:
        return
    consumer = BatchConsumer({**_FETCH, **settings})
    try:
        consumer.add(topic, wanted)
        ends = {topic: {number: end[number] for number in wanted}}
        for polled in consumer.until(lambda: consumer.has_read(ends), timeout_s):
            yield from (one for one in polled.messages if one.offset() < end[one.partition()])
    finally:
        consumer.close()

"""The newest records of a topic, for people to look at: what is in a topic, and why records were refused.

Nothing is committed and no group is joined. Cost: O(records read), which are so many of each partition as are
asked for; where only some are wanted, further back in growing parts, up to :data:`SCANNED_MAX`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from topics.admin import Admin
from topics.consumer import BatchConsumer
from topics.settings import KafkaSettings

SCANNED_MAX = 100_000
TIMEOUT_S = 10.0
_FETCH: KafkaSettings = {"queued.min.messages": 1_000, "queued.max.messages.kbytes": 16_384}


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """A topic as it is: the offsets of its partitions. records: at most so many; markers and gaps count."""

    begin: Mapping[int, int]
    end: Mapping[int, int]

    @property
    def partitions(self) -> int:
        return len(self.end)

    @property
    def records(self) -> int:
        return sum(end - self.begin.get(number, 0) for number, end in self.end.items())


def facts_of(admin: Admin, topic: str) -> TopicFacts:
    """Raises TopicMissing, KafkaUnavailable."""
    return TopicFacts(admin.begin_offsets(topic), admin.end_offsets(topic))


def newest(
    settings: KafkaSettings,
    topic: str,
    facts: TopicFacts,
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
    part = max(1, -(-count // max(1, facts.partitions)))
    while True:
        first = {n: max(facts.begin.get(n, 0), end - part) for n, end in facts.end.items()}
        found = [one for one in _between(settings, topic, first, facts.end, timeout_s) if wanted(one)]
        whole = all(at <= facts.begin.get(number, 0) for number, at in first.items())
        if len(found) >= count or whole or part * facts.partitions >= scanned_max:
            found.sort(key=lambda one: (one.timestamp()[1], one.partition(), one.offset()))
            return found[-count:]
        part = min(part * 8, -(-scanned_max // facts.partitions))


def _between(
    settings: KafkaSettings,
    topic: str,
    first: Mapping[int, int],
    end: Mapping[int, int],
    timeout_s: float,
) -> list[Any]:
    wanted = {number: at for number, at in first.items() if at < end[number]}
    if not wanted:
        return []
    consumer = BatchConsumer({**_FETCH, **settings})
    try:
        consumer.add(topic, wanted)
        ends = {topic: {number: end[number] for number in wanted}}
        found: list[Any] = []
        for polled in consumer.until(lambda: consumer.has_read(ends), timeout_s):
            found += [one for one in polled.messages if one.offset() < end[one.partition()]]
        return found
    finally:
        consumer.close()

"""Which journalled step took a record: a search of the newest steps of a shard, for people.

Cost: O(steps read), some microseconds each, at most :data:`STEPS_SCANNED`, the newest first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from engine.model.source import SourceName
from engine.model.step import Position
from topics.newest import TopicExtent, newest
from topics.settings import KafkaSettings

STEPS_SCANNED = 50_000


def step_of(
    settings: KafkaSettings,
    topic: str,
    facts: TopicExtent,
    shard: int,
    source: SourceName,
    partition: int,
    offset: int,
) -> Position | None:
    """The step that took a record of a source, of a shard's journal; None: it is not among the newest.

    facts: of the topic of steps. Raises KafkaUnavailable, TopicMissing.
    """
    own = TopicExtent({shard: facts.begin.get(shard, 0)}, {shard: facts.end.get(shard, 0)})
    name = orjson.dumps(source)

    def took(message: Any) -> bool:
        value = message.value()
        return value is not None and name in value and _took(orjson.loads(value), source, partition, offset)

    found = newest(settings, topic, own, 1, wanted=took, scanned_max=STEPS_SCANNED)
    return Position.parse(found[-1].key().decode("ascii")) if found else None


def _took(facts: Mapping[str, Any], source: str, partition: int, offset: int) -> bool:
    if facts.get("kind") != "records" or facts.get("source") != source:
        return False
    ranges = [(number, first, last + 1) for number, first, last, _ in facts["ranges"]]
    ranges += [tuple(each) for each in facts.get("shed", {}).get("ranges", ())]
    return any(number == partition and first <= offset < until for number, first, until in ranges)

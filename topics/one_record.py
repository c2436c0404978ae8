"""One record of a topic, by its partition and offset, for people to look at.

Nothing is committed and no group is joined. Cost: one fetch of some tens of kB, or of the record where it is
larger.
"""

from __future__ import annotations

from topics.consumer import BatchConsumer, Polled
from topics.settings import KafkaSettings

TIMEOUT_S = 10.0
_FETCH: KafkaSettings = {"queued.min.messages": 1, "max.partition.fetch.bytes": 65_536}


def record_at(
    settings: KafkaSettings, topic: str, partition: int, offset: int, *, timeout_s: float = TIMEOUT_S
) -> Polled | None:
    """The record there; None: the log has none at this offset, which compaction took, or which is a marker or
    of an aborted transaction.

    Raises OffsetLost: the log begins behind it or has not come to it; KafkaUnavailable when nothing comes for
    ``timeout_s``; TopicMissing.
    """
    consumer = BatchConsumer({**settings, **_FETCH})
    try:
        consumer.add(topic, {partition: offset})
        ends: dict[str, dict[int, int]] = {topic: {partition: offset + 1}}
        for polled in consumer.until(lambda: consumer.has_read(ends), timeout_s, records_max=1):
            found = _only(polled, offset)
            if found is not None or (len(polled) and int(polled.offset[0]) > offset):
                return found
        return None
    finally:
        consumer.close()


def _only(polled: Polled, offset: int) -> Polled | None:
    places = [place for place, at in enumerate(polled.offset.tolist()) if at == offset]
    if not places:
        return None
    (place,) = places
    part = slice(place, place + 1)
    return Polled(
        polled.topic,
        polled.values[part],
        polled.partition[part],
        polled.offset[part],
        polled.append_ms[part],
        polled.messages[part],
        {},
        frozenset(),
    )

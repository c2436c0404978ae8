"""Reading a shard's journal: its steps past a position, its last one, and the records that steps name.

Sequence numbers ascend with offsets, so that a place in a long journal is found by halving.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from engine.model.batch import Batch
from engine.model.source import Stream
from engine.model.step import Position
from topics.admin import Admin
from topics.consumer import BatchConsumer, OffsetLost, Range
from topics.formats.table import named_schemas
from topics.journal import JournalUnreadable, RecordsNamed, StepRecord, decode_step
from topics.keyed import decode_messages
from topics.settings import KafkaSettings
from tureen.errors import KafkaUnavailable

READ_TIMEOUT_S = 30.0
SCANNED_STEPS = 20_000
"""Steps that are read through rather than searched."""
TAIL_OFFSETS = 64
"""Offsets from the end where the last step is looked for first; markers of transactions are among them."""


def read_steps(
    settings: KafkaSettings,
    topic: str,
    shard: int,
    after: Position,
    *,
    timeout_s: float = READ_TIMEOUT_S,
) -> Iterator[StepRecord]:
    """The shard's steps past a position, in order, to the end of its partition as it is now.

    Fence the shard's other writers first: then the end is the end. Raises JournalUnreadable when the next
    step is not the one that follows (it was deleted by retention), KafkaUnavailable, TopicMissing.
    """
    expected = after.sequence + 1
    for message in _to_end(settings, topic, shard, timeout_s, before=expected):
        key = message.key()
        if key is not None and Position.parse(key.decode("ascii")).sequence < expected:
            continue
        record = decode_step(message.value())
        if record.position.sequence != expected:
            raise JournalUnreadable(
                f"after step {expected - 1} of shard {shard} comes step {record.position.sequence}",
                hint=f"topic {topic} must be kept as long as the store may lag behind; "
                "empty the store to start again",
            )
        expected += 1
        yield record


def last_record(
    settings: KafkaSettings, topic: str, shard: int, *, timeout_s: float = READ_TIMEOUT_S
) -> StepRecord | None:
    """The shard's last committed step, None where there is none. Cost: some fetches.

    Raises JournalUnreadable, KafkaUnavailable, TopicMissing.
    """
    admin = Admin(settings, timeout_s)
    begin, end = admin.begin_offsets(topic)[shard], admin.end_offsets(topic)[shard]
    back, start = TAIL_OFFSETS, end
    while start > begin:
        start = max(begin, end - back)
        back *= 16
        last = None
        consumer = BatchConsumer(settings)
        try:
            consumer.add(topic, {shard: start}, append_times=False)
            for polled in consumer.until(lambda: consumer.has_read({topic: {shard: end}}), timeout_s):  # noqa: B023
                last = polled.messages[-1] if polled.messages else last
        finally:
            consumer.close()
        if last is not None:
            return decode_step(last.value())
    return None


def _to_end(
    settings: KafkaSettings, topic: str, partition: int, timeout_s: float, before: int
) -> Iterator[Any]:
    """The partition's records from a place on where sequences are still lower than ``before``."""
    start = _place_before(settings, topic, partition, timeout_s, before)
    consumer = BatchConsumer(settings)
    try:
        consumer.add(topic, {partition: start}, append_times=False)
        for polled in consumer.until(lambda: not consumer.lagging(topic), timeout_s):
            yield from polled.messages
    finally:
        consumer.close()


def _place_before(
    settings: KafkaSettings, topic: str, partition: int, timeout_s: float, sequence: int
) -> int:
    """An offset, not far, before the step with that sequence number; -1: the beginning.

    Sequence numbers ascend with offsets, so it is found by halving: O(log steps) fetches.
    """
    admin = Admin(settings, timeout_s)
    low, high = admin.begin_offsets(topic)[partition], admin.end_offsets(topic)[partition]
    start = -1
    if high - low <= SCANNED_STEPS:
        return start
    consumer = BatchConsumer({**settings, "queued.min.messages": 1, "max.partition.fetch.bytes": 16_384})
    try:
        while high - low > SCANNED_STEPS:
            middle = (low + high) // 2
            consumer.add(topic, {partition: middle}, append_times=False)
            found = _first(consumer, topic, timeout_s)
            if found is None or decode_step(found.value()).position.sequence >= sequence:
                high = middle
            else:
                low = start = middle
    finally:
        consumer.close()
    return start


def _first(consumer: BatchConsumer, topic: str, timeout_s: float) -> Any:
    """The next record, None at the end of the log."""
    for polled in consumer.until(lambda: not consumer.lagging(topic), timeout_s, records_max=1):
        if len(polled):
            return polled.messages[0]
    return None


class RangeReader:
    """Fetches the records that steps named, again, in the order named.

    Keep one for all steps of a replay: consecutive ranges are read on without a seek.
    """

    def __init__(self, settings: KafkaSettings, *, timeout_s: float = READ_TIMEOUT_S) -> None:
        self._settings = settings
        self._timeout_s = timeout_s
        self._readers: dict[tuple[str, int], _PartitionReader] = {}

    def read(self, stream: Stream, named: RecordsNamed) -> Batch:
        """The batch of a step, row for row as it was; of a table what is left of it.

        Raises OffsetLost when records of a stream are gone, RegistryUnavailable.
        """
        found: list[Any] = []
        for one in named.ranges:
            place = (stream.topic, one.partition)
            reader = self._readers.get(place)
            if reader is None:
                reader = self._readers[place] = _PartitionReader(self._settings, *place, self._timeout_s)
            found += reader.read(one, compacted=stream.is_table)
        if named.unknown_schemas:  # what these records hold was not known, whatever it is now
            unknown = named.unknown_schemas
            found = [m for m in found if not named_schemas(stream, [m.value()], [m]) & unknown]
        return decode_messages(
            stream,
            found,
            [m.value() for m in found],
            [m.partition() for m in found],
            [m.offset() for m in found],
            [m.timestamp()[1] for m in found],
            exact=named.exact,
        ).batch

    def close(self) -> None:
        for reader in self._readers.values():
            reader.close()
        self._readers.clear()


class _PartitionReader:
    """One partition, read on from where the last range ended."""

    def __init__(self, settings: KafkaSettings, topic: str, partition: int, timeout_s: float) -> None:
        self._consumer = BatchConsumer({**settings, "queued.max.messages.kbytes": 8192})
        self._topic = topic
        self._partition = partition
        self._timeout_s = timeout_s
        self._ahead: list[Any] = []
        self._next = -1

    def read(self, wanted: Range, *, compacted: bool) -> list[Any]:
        if wanted.first < self._next or self._next < 0:
            self._ahead = []
            self._consumer.add(self._topic, {self._partition: wanted.first})
        found: list[Any] = []
        deadline = time.monotonic() + self._timeout_s
        while True:
            found += self._ahead
            self._ahead = []
            if found and found[-1].offset() >= wanted.last:
                break
            if self._consumer.next_offsets(self._topic).get(self._partition, -1) > wanted.last:
                break
            for polled in self._consumer.poll(max(1, wanted.count - len(found)), 0.2):
                self._ahead = polled.messages
                deadline = time.monotonic() + self._timeout_s
            if time.monotonic() > deadline:
                raise KafkaUnavailable(
                    f"no records arrive from topic {self._topic}", hint="is Kafka running?"
                )
        self._ahead = [m for m in found if m.offset() > wanted.last]
        found = [m for m in found if wanted.first <= m.offset() <= wanted.last]
        self._next = wanted.last + 1
        if len(found) != wanted.count and not compacted:
            raise OffsetLost(
                self._topic,
                self._partition,
                wanted.first,
                hint=f"{wanted.count - len(found):,} records that were applied are gone: the topic must be "
                "kept (and not compacted) for as long as the store may lag behind",
            )
        return found

    def close(self) -> None:
        self._consumer.close()

"""One stream's records on their way into steps.

Reads the partitions of one topic from explicit offsets. Rows of a step come by partition, then offset:
lateness is decided in that order, and a replay of the offset ranges finds the same.

A topic that is deleted, or created anew under the same name, ends the intake, not the shard: ``error`` says
what happened and what to do, what was read stays answered.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from broker.worker.beginnings import Beginnings
from engine.model.source import Stream
from engine.model.step import Records
from topics.admin import Admin
from topics.consumer import BatchConsumer, Polled, Range
from topics.keyed import decode_messages
from tureen.errors import TopicMissing, TopicRecreated

SINGLE_PARTITION = {"fetch.wait.max.ms": "200"}
"""Kafka answers as soon as there are records; nothing else waits behind the fetch of a single partition."""


def topic_deleted(stream: Stream) -> TopicMissing:
    """The error of a stream or a table whose topic is gone."""
    return TopicMissing(
        stream.topic,
        hint="the rows read before are still answered; create the topic again, then DROP "
        f"{stream.kind.upper()} {stream.name} and create it again",
    )


def topic_recreated(stream: Stream) -> TopicRecreated:
    """The error of a stream or a table whose topic is another one of the same name."""
    return TopicRecreated(
        stream.topic,
        hint=f"DROP {stream.kind.upper()} {stream.name} and create it again to read the new topic; until "
        "then the rows read before are answered",
    )


@dataclass(frozen=True, slots=True)
class Taken:
    """Records of one poll: the rows, what gave none, and what each row was before.

    messages: the records as they were read. rows: for each row of the body its place among them.
    bad: (place among the messages, reason). size: bytes. ranges: for the journal.
    """

    body: Records
    messages: list[Any]
    rows: np.ndarray[Any, Any]
    bad: list[tuple[int, str]]
    size: int
    ranges: tuple[Range, ...]


class Intake:
    """Reads one stream. Used by the shard's thread alone."""

    def __init__(
        self,
        stream: Stream,
        kafka: dict[str, str],
        admin: Admin,
        offsets: Mapping[int, int],
        first_record_wait_ms: int,
    ) -> None:
        """first_record_wait_ms: how long a partition that never had a record counts as lagging, at most the
        idle timeout: producers that begin on several partitions do not begin in the same millisecond.

        Raises TopicMissing, TopicRecreated, KafkaUnavailable.
        """
        self.stream = stream
        self._wait_s = min(first_record_wait_ms, stream.idle_timeout_ms) / 1_000 if stream.event_time else 0.0
        self._admin = admin
        self._next = dict(offsets)
        begin = self._begin(offsets)
        new = [partition for partition, offset in begin.items() if offset < 0]
        self._beginnings = Beginnings(stream, admin, new)
        self._topic_id = admin.topic_id(stream.topic)
        self._partitions = len(begin)
        waits = SINGLE_PARTITION if len(begin) == 1 else {}
        self._consumer = BatchConsumer({**waits, **kafka}, admin=admin.client)
        self._consumer.add(stream.topic, begin)
        self._awaited: dict[int, float] = {}
        self._await(partition for partition, offset in begin.items() if offset <= 0)

    def _begin(self, offsets: Mapping[int, int]) -> dict[int, int]:
        try:
            end = self._admin.end_offsets(self.stream.topic)
        except TopicMissing:
            raise topic_deleted(self.stream) from None
        for partition, offset in offsets.items():
            if offset > end.get(partition, 0):
                raise topic_recreated(self.stream)
        return {partition: offsets.get(partition, -1) for partition in end}

    @property
    def unavailable(self) -> bool:
        return self._consumer.unavailable

    @property
    def topic_id(self) -> str:
        """Tells the topic from an earlier one of the same name."""
        return self._topic_id

    def _await(self, partitions: Iterable[int]) -> None:
        deadline_s = time.monotonic() + self._wait_s
        self._awaited |= dict.fromkeys(partitions, deadline_s)

    @property
    def lagging(self) -> frozenset[int]:
        """Partitions with unread records, and new ones that have not been waited for long enough."""
        now_s = time.monotonic()
        awaited = frozenset(partition for partition, until_s in self._awaited.items() if now_s < until_s)
        return self._consumer.lagging(self.stream.topic) | awaited

    def look_again(self) -> None:
        """Take up partitions that were added; Kafka has answered after this.

        Raises TopicMissing, TopicRecreated, KafkaUnavailable.
        """
        count = self._admin.partitions(self.stream.topic)
        if self._admin.topic_id(self.stream.topic) != self._topic_id:
            raise topic_recreated(self.stream)
        if count > self._partitions:
            added = range(self._partitions, count)
            self._beginnings.add(added)
            self._consumer.add(self.stream.topic, dict.fromkeys(added, -1))
            self._await(added)
            self._partitions = count
        self._consumer.unavailable = False

    def poll(self, records_max: int, timeout_s: float) -> Taken | None:
        """What came, at most so many records; None where nothing moved. Raises TopicMissing, OffsetLost."""
        for polled in self._consumer.poll(records_max, timeout_s):
            moved = any(self._next.get(number, 0) != at for number, at in polled.next_offsets.items())
            if moved:
                self._next.update(polled.next_offsets)
                return self._taken(polled)
        return None

    def _taken(self, polled: Polled) -> Taken:
        values = polled.values
        decoded = decode_messages(
            self.stream, polled.messages, values, polled.partition, polled.offset, polled.append_ms
        )
        bad = [(item.place, item.reason) for item in decoded.bad]
        rows = np.arange(len(values))
        if bad:
            rows = np.delete(rows, [place for place, _ in bad])
        size = sum(len(value) for value in values if value is not None)
        for partition in decoded.batch.partitions():
            self._awaited.pop(partition, None)
        whole_from_ms = self._beginnings.whole_from_ms(polled, decoded.batch)
        body = Records(
            self.stream.name,
            decoded.batch,
            polled.next_offsets,
            self.lagging,
            whole_from_ms=whole_from_ms,
            unreadable=len(bad),
        )
        return Taken(body, polled.messages, rows, bad, size, polled.ranges)

    def close(self) -> None:
        self._consumer.close()

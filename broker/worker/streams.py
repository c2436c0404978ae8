"""The streams of a shard: opened, looked after, lost and dropped.

A stream reads while its topic is there. When the topic is gone, or is another one under the same name, the
stream is *lost*: it reads no more until it is dropped and created again, and ``errors`` says so. When Kafka
is away, opening is tried again. Used by the shard's thread alone; ``errors`` and ``lagging`` may be read by
others.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from broker import logs
from broker.settings import Settings
from broker.worker.intake import Intake, Taken, topic_deleted, topic_recreated
from broker.worker.pace import Pace
from engine.model.source import Stream
from topics.admin import Admin
from topics.consumer import OffsetLost
from tureen.errors import KafkaUnavailable, TopicMissing, TopicRecreated, TureenError

log = logs.get()


@dataclass(slots=True)
class ReadStream:
    """A stream at work: its intake, or none while it waits for Kafka or is lost."""

    stream: Stream
    pace: Pace
    intake: Intake | None = None
    lost: bool = False
    checked_s: float = 0.0


class Streams:
    """``offsets``: where a stream that could not be opened at first goes on reading."""

    def __init__(
        self,
        number: int,
        settings: Settings,
        kafka: dict[str, str],
        admin: Admin,
        offsets: Callable[[str], Mapping[int, int]],
        topic_ids: dict[str, str],
    ) -> None:
        """topic_ids: of topics that are read, kept up to date here."""
        self._topic_ids = topic_ids
        self.by_name: dict[str, ReadStream] = {}
        self.errors: dict[str, dict[str, Any]] = {}
        self.lagging: dict[str, frozenset[int]] = {}
        self._number = number
        self._settings = settings
        self._kafka = kafka
        self._admin = admin
        self._offsets = offsets

    def add(self, stream: Stream, offsets: Mapping[int, int], clock_ms: int) -> None:
        """Read a stream from these offsets on; partitions without one from their beginning."""
        pace = Pace(stream, self._settings.heartbeat_ms, clock_ms, offsets)
        added = self.by_name[stream.name] = ReadStream(stream, pace)
        self._open(added, offsets)

    def drop(self, name: str) -> None:
        dropped = self.by_name.pop(name)
        if dropped.intake is not None:
            dropped.intake.close()
        self.errors.pop(name, None)
        self.lagging.pop(name, None)

    def close(self) -> None:
        for name in list(self.by_name):
            self.drop(name)

    def reading(self) -> list[ReadStream]:
        """Those with an intake."""
        return [stream for stream in self.by_name.values() if stream.intake is not None]

    def in_step(self, now_ms: Mapping[str, int | None], sets: Iterable[Sequence[str]]) -> list[ReadStream]:
        """Those with an intake whose turn it is: of sources that a query joins, one that is ahead of another
        with unread records waits for it, so that what is read stays near NOW of the query, however much a
        topic holds. Only instants of one kind of time compare. O(sources of all sets)."""
        waiting: set[str] = set()
        for names in sets:
            together = [one for name in names if (one := self.by_name.get(name)) and one.intake is not None]
            for event_time in (True, False):
                clocks = [
                    (-math.inf if (now := now_ms.get(one.stream.name)) is None else now, one)
                    for one in together
                    if one.stream.event_time == event_time
                ]
                unread = [now for now, one in clocks if one.intake is not None and one.intake.lagging]
                waiting |= {one.stream.name for now, one in clocks if now > min(unread, default=math.inf)}
        return [stream for stream in self.reading() if stream.stream.name not in waiting]

    def is_away(self) -> bool:
        """Whether a stream waits for Kafka."""
        return any(
            not stream.lost and (stream.intake is None or stream.intake.unavailable)
            for stream in self.by_name.values()
        )

    def poll(self, stream: ReadStream, rows_max: int, timeout_s: float) -> Taken | None:
        """What came of one stream, so many records at most; a stream that is lost by it gives None."""
        assert stream.intake is not None
        try:
            taken = stream.intake.poll(rows_max, timeout_s)
        except TopicMissing:
            self._lose(stream, topic_deleted(stream.stream))
            return None
        except OffsetLost as lost:
            self._lose(stream, lost)
            return None
        if taken is not None:
            self.lagging[stream.stream.name] = taken.body.lagging
        return taken

    def look_after(self) -> None:
        """Look at topics again when it is time: sooner while Kafka is away."""
        now_s = time.monotonic()
        for stream in list(self.by_name.values()):
            away = not stream.lost and (stream.intake is None or stream.intake.unavailable)
            period_ms = self._settings.retry_ms if away else self._settings.topic_check_ms
            if now_s - stream.checked_s < period_ms / 1_000:
                continue
            stream.checked_s = now_s
            if stream.intake is None and not stream.lost:
                self._open(stream, self._offsets(stream.stream.name))
            else:
                with contextlib.suppress(KafkaUnavailable):
                    self._look_at_topic(stream)

    def _look_at_topic(self, stream: ReadStream) -> None:
        topic = stream.stream.topic
        try:
            if stream.intake is not None:
                stream.intake.look_again()
            elif self.errors[stream.stream.name]["code"] == TopicMissing.code:
                self._admin.partitions(topic)
                self._lose(stream, topic_recreated(stream.stream))
        except TopicMissing:
            self._lose(stream, topic_deleted(stream.stream))
        except TopicRecreated as lost:
            self._lose(stream, lost)

    def _open(self, stream: ReadStream, offsets: Mapping[int, int]) -> None:
        stream.checked_s = time.monotonic()
        try:
            wait_ms = self._settings.first_record_wait_ms
            stream.intake = Intake(stream.stream, self._kafka, self._admin, offsets, wait_ms)
        except (TopicMissing, TopicRecreated) as lost:
            self._lose(stream, lost)
        except KafkaUnavailable:
            pass  # is_away() tells, look_after() tries again
        else:
            self._topic_ids[stream.stream.topic] = stream.intake.topic_id
            log.info("stream_reads", shard=self._number, stream=stream.stream.name, topic=stream.stream.topic)

    def _lose(self, stream: ReadStream, error: TureenError) -> None:
        name = stream.stream.name
        if stream.intake is not None:
            stream.intake.close()
            stream.intake = None
        stream.lost = True
        self.lagging.pop(name, None)
        if self.errors.get(name, {}).get("code") != error.code:
            log.error(
                "stream_lost", shard=self._number, stream=name, topic=stream.stream.topic, code=error.code
            )
        self.errors[name] = error.as_dict()

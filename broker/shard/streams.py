"""The streams of a shard: opened, looked after, lost and dropped.

A stream reads while its topic is there. When the topic is gone, or is another one under the same name, the
stream is *lost*: it reads no more until it is dropped and created again, and ``errors`` says so. When Kafka
is away, opening is tried again. Used by the shard's thread alone; ``errors`` and ``lagging`` may be read by
others.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from broker.base import logs
from broker.shard.catching_up import CatchUps
from broker.shard.context import ShardContext
from broker.shard.inbox import Inbox
from broker.shard.intake import Intake, Opening, Shedding, look_at, topic_recreated
from broker.shard.pace import Pace
from broker.shard.shared_reading import SharedReading
from broker.shard.step_size import CallSize
from broker.shard.taken import TakenRows
from engine.model.source import SourceName, Stream
from topics.admin import TopicFacts
from topics.consumer import OffsetLost
from topics.formats.schemas import schemas
from tureen.errors import KafkaUnavailable, TopicMissing, TopicRecreated, TureenError

log = logs.get()


@dataclass(slots=True)
class ReadStream:
    """A stream at work: its intake, or none while it waits for Kafka or is lost. calls: how large its steps
    may be for users' functions.
    """

    stream: Stream
    pace: Pace
    calls: CallSize
    intake: Intake | None = None
    lost: bool = False


def backlogs(streams: Iterable[ReadStream]) -> dict[SourceName, int]:
    """Count the records that wait, by source that is read, but for tables. O(sources that are read)."""
    return {
        one.stream.name: one.intake.backlog
        for one in streams
        if one.intake is not None and not one.stream.is_table
    }


class Arrivals:
    """Which streams have something that was not taken. ``come`` from any thread, the rest by the shard's."""

    def __init__(self, arrived: Callable[[], None]) -> None:
        """arrived: there is something to do."""
        self._arrived = arrived
        self._came: set[SourceName] = set()

    def come(self, name: SourceName) -> None:
        """Something may have come of a stream."""
        self._came.add(name)
        self._arrived()

    def ready(self, by_name: Mapping[SourceName, ReadStream]) -> list[ReadStream]:
        """Those of which something came that was not taken. O(these)."""
        ready = []
        for name in list(self._came):
            self._came.discard(name)  # before it is looked at: what comes meanwhile adds it again
            one = by_name.get(name)
            if one is not None and one.intake is not None and one.intake.is_ready:
                self._came.add(name)
                ready.append(one)
        return ready


class Away:
    """Streams for which Kafka does not answer. retry_ms: how long until it is asked again."""

    def __init__(self, retry_ms: int) -> None:
        self._retry_s = retry_ms / 1_000
        self.unopened: set[SourceName] = set()
        self.cut_off: set[SourceName] = set()
        """Those whose last poll told that Kafka is away."""
        self._tried_s = 0.0

    def __bool__(self) -> bool:
        return bool(self.unopened or self.cut_off)

    def forget(self, name: SourceName) -> None:
        """A stream is read no more."""
        self.unopened.discard(name)
        self.cut_off.discard(name)

    def tries(self) -> None:
        """Streams are being opened."""
        self._tried_s = time.monotonic()

    def is_due(self) -> bool:
        """Whether it is time to open what is not open."""
        return bool(self.unopened) and time.monotonic() - self._tried_s >= self._retry_s


def _instant(now_ms: int | None) -> float:
    return -math.inf if now_ms is None else now_ms


class Streams:
    """``offsets``: where a stream that could not be opened at first goes on reading."""

    def __init__(
        self,
        context: ShardContext,
        shared: SharedReading,
        inbox: Inbox,
        offsets: Callable[[SourceName], Mapping[int, int]],
        topic_ids: dict[str, str],
    ) -> None:
        """inbox: is told when there is something to do. topic_ids: of topics that are read, kept up to date
        here.
        """
        self._topic_ids = topic_ids
        self.by_name: dict[SourceName, ReadStream] = {}
        self.errors: dict[SourceName, dict[str, Any]] = {}
        self.lagging: dict[SourceName, frozenset[int]] = {}
        self.catch_ups = CatchUps()
        self._context = context
        self._shared = shared
        self._arrivals = Arrivals(inbox.arrived)
        self._away = Away(context.settings.retry_ms)
        self._offsets = offsets
        self._answers = 0
        """How many answers the lookout had as they were looked at last."""
        shared.on_change(inbox.wake)

    def add(self, streams: Iterable[tuple[Stream, Mapping[int, int]]], clock_ms: int) -> None:
        """Read streams from these offsets on; partitions without one from their beginning."""
        wanted = {}
        for stream, offsets in streams:
            pace = Pace(stream, self._context.settings.heartbeat_ms, clock_ms, offsets)
            calls = CallSize(self._context.settings.step_rows_max)
            self.by_name[stream.name] = ReadStream(stream, pace, calls)
            self._shared.lookout.add(stream.topic)
            self.catch_ups.begin(stream.name)
            wanted[stream.name] = stream, offsets
        self._away.unopened |= wanted.keys()
        self._open(wanted)

    def drop(self, name: SourceName) -> None:
        dropped = self.by_name.pop(name)
        if dropped.intake is not None:
            dropped.intake.close()
        self._shared.lookout.remove(dropped.stream.topic)
        self._away.forget(name)
        self.errors.pop(name, None)
        self.lagging.pop(name, None)
        self.catch_ups.forget(name)

    def close(self) -> None:
        for name in list(self.by_name):
            self.drop(name)

    def in_step(
        self,
        ready: Iterable[ReadStream],
        now_ms: Callable[[SourceName], int | None],
        sets_of: Callable[[SourceName], Iterable[Sequence[SourceName]]],
    ) -> list[ReadStream]:
        """Those of some whose turn it is: of sources that a query joins, one that is ahead of another with
        unread records waits for it, so that what is read stays near NOW of the query, however much a topic
        holds. Only instants of one kind of time compare. sets_of: the sets of joined sources that a source
        is in. O(sources of these sets)."""

        def is_ahead(stream: ReadStream, names: Sequence[SourceName]) -> bool:
            unread = [
                _instant(now_ms(one.stream.name))
                for name in names
                if (one := self.by_name.get(name)) is not None
                and one.intake is not None
                and one.stream.event_time == stream.stream.event_time
                and one.intake.lagging
            ]
            return _instant(now_ms(stream.stream.name)) > min(unread, default=math.inf)

        return [
            stream
            for stream in ready
            if not any(is_ahead(stream, names) for names in sets_of(stream.stream.name))
        ]

    def ready(self) -> list[ReadStream]:
        """Those of which something came that was not taken. O(these)."""
        return self._arrivals.ready(self.by_name)

    def rest(self, rest_s: float) -> None:
        """Say how long records that are gathered, of all streams, are to wait for more."""
        self._shared.rest(self._context.number, rest_s, time.monotonic())

    def is_away(self) -> bool:
        """Whether a stream waits for Kafka. O(1) while it answers."""
        if self._away:
            return True
        return self._shared.is_away and any(one.intake is not None for one in self.by_name.values())

    def registry_away(self) -> TureenError | None:
        """Why the schemas do not come that streams wait for; None: no stream waits, or they come."""
        away = schemas().away
        if away is None:
            return None
        intakes = [one.intake for one in self.by_name.values() if one.intake is not None]
        return away if any(one.awaits_schemas for one in intakes) else None

    def poll(self, stream: ReadStream, rows_max: int, shedding: Shedding | None = None) -> TakenRows | None:
        """What came of one stream, so many records at most; a stream that is lost by it gives None.
        shedding: how they are shed; None: they are not.
        """
        assert stream.intake is not None
        try:
            taken = stream.intake.poll(rows_max, shedding)
        except OffsetLost as lost:
            self._lose(stream, lost)
            return None
        name = stream.stream.name
        (self._away.cut_off.add if stream.intake.unavailable else self._away.cut_off.discard)(name)
        if taken is not None:
            self.lagging[name] = taken.body.lagging
        return taken

    def look_after(self) -> None:
        """Do what follows from what was heard of topics; open what is not when it is time."""
        answers = self._shared.lookout.answers
        if answers != self._answers:
            self._answers = answers
            for stream in list(self.by_name.values()):
                told = self._shared.lookout.found.get(stream.stream.topic)
                if told is not None:
                    self._look_at_topic(stream, *told)
        if self._away.is_due():
            unopened = self._away.unopened
            self._open({name: (self.by_name[name].stream, self._offsets(name)) for name in unopened})

    def _look_at_topic(self, stream: ReadStream, look: int, facts: TopicFacts | None) -> None:
        name = stream.stream.name
        try:
            if stream.intake is not None:
                stream.intake.look_again(look, facts)
            elif stream.lost and facts is not None and self.errors[name]["code"] == TopicMissing.code:
                self._lose(stream, topic_recreated(stream.stream))
        except (TopicMissing, TopicRecreated) as lost:
            self._lose(stream, lost)
        except KafkaUnavailable:
            self._answers = -1  # partitions were added, and Kafka went: once more

    def _open(self, wanted: Mapping[SourceName, tuple[Stream, Mapping[int, int]]]) -> None:
        self._away.tries()
        try:
            found = look_at(wanted, self._shared)
        except (KafkaUnavailable, TopicMissing):
            return  # is_away() tells, look_after() tries again
        for name, opening in found.items():
            stream, offsets = wanted[name]
            self._away.unopened.discard(name)
            if not isinstance(opening, Opening):
                self._lose(self.by_name[name], opening)
                continue
            wait_ms = self._context.settings.first_record_wait_ms
            intake = Intake(
                stream, self._shared, partial(self._arrivals.come, name), opening, offsets, wait_ms
            )
            self.by_name[name].intake = intake
            self.catch_ups.found(name, {**opening.begins, **offsets}, opening.ends)
            self._topic_ids[stream.topic] = intake.topic_id
            log.info("stream_reads", shard=self._context.number, stream=name, topic=stream.topic)

    def _lose(self, stream: ReadStream, error: TureenError) -> None:
        name = stream.stream.name
        if stream.intake is not None:
            stream.intake.close()
            stream.intake = None
        stream.lost = True
        self.catch_ups.lose(name)
        self._away.cut_off.discard(name)
        self.lagging.pop(name, None)
        if self.errors.get(name, {}).get("code") != error.code:
            log.error(
                "stream_lost",
                shard=self._context.number,
                stream=name,
                topic=stream.stream.topic,
                code=error.code,
            )
        self.errors[name] = error.as_dict()

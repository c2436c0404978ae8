"""Reads topics in batches, at positions that the caller keeps.

There is no consumer group: partitions and offsets are given, nothing is committed. Only committed records are
seen (``read_committed``). ``next_offset`` of a partition is where reading goes on, past records of aborted
transactions and transaction markers too; a partition *lags* while the log holds more than was handed out.

Positions are never reset: when the records at a position are gone, :class:`OffsetLost` is raised; when the
topic is, TopicMissing. Neither takes anything from what was read before it. A Kafka that is away raises
nothing: :attr:`BatchConsumer.unavailable` tells, and reading goes on when it is back.

That a partition was read to its end is known as of the last look. After a pause (the process stood still, or
Kafka was away) it may have grown meanwhile, and lags until its end was asked for again: a stream must not
take it for silent, or its records would be late.

Cost: two to five calls into the client for each record, 0.7 to 0.9 us with the client's own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from engine.model.batch import Int32Array, Int64Array
from topics.channels import Channel
from topics.clients import Client, LoneClient
from topics.failures import MISSING_TOPIC, UNREACHABLE, as_ours
from topics.settings import KafkaSettings
from topics.watch import TopicWatch
from tureen.errors import KafkaUnavailable, TureenError

PAUSE_S = 1.0
ASK_AGAIN_S = 1.0
POLL_S = 0.2
UNTIL_RECORDS_MAX = 10_000


class OffsetLost(TureenError):
    """The records at a position are no longer in the log, or never were."""

    code = "offset_lost"

    def __init__(self, topic: str, partition: int, offset: int, **facts: Any) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset
        super().__init__(f"topic {topic} has no offset {offset} in partition {partition}", **facts)


@dataclass(frozen=True, slots=True)
class Range:
    """Consecutive records of one partition: ``count`` of them from ``first`` to ``last`` offset."""

    partition: int
    first: int
    last: int
    count: int


@dataclass(frozen=True, slots=True)
class Polled:
    """Records of one topic, by partition and offset within one poll.

    values: [n]; partition int32[n], offset int64[n], append_ms int64[n] (the log's timestamp).
    messages: [n], for keys and headers of single ones.
    next_offsets: where reading goes on, of the partitions that moved; with n = 0 when only markers passed.
    lagging: all partitions of the topic that lag after these records.
    """

    topic: str
    values: list[bytes | None]
    partition: Int32Array
    offset: Int64Array
    append_ms: Int64Array
    messages: list[Any]
    next_offsets: dict[int, int]
    lagging: frozenset[int]

    def __len__(self) -> int:
        return len(self.values)

    def lasts(self) -> Polled:
        """The last record of each partition alone."""
        places = [stop - 1 for stop in _ends_of_runs(self.partition)]
        return replace(
            self,
            values=[self.values[place] for place in places],
            partition=self.partition[places],
            offset=self.offset[places],
            append_ms=self.append_ms[places],
            messages=[self.messages[place] for place in places],
        )

    @property
    def ranges(self) -> tuple[Range, ...]:
        """The records as runs of one partition each, in order."""
        stops = _ends_of_runs(self.partition)
        return tuple(
            Range(int(self.partition[a]), int(self.offset[a]), int(self.offset[b - 1]), b - a)
            for a, b in pairwise([0, *stops])
        )


def _ends_of_runs(partition: Int32Array) -> list[int]:
    """Where each run of one partition ends. partition: int32[n], ascending."""
    n = len(partition)
    if n and partition[0] == partition[-1]:
        return [n]
    cuts: list[int] = (np.flatnonzero(partition[1:] != partition[:-1]) + 1).tolist()
    return [*cuts, n] if n else []


class _Place:
    """One assigned partition: where it is, and whether its end was reached there."""

    __slots__ = ("at_end", "doubted", "known_end", "next_offset")

    def __init__(self, next_offset: int) -> None:
        self.next_offset = next_offset
        self.at_end = False
        self.doubted = False
        """A pause has passed since it was looked at; it lags until its end is asked for."""
        self.known_end = 0
        """Where the log ended when it was asked."""


class BatchConsumer:
    """One reader of any number of partitions. Not safe for use from several threads at once.

    settings: any of librdkafka's; they override the defaults, but not what correctness rests on.
    pause_s: so long after the end of the last poll, ends that were seen are doubted. admin: gives a client to
    look after topics with, shared among many readers. channel: to read with consumers that are shared;
    then who made it looks after the topics, so TopicMissing is not raised, and :mod:`topics.shared` says when
    ends are doubted.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        *,
        pause_s: float = PAUSE_S,
        admin: Callable[[], AdminClient] | None = None,
        channel: Channel | None = None,
    ) -> None:
        self.unavailable = False
        self._pause_s = pause_s
        self._polled_s = time.monotonic()
        self._ask_s = 0.0
        self._places: dict[str, dict[int, _Place]] = {}
        self._untimed: set[str] = set()
        self._failures: list[TureenError] = []
        self._channel = channel
        self._watch = TopicWatch(settings, admin) if channel is None else None
        self._lone: LoneClient | None = None
        if channel is None:
            self._lone = LoneClient(settings, self._note)
        self._client: Client = channel or self._lone  # type: ignore[assignment]

    def add(self, topic: str, offsets: Mapping[int, int], *, append_times: bool = True) -> None:
        """Read these partitions too, from these offsets on; a negative offset is the beginning.

        append_times: False spares their reading where a stream is in event time; they are 0 then.
        """
        (self._untimed.discard if append_times else self._untimed.add)(topic)
        places = self._places.setdefault(topic, {})
        if again := offsets.keys() & places.keys():
            self._client.unassign(topic, again)
        for number, offset in offsets.items():
            places[number] = _Place(offset)
        self._client.assign(topic, offsets)

    def remove(self, topic: str) -> None:
        """Stop reading a topic; what was fetched of it is dropped."""
        places = self._places.pop(topic, {})
        if self._watch is not None:
            self._watch.forget(topic)
        self._client.unassign(topic, places)
        self._failures = [f for f in self._failures if getattr(f, "topic", None) != topic]

    def topics(self) -> frozenset[str]:
        """What is being read."""
        return frozenset(self._places)

    @property
    def has_failed(self) -> bool:
        """Whether the next poll raises."""
        return bool(self._failures)

    def next_offsets(self, topic: str) -> dict[int, int]:
        """Where reading goes on; negative: nothing of the partition was seen yet."""
        return {number: place.next_offset for number, place in self._places[topic].items()}

    def lagging(self, topic: str) -> frozenset[int]:
        """Partitions of which the log is known, or not known not, to hold more."""
        return frozenset(n for n, place in self._places[topic].items() if not self._at_end(topic, n, place))

    def backlog(self, topic: str) -> int:
        """How many records the log held at the last fetch that were not handed out; markers count too."""
        return sum(
            max(0, max(self._client.known_end(topic, number), place.known_end) - place.next_offset)
            for number, place in self._places[topic].items()
            if place.next_offset >= 0
        )

    def _at_end(self, topic: str, number: int, place: _Place) -> bool:
        if place.doubted or (self._channel is not None and not self._channel.is_current(topic, number)):
            return False
        if not place.at_end and place.next_offset >= 0:
            high = self._client.known_end(topic, number)
            # Of the last fetch. Markers behind the last record leave next_offset below it: then the
            # event of the partition's end decides, a moment later.
            return 0 <= high <= place.next_offset and place.known_end <= place.next_offset
        return place.at_end

    def _doubt(self, lone: LoneClient) -> None:
        """After a pause, before or within this poll: ask where the partitions end, once Kafka answers."""
        now_s = time.monotonic()
        doubted = self.unavailable or now_s - self._polled_s > self._pause_s
        for topic, places in self._places.items():
            for number, place in places.items():
                place.doubted |= doubted
                if place.doubted and now_s >= self._ask_s:
                    self._ask(lone, topic, number, place)

    def _ask(self, lone: LoneClient, topic: str, number: int, place: _Place) -> None:
        try:
            end = lone.ask_end(topic, number)
        except KafkaException:
            self._ask_s = time.monotonic() + ASK_AGAIN_S
            return
        place.doubted = False
        place.known_end = end
        place.at_end = 0 <= end <= place.next_offset
        self.unavailable = False

    def poll(self, records_max: int, timeout_s: float) -> list[Polled]:
        """Up to ``records_max`` records, at once when there are any, else within ``timeout_s``.

        One :class:`Polled` for each topic that moved. Raises TopicMissing, OffsetLost; the topic should then
        be removed. Raises KafkaUnavailable only for settings or rights that no waiting will mend.
        """
        if self._failures:
            raise self._failures.pop(0)
        if self._watch is not None:
            self._failures += self._watch.gone(self._places)
        messages = self._client.consume(records_max, timeout_s)
        if self._lone is not None:
            self._doubt(self._lone)
        moved: dict[str, set[int]] = {}
        if any(error is not None for error in [message.error() for message in messages]):
            messages = self._without_events(messages, moved)
        by_topic: dict[str, list[Any]] = {}
        if len(self._places) == 1 and messages:
            by_topic[next(iter(self._places))] = messages
        else:
            for message in messages:
                by_topic.setdefault(str(message.topic()), []).append(message)
        polled = [
            self._polled(topic, by_topic.get(topic, []), moved.get(topic, set()))
            for topic in by_topic.keys() | moved.keys()
            if topic in self._places
        ]
        if messages or moved:
            self.unavailable = False
        elif self._failures:
            raise self._failures.pop(0)
        self._polled_s = time.monotonic()
        return polled

    def until(
        self, done: Callable[[], bool], timeout_s: float, *, records_max: int = UNTIL_RECORDS_MAX
    ) -> Iterator[Polled]:
        """What comes until ``done``, which is asked before every poll.

        Raises KafkaUnavailable when nothing came for ``timeout_s``, and as :meth:`poll`.
        """
        deadline_s = time.monotonic() + timeout_s
        while not done():
            polled = self.poll(records_max, POLL_S)
            yield from polled
            if polled:
                deadline_s = time.monotonic() + timeout_s
            elif time.monotonic() > deadline_s:
                topics = ", ".join(sorted(self._places))
                raise KafkaUnavailable(f"no records arrive from {topics}", hint="is Kafka running?")

    def has_read(self, ends: Mapping[str, Mapping[int, int]]) -> bool:
        """Whether all before these ends, by topic and partition, was handed out; markers count as such."""
        return all(
            self._places[topic][number].next_offset >= end
            for topic, until in ends.items()
            for number, end in until.items()
            if end
        )

    def _polled(self, topic: str, messages: list[Any], moved: set[int]) -> Polled:
        count = len(messages)
        places = self._places[topic]
        if len(places) == 1:
            partition = np.full(count, next(iter(places)), np.int32)
        else:
            partition = np.fromiter([m.partition() for m in messages], np.int32, count)
            if np.any(partition[1:] < partition[:-1]):
                order = np.argsort(partition, kind="stable")
                messages = [messages[place] for place in order.tolist()]
                partition = partition[order]
        offset = np.empty(count, np.int64)
        first = 0
        for stop in _ends_of_runs(partition):
            run = messages[first:stop]
            low, high = run[0].offset(), run[-1].offset()
            if high - low == stop - 1 - first:
                offset[first:stop] = np.arange(low, high + 1)
            else:  # with markers or compacted records between them
                offset[first:stop] = [m.offset() for m in run]
            first = stop
            number = int(partition[stop - 1])
            place = places[number]
            if high >= place.next_offset:  # not when the end was seen after these records
                place.next_offset = high + 1
                place.at_end = False
            moved.add(number)
        if topic in self._untimed:
            append_ms = np.zeros(count, np.int64)
        else:
            append_ms = np.fromiter([m.timestamp()[1] for m in messages], np.int64, count)
        return Polled(
            topic,
            [m.value() for m in messages],
            partition,
            offset,
            append_ms,
            messages,
            {number: places[number].next_offset for number in sorted(moved)},
            self.lagging(topic),
        )

    def _without_events(self, messages: list[Any], moved: dict[str, set[int]]) -> list[Any]:
        """The records alone; ends of partitions and failures are noted."""
        records = []
        for message in messages:
            error = message.error()
            if error is None:
                records.append(message)
                continue
            topic, number = message.topic(), message.partition()
            place = self._places.get(topic, {}).get(number)
            code = error.code()
            if code == KafkaError._PARTITION_EOF:
                if place is not None:
                    place.next_offset = max(place.next_offset, message.offset())
                    place.at_end = message.offset() >= place.known_end
                    moved.setdefault(topic, set()).add(number)
            elif code in MISSING_TOPIC:
                self._note_missing()
            elif code in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
                if place is not None:
                    at = place.next_offset if place.next_offset >= 0 else message.offset()
                    hint = (
                        "its retention ended while the broker was down, or it was deleted and created again"
                    )
                    self._failures.append(OffsetLost(topic, number, at, hint=hint))
            elif code in UNREACHABLE or error.retriable():
                self.unavailable = True
                if self._channel is not None:
                    self._channel.doubt(topic, number)
            else:
                self._failures.append(as_ours(error, f"reading {topic}", topic))
        return records

    def _note(self, error: Any) -> None:
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self.unavailable = True
        elif error.code() in MISSING_TOPIC:
            self._note_missing()

    def _note_missing(self) -> None:
        if self._watch is not None:
            self._watch.hurry = True
        elif self._channel is not None:
            self._channel.note_missing()

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()

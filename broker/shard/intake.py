"""One stream's records on their way into steps.

Reads the partitions of one topic from explicit offsets. Rows of a step come by partition, then offset:
lateness is decided in that order, and a replay of the offset ranges finds the same.

A topic that is deleted, or created anew under the same name, ends the intake, not the shard: ``error`` says
what happened and what to do, what was read stays answered.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from broker.shard.awaiting_reader import AwaitingReader
from broker.shard.lost_prefixes import LostPrefixes
from broker.shard.promises import cut_at_promises
from broker.shard.shared_reading import SharedReading
from broker.shard.taken import TakenRows
from engine.model.shed import Shed
from engine.model.source import SourceName, Stream
from engine.model.step import Records
from topics.admin import TopicFacts
from topics.codec import Decoded
from topics.consumer import BatchConsumer, Polled
from topics.keyed import decode_messages
from tureen.errors import TopicMissing, TopicRecreated, TureenError


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
class Shedding:
    """level: as of :class:`engine.model.shed.Shed`. unread: nobody sees these records."""

    level: int
    unread: bool


@dataclass(frozen=True, slots=True)
class Opening:
    """A topic as it was found: ``look`` of the lookout is the last that may tell of an earlier one.

    begins, ends: by partition; begins: of those that were never read.
    """

    facts: TopicFacts
    look: int
    begins: Mapping[int, int]
    ends: Mapping[int, int]


def look_at(
    streams: Mapping[SourceName, tuple[Stream, Mapping[int, int]]], shared: SharedReading
) -> dict[SourceName, Opening | TureenError]:
    """The topics of streams that are read from these offsets on, by three requests for all; or what is wrong
    with one: TopicMissing, TopicRecreated. Raises KafkaUnavailable.
    """
    look, admin = shared.lookout.looks, shared.admin
    facts = admin.describe({stream.topic for stream, _ in streams.values()})
    there = {topic: range(one.partitions) for topic, one in facts.items() if one is not None}
    ends = admin.ends(there)
    new: dict[str, set[int]] = {}
    for stream, offsets in streams.values():
        if not stream.is_table and stream.topic in there:
            new.setdefault(stream.topic, set()).update(set(there[stream.topic]) - offsets.keys())
    begins = admin.begins(new)
    found: dict[SourceName, Opening | TureenError] = {}
    for name, (stream, offsets) in streams.items():
        topic, one = stream.topic, facts[stream.topic]
        if one is None:
            found[name] = topic_deleted(stream)
        elif any(offset > ends[topic].get(number, 0) for number, offset in offsets.items()):
            found[name] = topic_recreated(stream)
        else:
            here = {number: at for number, at in begins.get(topic, {}).items() if number not in offsets}
            found[name] = Opening(one, look, here, ends[topic])
    return found


class Intake:
    """Reads one stream. Used by the shard's thread alone."""

    def __init__(
        self,
        stream: Stream,
        shared: SharedReading,
        wake: Callable[[], None],
        opening: Opening,
        offsets: Mapping[int, int],
        first_record_wait_ms: int,
    ) -> None:
        """wake: called, from another thread, when something came. first_record_wait_ms: how long a partition
        that never had a record counts as lagging, at most the idle timeout: producers that begin on several
        partitions do not begin in the same millisecond.
        """
        self.stream = stream
        self.topic_id = opening.facts.topic_id
        """Tells the topic from an earlier one of the same name."""
        self._look = opening.look
        self._wait_s = min(first_record_wait_ms, stream.idle_timeout_ms) / 1_000 if stream.event_time else 0.0
        self._admin = shared.admin
        self._next = dict(offsets)
        begin = {partition: offsets.get(partition, -1) for partition in opening.ends}
        self._lost_prefixes = LostPrefixes(stream, self._admin, opening.begins)
        self._partitions = len(begin)
        self._channel = shared.channel(wake)
        self._reader = AwaitingReader(stream, BatchConsumer({}, channel=self._channel), wake)
        self._reader.consumer.add(stream.topic, begin)
        self._left: deque[TakenRows] = deque()
        """Parts of the last poll, behind a heartbeat in it."""
        self._awaited: dict[int, float] = {}
        self._await(partition for partition, offset in begin.items() if offset <= 0)

    @property
    def unavailable(self) -> bool:
        return self._reader.consumer.unavailable

    @property
    def is_gathered(self) -> bool:
        """Whether its records come together with those of other streams, a while after they were written."""
        return self._channel.is_gathered

    def hurry(self, *, is_hurried: bool) -> None:
        """Say whether records may wait for those of other streams before they come here."""
        self._channel.hurry(is_hurried=is_hurried)

    @property
    def is_ready(self) -> bool:
        """Whether something came that was not taken."""
        if self._reader.held is not None:
            return self._reader.is_ready
        return bool(self._left) or self._reader.consumer.has_failed or not self._channel.is_empty

    @property
    def awaits_schemas(self) -> bool:
        """Whether records that were read wait for the schemas that they name."""
        return self._reader.held is not None

    @property
    def waiting(self) -> tuple[int, int]:
        """(records, bytes) that came and were not taken."""
        left = self._left
        records, size = sum(len(one.messages) for one in left), sum(one.size for one in left)
        return self._channel.records + records, self._channel.bytes + size

    def _await(self, partitions: Iterable[int]) -> None:
        deadline_s = time.monotonic() + self._wait_s
        self._awaited |= dict.fromkeys(partitions, deadline_s)

    @property
    def lagging(self) -> frozenset[int]:
        """Partitions with unread records, and new ones that have not been waited for long enough."""
        lagging = self._reader.consumer.lagging(self.stream.topic)
        if self._left:
            lagging = lagging.union(*(one.body.next_offsets for one in self._left))
        if (held := self._reader.held) is not None:
            lagging = lagging.union(held.next_offsets)
        if not self._awaited:
            return lagging
        now_s = time.monotonic()
        self._awaited = {number: until_s for number, until_s in self._awaited.items() if now_s < until_s}
        return lagging | self._awaited.keys()

    def look_again(self, look: int, facts: TopicFacts | None) -> None:
        """Take up partitions that were added, as a look at the topic told them.

        Raises TopicMissing, TopicRecreated, KafkaUnavailable.
        """
        if look <= self._look:
            return
        if facts is None:
            raise topic_deleted(self.stream)
        if facts.topic_id != self.topic_id:
            raise topic_recreated(self.stream)
        if facts.partitions > self._partitions:
            added = range(self._partitions, facts.partitions)
            self._lost_prefixes.add(self._admin.begins({self.stream.topic: added})[self.stream.topic])
            self._reader.consumer.add(self.stream.topic, dict.fromkeys(added, -1))
            self._await(added)
            self._partitions = facts.partitions

    @property
    def backlog(self) -> int:
        """How many records are in the log, or came, that were not taken, as far as it is known."""
        return max(self._reader.consumer.backlog(self.stream.topic), self._channel.records)

    def poll(self, records_max: int, shedding: Shedding | None = None) -> TakenRows | None:
        """What came, at most so many records; None where nothing moved. shedding: how they are shed; None:
        they are not. Behind a heartbeat it ends: what is left comes with the next call. Records that name
        schemas nobody asked for wait, and so do those behind them. Raises OffsetLost.
        """
        if self._left:
            return self._left.popleft()
        for polled in self._reader.poll(records_max):
            moved = any(self._next.get(number, 0) != at for number, at in polled.next_offsets.items())
            if moved:
                begun = dict(self._next)
                self._next.update(polled.next_offsets)
                if shedding is None or not len(polled):
                    return self._taken(polled, self._decoded(polled))
                return self._shed(polled, shedding, begun)
        return None

    def _shed(self, polled: Polled, shedding: Shedding, begun: Mapping[int, int]) -> TakenRows:
        """Take up a poll that is shed. All records are taken, or all are left unread but for the last one of
        each partition, whose instants tell how far time has gone; where one of those gives no row, all are
        read. begun: by partition, where reading began.
        """
        shed = Shed(shedding.level, _ranges(polled, begun))
        if shedding.unread:
            lasts = polled.lasts()
            decoded = self._decoded(lasts)
            if len(decoded.batch) == len(lasts):
                shed = replace(shed, unread=len(polled) - len(lasts))
                return replace(self._taken(lasts, decoded, shed), size=_bytes(polled))
        return self._taken(polled, self._decoded(polled), shed)

    def _decoded(self, polled: Polled) -> Decoded:
        return decode_messages(
            self.stream, polled.messages, polled.values, polled.partition, polled.offset, polled.append_ms
        )

    def _taken(self, polled: Polled, decoded: Decoded, shed: Shed | None = None) -> TakenRows:
        bad = [(item.place, item.reason) for item in decoded.bad]
        rows = np.arange(len(polled))
        if len(decoded.batch) < len(polled):
            rows = np.delete(rows, [*(place for place, _ in bad), *decoded.heartbeats, *decoded.tombstones])
        for partition in decoded.batch.partitions():
            self._awaited.pop(partition, None)
        complete_from_ms = self._lost_prefixes.complete_from_ms(polled, decoded.batch)
        body = Records(
            self.stream.name,
            decoded.batch,
            polled.next_offsets,
            self.lagging,
            complete_from_ms=complete_from_ms,
            unreadable=len(bad),
            shed=shed,
            unknown_schemas=decoded.unknown_schemas,
        )
        taken = TakenRows(body, polled.messages, rows, bad, _bytes(polled), polled.ranges)
        if not decoded.heartbeats:
            return taken
        first, *left = cut_at_promises(taken, polled, decoded.heartbeats)
        self._left.extend(left)
        return first

    def close(self) -> None:
        self._reader.close()


def _bytes(polled: Polled) -> int:
    return sum(len(value) for value in polled.values if value is not None)


def _ranges(polled: Polled, begun: Mapping[int, int]) -> dict[int, tuple[int, int]]:
    """By partition: from where reading began, or its first record there, to where reading goes on."""
    firsts = {one.partition: one.first for one in reversed(polled.ranges)}
    return {
        number: (first, until)
        for number, until in polled.next_offsets.items()
        if (first := firsts.get(number, until) if begun.get(number, -1) < 0 else begun[number]) < until
    }

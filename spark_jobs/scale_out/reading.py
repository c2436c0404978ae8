"""Which records of its topics come next, for every stream, and whether those are the topics that were read.

Offsets mean records of one life of a topic. So each step carries the id of the topic, and a stream whose
topic was deleted, or is another one under the same name, is *lost*: nothing more is read of it and its NOW
stands still, while its rows stay answered and the others go on. It stays so, over later runs too, until it is
dropped and created again.

The id is looked at before the offsets of a micro-batch are chosen and once more when its records were read,
so records of another life are never taken for those that were meant.

Cost: five requests of Kafka a stream and micro-batch.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from engine.model.source import SourceName, Stream
from spark_jobs.errors import RecordsLost
from spark_jobs.scale_out.clock import with_time
from spark_jobs.scale_out.micro_batch import ClockState, RecordRange, SourceStep
from topics.admin import Admin
from tureen.errors import KafkaUnavailable, TopicMissing, TopicRecreated, TureenError


class Reading:
    """Used by the driver's thread alone.

    lost: why, of streams whose topics are. rows_max: records of one micro-batch. wait_ms: how long NOW waits
    for the first record of a partition, at most. accept_gap: go on where records went by retention.
    """

    def __init__(self, admin: Admin, *, rows_max: int, wait_ms: int, accept_gap: bool) -> None:
        self.lost: dict[SourceName, TureenError] = {}
        self._admin = admin
        self._rows_max = rows_max
        self._wait_ms = wait_ms
        self._accept_gap = accept_gap
        self._states: dict[SourceName, ClockState] = {}
        self._ids: dict[SourceName, str] = {}
        self._was_lost: set[SourceName] = set()
        self._moved: set[SourceName] = set()
        self._seen_s: dict[tuple[str, int], float] = {}

    def went_on(self, steps: Iterable[SourceStep]) -> None:
        """A micro-batch is done."""
        self._moved.clear()
        for step in steps:
            if any(one.first < one.until for one in step.ranges):
                self._moved.add(step.source)
            self._states[step.source] = step.after
            if step.topic_id:
                self._ids[step.source] = step.topic_id
            if step.lost:
                self._was_lost.add(step.source)

    def dropped(self, name: SourceName) -> None:
        """A stream went; it may be made anew in the same micro-batch."""
        self._states.pop(name, None)
        self._ids.pop(name, None)
        self._was_lost.discard(name)
        self.lost.pop(name, None)

    def steps(self, streams: Iterable[Stream]) -> tuple[SourceStep, ...]:
        """What comes next. Raises KafkaUnavailable, RecordsLost."""
        known = {stream.name: stream for stream in streams}
        found = [self._step(known[name]) for name in sorted(known)]
        behind = sum(one.until > one.first for step in found for one in step.ranges)
        share = max(1, self._rows_max // max(1, behind))
        return tuple(self._cut(known[step.source], step, share) for step in found)

    def without_lost(
        self, steps: Sequence[SourceStep], streams: Mapping[SourceName, Stream]
    ) -> tuple[SourceStep, ...]:
        """The steps; those with records of topics that are gone meanwhile without them. Raises
        KafkaUnavailable.
        """
        return tuple(
            replace(step, ranges=(), lagging=frozenset(), lost=True)
            if any(one.first < one.until for one in step.ranges) and self._gone(streams[step.source], step)
            else step
            for step in steps
        )

    def would_move(
        self,
        streams: Mapping[SourceName, Stream],
        timed: Collection[SourceName],
        steps: Sequence[SourceStep],
        ms: int,
    ) -> bool:
        """Whether NOW goes on with the clock alone, of a stream whose queries need it or whose rows wait.

        streams: all. timed: whose queries do.
        """
        return any(
            with_time(streams[one.source], one, (), ms).now_ms != one.now_before_ms
            for one in steps
            if one.source in timed or self._waits(one)
        )

    def _waits(self, step: SourceStep) -> bool:
        """Whether rows may be above NOW; one that came at this very millisecond is."""
        now_ms = step.now_before_ms
        latest = [clock.timestamp_max_ms for clock in step.before.partitions.values()]
        return step.source in self._moved or any(
            at_ms is not None and (now_ms is None or at_ms > now_ms) for at_ms in latest
        )

    # --- one stream -----------------------------------------------------------------------------------

    def _step(self, stream: Stream) -> SourceStep:
        before = self._states.get(stream.name, ClockState())
        step = SourceStep(stream.name, stream.topic, (), frozenset(), before, self._ids.get(stream.name, ""))
        if self._gone(stream, step):
            return replace(step, lost=True)
        try:
            ends = self._admin.end_offsets(stream.topic)
            begins = self._admin.begin_offsets(stream.topic)
        except TopicMissing:  # this very moment
            self._lose(stream, _deleted(stream))
            return replace(step, lost=True)
        ranges = []
        for partition, end in sorted(ends.items()):
            clock = before.partitions.get(partition)
            at = None if clock is None else clock.next_offset
            if at is not None and at > end:  # of a Kafka that tells no ids
                self._lose(stream, _recreated(stream))
                return replace(step, lost=True)
            first = self._first(stream, partition, at, begins[partition])
            ranges.append(RecordRange(partition, first, end))
        return replace(step, ranges=tuple(ranges), topic_id=self._ids[stream.name])

    def _gone(self, stream: Stream, step: SourceStep) -> bool:
        """Whether the topic is not the one whose records were read, or are to be."""
        if stream.name in self._was_lost:
            if not isinstance(self.lost.get(stream.name), TopicRecreated):
                self._lose(stream, _deleted(stream) if self._is_missing(stream) else _recreated(stream))
            return True
        try:
            found = self._admin.topic_id(stream.topic)
        except TopicMissing:
            if not self._is_missing(stream):
                raise KafkaUnavailable(f"topic {stream.topic} is on its way") from None
            self._lose(stream, _deleted(stream))
            return True
        if step.topic_id and step.topic_id != found:
            self._lose(stream, _recreated(stream))
            return True
        self._ids[stream.name] = found
        return False

    def _is_missing(self, stream: Stream) -> bool:
        return stream.topic not in self._admin.topics()

    def _lose(self, stream: Stream, error: TureenError) -> None:
        self._was_lost.add(stream.name)
        self.lost[stream.name] = error

    def _first(self, stream: Stream, partition: int, known: int | None, begin: int) -> int:
        if known is None:
            return begin
        if known < begin and not stream.is_table:
            if not self._accept_gap:
                raise RecordsLost(
                    [f"{stream.topic}[{partition}] from {known} to {begin}"],
                    hint="its retention is too short for the pause; --accept-gap continues without them",
                )
            return begin
        return max(known, begin)

    def _cut(self, stream: Stream, step: SourceStep, share: int) -> SourceStep:
        ranges = tuple(
            RecordRange(one.partition, one.first, min(one.until, one.first + share)) for one in step.ranges
        )
        lagging = {
            cut.partition for cut, whole in zip(ranges, step.ranges, strict=True) if cut.until < whole.until
        }
        return replace(step, ranges=ranges, lagging=frozenset(lagging | self._awaited(stream, step)))

    def _awaited(self, stream: Stream, step: SourceStep) -> set[int]:
        """Partitions that never had a record, for a while: producers do not begin at the same moment."""
        wait_s = min(self._wait_ms, stream.idle_timeout_ms) / 1_000 if stream.event_time else 0.0
        now_s = time.monotonic()
        found = set()
        for one in step.ranges:
            known = step.before.partitions.get(one.partition)
            if (known is None or known.timestamp_max_ms is None) and one.first == one.until:
                since_s = self._seen_s.setdefault((step.topic, one.partition), now_s)
                if now_s - since_s < wait_s:
                    found.add(one.partition)
        return found


def _deleted(stream: Stream) -> TopicMissing:
    return TopicMissing(
        stream.topic,
        hint="results of its rows so far remain; create the topic again, then DROP "
        f"{stream.kind.upper()} {stream.name} and create it again",
    )


def _recreated(stream: Stream) -> TopicRecreated:
    return TopicRecreated(
        stream.topic,
        hint=f"DROP {stream.kind.upper()} {stream.name} and create it again to read the new topic",
    )

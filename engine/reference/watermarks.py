"""How NOW of a source goes on with its rows, heartbeats and the clock: one source, one step.

*   Event time. In a step over a stream a partition is *held* (not idle) when it lags, has rows in the step,
    or had a record less than ``idle_timeout_ms`` ago. This set stands for the whole step. A row too far
    ahead of the clock is a record as well: it keeps its partition active, but moves no timestamp and not
    NOW. A partition is known once a row or ``lagging`` named it.
*   NOW is brought up to date at the begin of the step and after each of its rows, never back. While no
    partition is held, it is at least the largest timestamp seen, and goes on with the clock from the
    instant at which the last partition fell idle if the stream says so.
*   Arrival time. A partition lags during a step while it has rows to come or is in ``lagging``, and then
    holds NOW below its last timestamp; NOW never passes clock - 1, where all others stand.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from engine.model.step import Refusal
from engine.reference.rows import Partition, Row, Source
from tureen.errors import HeartbeatRefused


@dataclass(slots=True)
class TakenIn:
    """Places of the batch's rows that were late or refused, and the partitions that are idle."""

    late: list[int] = field(default_factory=list)
    rejected: list[Refusal] = field(default_factory=list)
    idle: frozenset[int] = frozenset()


def take_in(source: Source, rows: list[Row], lagging: frozenset[int], clock_ms: int) -> TakenIn:
    """Take the rows of a step in as they come, and move NOW. Rows that are taken wait in ``pending``."""
    for partition in {row.partition for row in rows} | lagging:
        source.partitions.setdefault(partition, Partition())
    if source.stream.event_time:
        return _event_time(source, rows, lagging, clock_ms)
    _arrival_time(source, rows, lagging, clock_ms)
    return TakenIn()


def promise(source: Source, below: Mapping[int, int], clock_ms: int) -> None:
    """A heartbeat counts as a record of each partition whose watermark it raises. Raises HeartbeatRefused."""
    stream = source.stream
    if not stream.event_time:
        raise HeartbeatRefused("arrival time")
    if any(ms > clock_ms + stream.future_max_ms for ms in below.values()):
        raise HeartbeatRefused("future")
    for number, ms in below.items():
        partition = source.partitions.get(number, Partition())
        mark = partition.watermark(stream.lateness_ms)
        if mark is None or mark < ms - 1:
            source.partitions[number] = partition
            partition.promised = ms - 1
            partition.active_clock = clock_ms


def _event_time(source: Source, rows: list[Row], lagging: frozenset[int], clock_ms: int) -> TakenIn:
    taken = TakenIn()
    stream = source.stream
    held = set(lagging) | {row.partition for row in rows}
    for number, partition in source.partitions.items():
        if partition.active_clock is not None and clock_ms - partition.active_clock < stream.idle_timeout_ms:
            held.add(number)
    _watermark(source, held)
    for place, row in enumerate(rows):
        partition = source.partitions[row.partition]
        partition.active_clock = clock_ms
        if row.timestamp > clock_ms + stream.future_max_ms:
            taken.rejected.append(Refusal(place, "future"))
            continue
        if source.now is not None and row.timestamp <= source.now:
            taken.late.append(place)
        else:
            source.pending.append(row)
        seen = partition.timestamp_max
        partition.timestamp_max = row.timestamp if seen is None else max(seen, row.timestamp)
        _watermark(source, held)
    if not held:
        _all_idle(source, clock_ms)
    had_records = {n for n, partition in source.partitions.items() if partition.active_clock is not None}
    taken.idle = frozenset(had_records - held)
    return taken


def _watermark(source: Source, held: AbstractSet[int]) -> None:
    """NOW of event time: the least watermark of the held partitions, once each of them has one."""
    marks = [source.partitions[number].watermark(source.stream.lateness_ms) for number in held]
    seen = [mark for mark in marks if mark is not None]
    if seen and len(seen) == len(marks):
        source.raise_now(min(seen))


def _all_idle(source: Source, clock_ms: int) -> None:
    stream = source.stream
    partitions = source.partitions.values()
    seen = [p.timestamp_max for p in partitions if p.timestamp_max is not None]
    seen += [p.promised for p in partitions if p.promised is not None]
    if not seen:
        return
    source.raise_now(max(seen))
    if stream.idle_advances:
        idle_since = max(p.active_clock for p in partitions if p.active_clock is not None)
        source.raise_now(max(seen) + clock_ms - (idle_since + stream.idle_timeout_ms))


def _arrival_time(source: Source, rows: list[Row], lagging: frozenset[int], clock_ms: int) -> None:
    _arrival_now(source, clock_ms, {row.partition for row in rows} | lagging)
    for place, row in enumerate(rows):
        partition = source.partitions[row.partition]
        seen = partition.timestamp_max
        timestamp = row.timestamp
        if source.stream.is_table:
            timestamp = min(timestamp, clock_ms)
            timestamp = timestamp if seen is None else max(timestamp, seen)
        timestamp = timestamp if source.now is None else max(timestamp, source.now + 1)
        source.pending.append(replace(row, timestamp=timestamp))
        partition.timestamp_max = timestamp if seen is None else max(seen, timestamp)
        _arrival_now(source, clock_ms, {later.partition for later in rows[place + 1 :]} | lagging)


def _arrival_now(source: Source, clock_ms: int, behind: AbstractSet[int]) -> None:
    watermarks = [clock_ms - 1]
    for number in behind:
        timestamp = source.partitions[number].timestamp_max
        if timestamp is None:
            return
        watermarks.append(timestamp - 1)
    source.raise_now(min(watermarks))

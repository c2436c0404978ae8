"""One pass over the rows of a step: do they follow, when are they, which are late, where does NOW stand.

Row by row, because the answer must not depend on how the input was cut into batches. While rows of one
partition come, the others stand still, so a row costs O(1), and a change of partition O(partitions).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel

NEVER = np.iinfo(np.int64).min
"""Stands for a timestamp, a clock or NOW that does not exist yet: below every instant."""

_NOBODY = np.iinfo(np.int64).max

FOLLOWS, NEW_PARTITION, OUT_OF_ORDER = 0, 1, 2
"""What a step's rows are to the last one's. Only where they follow is anything written."""


class Arrived(NamedTuple):
    """Rows of a step, in the order in which lateness is decided."""

    partition: npt.NDArray[np.int32]
    """[n]"""
    offset: npt.NDArray[np.int64]
    """[n]"""
    timestamp: npt.NDArray[np.int64]
    """[n], ms: event time, or the log's append time."""


class Partitions(NamedTuple):
    """What is known of each partition, by its slot."""

    slot_of: npt.NDArray[np.int32]
    """By partition number; -1: none has come yet."""
    next_offset: npt.NDArray[np.int64]
    """Its next record is at or after this offset; updated."""
    latest: npt.NDArray[np.int64]
    """Largest timestamp seen or NEVER; updated."""
    promised: npt.NDArray[np.int64]
    """No row at or before this instant follows, as a heartbeat said; NEVER: none has. Event time alone."""
    active: npt.NDArray[np.int64]
    """Clock at which it last had records or a heartbeat, or NEVER; updated."""
    lagging: npt.NDArray[np.bool_]
    """More records wait in the log than the step has."""
    idle: npt.NDArray[np.bool_]
    """Written: it had records or a heartbeat once and holds NOW back no more. Event time alone."""


class Rules(NamedTuple):
    """How time passes in a stream."""

    event_time: bool
    margin_ms: int
    """lateness + 1"""
    future_max_ms: int
    idle_timeout_ms: int
    idle_advances: bool
    by_offset: bool = False
    """In arrival time: producers may have written the timestamps, so an instant is neither before that of
    the record before it in its partition nor after the clock."""


class Admission(NamedTuple):
    """What came of a step."""

    follows: int
    """FOLLOWS, NEW_PARTITION or OUT_OF_ORDER; in the latter two cases the rest means nothing."""
    culprit: int
    """The partition that does not follow."""
    now_ms: int
    late: int
    """Rows that came at or before NOW."""
    rejected: int
    """Rows too far ahead of the clock."""
    in_order: bool
    """Whether the others ascend by (timestamp, partition, offset)."""


@kernel
def _follow(
    arrived: Arrived, partitions: Partitions, checked: bool, rows_of: npt.NDArray[np.int64]
) -> tuple[int, int]:
    slot_of = partitions.slot_of
    next_offset = partitions.next_offset.copy()
    n = arrived.partition.shape[0]
    first = 0
    while first < n:
        partition = arrived.partition[first]
        if partition < 0 or partition >= slot_of.shape[0] or slot_of[partition] < 0:
            return NEW_PARTITION, int(partition)
        slot = slot_of[partition]
        after = _end_of_run(arrived.partition, first)
        offsets = arrived.offset[first:after]
        if checked and (offsets[0] < next_offset[slot] or offsets[0] < 0 or not _ascend(offsets, True)):
            return OUT_OF_ORDER, int(partition)
        next_offset[slot] = offsets[-1] + 1
        rows_of[slot] += after - first
        first = after
    if checked:
        partitions.next_offset[:] = next_offset
    return FOLLOWS, -1


@kernel
def _end_of_run(partition: npt.NDArray[np.int32], first: int) -> int:
    """Where rows of another partition begin."""
    after = first + 1
    while after < partition.shape[0] and partition[after] == partition[first]:
        after += 1
    return after


@kernel
def _ascend(values: npt.NDArray[np.int64], strictly: bool) -> bool:
    """Whether none is below the one before, or equal to it. One pass without a branch."""
    wrong = 0
    for i in range(1, values.shape[0]):
        wrong += (values[i] < values[i - 1]) | (strictly & (values[i] == values[i - 1]))
    return wrong == 0


@kernel
def follow(arrived: Arrived, partitions: Partitions) -> tuple[int, int]:
    """Whether rows follow, and the partition that does not; where they do, reading goes on behind them."""
    return _follow(arrived, partitions, True, np.zeros(partitions.latest.shape[0], np.int64))


@kernel
def _watermark(largest: int, promised: int, margin_ms: int) -> int:
    """The watermark of a partition: by its rows or by what a heartbeat promised, whichever is later; or
    NEVER.
    """
    if largest == NEVER:
        return promised
    return max(largest - margin_ms, promised)


@kernel
def _event_time(
    arrived: Arrived,
    partitions: Partitions,
    rules: Rules,
    clock_ms: int,
    now_ms: int,
    rows_of: npt.NDArray[np.int64],
    fate: npt.NDArray[np.uint8],
) -> tuple[int, int, int]:
    latest, promised, active = partitions.latest, partitions.promised, partitions.active
    margin_ms = rules.margin_ms
    held = latest.shape[0]
    holds = np.empty(held, np.bool_)
    least = _NOBODY
    for p in range(held):
        recent = active[p] != NEVER and clock_ms - active[p] < rules.idle_timeout_ms
        holds[p] = recent or partitions.lagging[p] or rows_of[p] > 0
        if holds[p]:
            least = min(least, _watermark(latest[p], promised[p], margin_ms))
    if least != NEVER and least != _NOBODY:
        now_ms = max(now_ms, least)
    rejected_above_ms = clock_ms + rules.future_max_ms
    late, rejected = 0, 0
    n = arrived.timestamp.shape[0]
    row = 0
    while row < n:
        partition = arrived.partition[row]
        slot = partitions.slot_of[partition]
        others = _NOBODY
        for p in range(held):
            if holds[p] and p != slot:
                others = min(others, _watermark(latest[p], promised[p], margin_ms))
        largest = latest[slot]
        after = _end_of_run(arrived.partition, row)
        stamps = arrived.timestamp[row:after]
        if stamps[0] > now_ms and stamps[-1] <= rejected_above_ms and _ascend(stamps, False):
            # The margin keeps NOW below the largest timestamp, and what was promised is in NOW already as far
            # as the others let it, so none of these is late.
            largest = max(largest, stamps[-1])
            least = min(_watermark(largest, promised[slot], margin_ms), others)
            if least != NEVER:
                now_ms = max(now_ms, least)
            row = after
        while row < after:
            timestamp = arrived.timestamp[row]
            if timestamp > rejected_above_ms:
                fate[row] = 2
                rejected += 1
            else:
                is_late = timestamp <= now_ms
                fate[row] = is_late
                late += is_late
                if timestamp > largest:
                    largest = timestamp
                    least = min(_watermark(largest, promised[slot], margin_ms), others)
                    if least != NEVER:
                        now_ms = max(now_ms, least)
            row += 1
        latest[slot] = largest
    return now_ms, late, rejected


@kernel
def _arrival_time(
    arrived: Arrived,
    partitions: Partitions,
    clock_ms: int,
    now_ms: int,
    rows_of: npt.NDArray[np.int64],
    instant: npt.NDArray[np.int64],
    by_offset: bool,
) -> int:
    latest, lagging = partitions.latest, partitions.lagging
    held = latest.shape[0]
    least = clock_ms
    for p in range(held):
        if lagging[p] or rows_of[p] > 0:
            least = min(least, latest[p])
    if least != NEVER:
        now_ms = max(now_ms, least - 1)
    n = arrived.timestamp.shape[0]
    row = 0
    while row < n:
        partition = arrived.partition[row]
        slot = partitions.slot_of[partition]
        others = clock_ms
        for p in range(held):
            if p != slot and (lagging[p] or rows_of[p] > 0):
                others = min(others, latest[p])
        largest = latest[slot]
        waiting = rows_of[slot]
        while row < n and arrived.partition[row] == partition:
            timestamp = arrived.timestamp[row]
            if by_offset:
                timestamp = max(min(timestamp, clock_ms), largest)
            if now_ms != NEVER and timestamp <= now_ms:
                timestamp = now_ms + 1
            instant[row] = timestamp
            largest = max(largest, timestamp)
            waiting -= 1
            least = others
            if waiting > 0 or lagging[slot]:
                least = min(least, largest)
            if least != NEVER:
                now_ms = max(now_ms, least - 1)
            row += 1
        latest[slot] = largest
        rows_of[slot] = waiting
    return now_ms


@kernel
def _when_all_are_idle(partitions: Partitions, rules: Rules, clock_ms: int, now_ms: int) -> int:
    """Say who is idle; NOW, which goes to the largest timestamp or promise, maybe on, when none holds it."""
    latest, active = partitions.latest, partitions.active
    holding = 0
    largest = NEVER
    last_active = NEVER
    for p in range(latest.shape[0]):
        recent = active[p] != NEVER and clock_ms - active[p] < rules.idle_timeout_ms
        holds = recent or partitions.lagging[p]
        partitions.idle[p] = active[p] != NEVER and not holds
        holding += holds
        largest = max(largest, latest[p], partitions.promised[p])
        last_active = max(last_active, active[p])
    if holding > 0 or largest == NEVER:
        return now_ms
    if rules.idle_advances and last_active != NEVER:
        largest += max(0, clock_ms - (last_active + rules.idle_timeout_ms))
    return max(now_ms, largest)


@kernel
def _taken_in_order(
    arrived: Arrived, timestamp: npt.NDArray[np.int64], fate: npt.NDArray[np.uint8], dropped: int
) -> bool:
    partition, offset = arrived.partition, arrived.offset
    n = timestamp.shape[0]
    one = n > 0 and dropped == 0 and _end_of_run(partition, 0) == n
    if one and _ascend(timestamp, False) and _ascend(offset, True):
        return True
    before = -1
    for row in range(n):
        if dropped > 0 and fate[row] != 0:
            continue
        if before >= 0 and timestamp[row] <= timestamp[before]:
            if timestamp[row] < timestamp[before]:
                return False
            if partition[row] < partition[before]:
                return False
            if partition[row] == partition[before] and offset[row] < offset[before]:
                return False
        before = row
    return True


@kernel
def admit(
    arrived: Arrived,
    partitions: Partitions,
    rules: Rules,
    checked: bool,
    clock_ms: int,
    now_ms: int,
    fate: npt.NDArray[np.uint8],
    instant: npt.NDArray[np.int64],
) -> Admission:
    """Take the rows of a step, or none as the clock goes on, and say what came of them.

    checked: whether offsets have to follow. now_ms: NOW before, or NEVER.
    fate: uint8[n], zero, written in event time: 1 the row is late, 2 rejected, 0 it is taken.
    instant: int64[n], written in arrival time: max(log timestamp, NOW + 1), NOW as it stands before the row;
    by offset max(min(log timestamp, clock), that of the record before it, NOW + 1).
    O(rows + runs of one partition * partitions).
    """
    rows_of = np.zeros(partitions.latest.shape[0], np.int64)
    follows, culprit = _follow(arrived, partitions, checked, rows_of)
    if follows != FOLLOWS:
        return Admission(follows, culprit, now_ms, 0, 0, False)
    late = 0
    rejected = 0
    if rules.event_time:
        now_ms, late, rejected = _event_time(arrived, partitions, rules, clock_ms, now_ms, rows_of, fate)
    for p in range(rows_of.shape[0]):
        if rows_of[p] > 0:
            partitions.active[p] = clock_ms
    if rules.event_time:
        now_ms = _when_all_are_idle(partitions, rules, clock_ms, now_ms)
        in_order = _taken_in_order(arrived, arrived.timestamp, fate, late + rejected)
    else:
        now_ms = _arrival_time(arrived, partitions, clock_ms, now_ms, rows_of, instant, rules.by_offset)
        in_order = _taken_in_order(arrived, instant, fate, 0)
    return Admission(FOLLOWS, -1, now_ms, late, rejected, in_order)


@kernel
def in_order(
    timestamps: npt.NDArray[np.int64], partitions: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64]
) -> bool:
    """Whether rows ascend by (timestamp, partition, offset)."""
    for row in range(1, timestamps.shape[0]):
        if _before(timestamps, partitions, offsets, row, row - 1):
            return False
    return True


@kernel
def _before(
    timestamps: npt.NDArray[np.int64],
    partitions: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
    row: int,
    other: int,
) -> bool:
    if timestamps[row] != timestamps[other]:
        return bool(timestamps[row] < timestamps[other])
    if partitions[row] != partitions[other]:
        return bool(partitions[row] < partitions[other])
    return bool(offsets[row] < offsets[other])


@kernel
def order_of(
    timestamps: npt.NDArray[np.int64],
    partitions: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
    order: npt.NDArray[np.int64],
    scratch: npt.NDArray[np.int64],
) -> None:
    """order: int64[n], written: the rows by (timestamp, partition, offset), equal ones as they come.

    Runs that ascend already are merged two by two: O(n log runs). scratch: int64[n].
    """
    n = timestamps.shape[0]
    starts = np.empty(n + 1, np.int64)
    runs = 0
    for row in range(n):
        order[row] = row
        if row == 0 or _before(timestamps, partitions, offsets, row, row - 1):
            starts[runs] = row
            runs += 1
    starts[runs] = n
    source, target = order, scratch
    turned = False
    while runs > 1:
        merged = 0
        for run in range(0, runs, 2):
            low, middle = starts[run], starts[run + 1]
            high = starts[run + 2] if run + 1 < runs else middle
            left, right = low, middle
            for place in range(low, high):
                if right < high and (
                    left == middle or _before(timestamps, partitions, offsets, source[right], source[left])
                ):
                    target[place] = source[right]
                    right += 1
                else:
                    target[place] = source[left]
                    left += 1
            starts[merged] = low
            merged += 1
        starts[merged] = n
        runs = merged
        source, target = target, source
        turned = not turned
    if turned:
        order[:] = scratch

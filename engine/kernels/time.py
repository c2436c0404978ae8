"""NOW, row by row: which rows are late, which lie too far ahead, and where NOW stands after them.

Row by row because the answer must not depend on how the input was cut into batches.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel

NEVER = np.iinfo(np.int64).min
"""Stands for a timestamp or NOW that does not exist yet: below every instant."""


@kernel
def advance_event_time(
    slots: npt.NDArray[np.int32],
    timestamps: npt.NDArray[np.int64],
    latest: npt.NDArray[np.int64],
    holds: npt.NDArray[np.bool_],
    margin_ms: int,
    rejected_above_ms: int,
    now_ms: int,
    fate: npt.NDArray[np.uint8],
) -> int:
    """Take rows in order and return NOW after them.

    slots: int32[n], the partition of each row as a place in latest and holds.
    latest: int64[partitions], largest timestamp seen or NEVER; updated.
    holds: bool[partitions], the partitions that hold NOW back, fixed for the step.
    margin_ms: lateness + 1. now_ms: NOW before, or NEVER.
    fate: uint8[n], written: 0 the row is taken, 1 it is late (at or before NOW), 2 rejected.
    O(n * partitions) at worst, O(n) while one partition alone is behind.
    """
    partitions = latest.shape[0]
    behind = -1
    for row in range(-1, timestamps.shape[0]):
        if row >= 0:
            timestamp = timestamps[row]
            if timestamp > rejected_above_ms:
                fate[row] = 2
                continue
            fate[row] = 1 if timestamp <= now_ms else 0
            slot = slots[row]
            if timestamp <= latest[slot]:
                continue
            latest[slot] = timestamp
            if slot != behind and behind >= 0:
                continue
        behind = -1
        for p in range(partitions):
            if holds[p] and (behind < 0 or latest[p] < latest[behind]):
                behind = p
        if behind >= 0 and latest[behind] != NEVER:
            now_ms = max(now_ms, latest[behind] - margin_ms)
    return now_ms


@kernel
def advance_arrival_time(
    slots: npt.NDArray[np.int32],
    timestamps: npt.NDArray[np.int64],
    latest: npt.NDArray[np.int64],
    waiting: npt.NDArray[np.int64],
    lagging: npt.NDArray[np.bool_],
    clock_ms: int,
    now_ms: int,
    out: npt.NDArray[np.int64],
) -> int:
    """Give every row its arrival instant and return NOW after them.

    A partition with rows still to come stands at its last log timestamp, one that is fully read at the
    clock; NOW stays 1 ms behind the least of them.

    slots, latest as in :func:`advance_event_time`. waiting: int64[partitions], rows of each still to come
    in this step; counted down. lagging: bool[partitions]: more records wait in the log.
    out: int64[n], written: max(log timestamp, NOW + 1), NOW as it stands before the row.
    """
    partitions = latest.shape[0]
    for row in range(-1, timestamps.shape[0]):
        if row >= 0:
            timestamp = timestamps[row]
            if now_ms != NEVER and timestamp <= now_ms:
                timestamp = now_ms + 1
            out[row] = timestamp
            slot = slots[row]
            latest[slot] = max(latest[slot], timestamp)
            waiting[slot] -= 1
        least = clock_ms - 1
        known = True
        for p in range(partitions):
            if lagging[p] or waiting[p] > 0:
                if latest[p] == NEVER:
                    known = False
                else:
                    least = min(least, latest[p] - 1)
        if known:
            now_ms = max(now_ms, least)
    return now_ms


@kernel
def in_order(
    timestamps: npt.NDArray[np.int64], partitions: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64]
) -> bool:
    """Whether rows ascend by (timestamp, partition, offset)."""
    for row in range(1, timestamps.shape[0]):
        before = timestamps[row - 1]
        if timestamps[row] > before:
            continue
        if timestamps[row] < before:
            return False
        if partitions[row] < partitions[row - 1]:
            return False
        if partitions[row] == partitions[row - 1] and offsets[row] < offsets[row - 1]:
            return False
    return True

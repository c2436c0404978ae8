"""Time of a stream on many executors: what each row's fate is, without anybody seeing all rows.

The broker decides lateness and NOW row by row, in the order of partitions and offsets. A row moves the clock
only by being its partition's largest timestamp so far, and within a step who holds NOW back is fixed. So
the clock stands the same after a piece of rows as after one row alone that has the largest of their
timestamps (of those that are not refused). An executor that has the clock before the micro-batch and such a
summary of every other piece runs the broker's own clock over summaries, its piece, and summaries again:

    partition 0          partition 1                      partition 2
    [max] [max] [max]    [max] [row row row row] [max]    [max]
                                 its own piece

What it says of the rows of its piece is what the broker's clock says of them in a step of all rows.

Cost: O(rows of the piece + pieces), where one partition alone is behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from engine.model.batch import Batch, Int64Array
from engine.model.persistence import PartitionClock
from engine.model.source import Schema, Stream
from engine.windows.source_clock import SourceClock
from spark_jobs.scale_out.micro_batch import ClockState, SourceStep, Summary

_NO_COLUMNS = Schema(())


@dataclass(frozen=True, slots=True)
class Fates:
    """What the clock said of some rows of a step, as in :class:`engine.windows.source_clock.Passage`."""

    fate: npt.NDArray[np.uint8]
    timestamp: Int64Array


def with_time(stream: Stream, step: SourceStep, summaries: Sequence[Summary], clock_ms: int) -> SourceStep:
    """The step with the summaries of its rows, and its time after them; of a lost source it stands still."""
    if step.lost:
        return replace(step, summaries=(), after=step.before)
    ordered = tuple(sorted(summaries))
    clock = _clock(stream, step.before)
    clock.records(_rows(ordered, []), clock_ms, step.lagging)
    partitions = clock.partitions(step.next_offsets)
    after = ClockState(clock.now_ms, clock.clock_ms, partitions)
    return replace(step, summaries=ordered, after=after)


def passage(
    stream: Stream, step: SourceStep, clock_ms: int, partition: int, first: int, timestamps: Int64Array
) -> Fates:
    """What the clock says of the rows of one piece, which is one of ``step.summaries``.

    timestamps: int64[n], as decoded. first: the offset that its summary has.
    """
    clock = _clock(stream, step.before)
    place = [(one.partition, one.first) for one in step.summaries].index((partition, first))
    before, after = step.summaries[:place], step.summaries[place + 1 :]
    own = Batch(
        _NO_COLUMNS, (), np.full(len(timestamps), partition, np.int32), np.arange(len(timestamps)), timestamps
    )
    head = _rows(before, [])
    rows = _rows(before, [own, _rows(after, [])])
    found = clock.records(rows, clock_ms, step.lagging)
    mine = slice(len(head), len(head) + len(timestamps))
    return Fates(found.fate[mine], found.timestamp[mine])


def never_late_above(
    before_ms: int | None, latest_ms: int | None, timestamps: Int64Array, lateness_ms: int
) -> Int64Array:
    """int64[n]: for each row of a partition in order an instant such that the row is not late if it is later.

    NOW is never above the watermark of a partition that has rows in the step, but where it was before.
    latest_ms: the largest timestamp of the partition before the first of them.
    """
    lowest = np.iinfo(np.int64).min // 2
    start = lowest if latest_ms is None else latest_ms
    running = np.maximum.accumulate(np.concatenate([[start], timestamps]))[:-1]
    bound: Int64Array = np.maximum(running - (lateness_ms + 1), lowest if before_ms is None else before_ms)
    return bound


def _clock(stream: Stream, state: ClockState) -> SourceClock:
    clock = SourceClock(stream)
    partitions: dict[int, PartitionClock] = dict(state.partitions)
    clock.restore(state.now_ms, state.clock_ms, partitions)
    return clock


def _rows(summaries: Sequence[Summary], more: Sequence[Batch]) -> Batch:
    """One row for each piece; one that the clock refuses where all its rows are refused."""
    refused = np.iinfo(np.int64).max
    partition = np.array([one.partition for one in summaries], np.int32)
    timestamp = np.array([refused if one.max_ms is None else one.max_ms for one in summaries], np.int64)
    return Batch(
        _NO_COLUMNS,
        (),
        np.concatenate([partition, *(one.partition for one in more)]).astype(np.int32),
        np.arange(len(partition) + sum(map(len, more)), dtype=np.int64),
        np.concatenate([timestamp, *(one.timestamp for one in more)]).astype(np.int64),
    )

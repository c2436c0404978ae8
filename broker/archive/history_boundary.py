"""The history boundary between archived and retained rows of a stream: what lies before it, whether it is
closed.

A stream holds every row from an instant on, the history boundary: from ``retained_from_ms``, or, where its
topic had lost records before the stream came, from when on it has all of them, if that is later. What lies
before is the archive's, so no row is there twice:

* in event time a row's instant is its own, so the instant decides;
* in arrival time the broker gives a row a later instant than the log did where the log's times step back, so
  one that it holds may lie before the history boundary by the archive's account. Such a row is the stream's,
  by its partition and offset, be it visible or waiting for NOW; and so is one that the stream has yet to
  read.

No row is missed once the history boundary is *closed*: whatever was before it is archived. Per partition that
is so when the archive has all that the stream has read and does not hold, or has come so far that a row it
lacks is late by the account of its own partition: its watermark has passed the history boundary. In arrival
time nothing is late; there the archive has to be past the history boundary by more than the times of a log
ever step back.

How far the archive has come is told by the largest timestamp it has. It may be of a row that the stream
refused, as too far ahead of the clock of then; such a row says nothing of when others came. So where a stream
ever refused a row it takes its own word: the archive is past the history boundary when it has one of the rows
that the stream holds whose watermark is past it.

Pure. Cost: O(partitions), and O(rows held) in arrival time and where rows were refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from engine.model.batch import Batch, BoolArray, Int64Array
from engine.model.source import Stream
from storage.archive.coverage import Coverage, disorder_ms


@dataclass(frozen=True, slots=True)
class HistoryBoundary:
    """Where a stream's own rows begin.

    before_ms: the history boundary. clock_ms: the time of day. next_offsets: where it goes on reading, by
    partition. held: in arrival time the offsets of the rows that it holds, ascending, by partition; else
    nothing. passed: in event time, where the stream refused rows, the first offset of a row that it holds
    whose watermark is past the history boundary, by partition; None: it never refused one.
    """

    stream: Stream
    before_ms: int
    clock_ms: int
    next_offsets: Mapping[int, int]
    held: Mapping[int, Int64Array] = field(default_factory=dict)
    passed: Mapping[int, int] | None = None

    def behind(self, coverage: Coverage) -> list[int]:
        """The partitions for which the archive has yet to catch up; none: the history boundary is closed."""
        return [
            partition
            for partition, next_offset in sorted(self.next_offsets.items())
            if next_offset > 0 and not self._is_reached(coverage, partition, next_offset)
        ]

    def _is_reached(self, coverage: Coverage, partition: int, next_offset: int) -> bool:
        covered = coverage.partitions.get(partition)
        if covered is None:
            return False
        if not self.stream.event_time:
            held = self.held.get(partition)
            if held is not None:  # so many up to the last one read are all there
                there = held == np.arange(next_offset - len(held), next_offset)
                next_offset -= len(there) if there.all() else int(np.argmin(there[::-1]))
        if covered.next_offset >= next_offset:
            return True
        if self.passed is not None:
            return covered.next_offset > self.passed.get(partition, covered.next_offset)
        if covered.max_ms is None or covered.max_ms > self.clock_ms + self.stream.future_max_ms:
            return False  # the archive's clock is ahead: the stream would refuse such a row
        return covered.max_ms - disorder_ms(self.stream) > self.before_ms

    def missing(self, rows: Batch, below: Mapping[int, int]) -> BoolArray:
        """bool[n]: archived rows before the history boundary that the stream does not hold.

        below: the offset, by partition, from which on rows are passed over as not archived yet.
        """
        wanted: BoolArray = rows.timestamp < self.before_ms
        for partition in rows.partitions():
            wanted &= (rows.partition != partition) | (rows.offset < below.get(partition, 0))
        if self.stream.event_time:
            return wanted
        for partition in rows.partitions():
            here = rows.partition == partition
            offsets = rows.offset[here]
            known = offsets >= self.next_offsets.get(partition, 0)
            held = self.held.get(partition)
            if held is not None and len(held) and len(offsets) and offsets.max() >= held[0]:
                known |= np.isin(offsets, held)
            wanted[here] &= ~known
        return wanted


def held_offsets(
    partition: np.ndarray[tuple[int], np.dtype[np.int32]], offset: Int64Array
) -> dict[int, Int64Array]:
    """int32[n], int64[n] -> the offsets of each partition, ascending. O(n log n)."""
    return {int(one): np.sort(offset[partition == one]) for one in np.unique(partition)}


def passed_offsets(held: Iterable[Batch], after_ms: int) -> dict[int, int]:
    """The first offset of each partition among rows later than an instant. O(n * partitions)."""
    found: dict[int, int] = {}
    for rows in held:
        later = rows.timestamp > after_ms
        for one in rows.partitions():
            offsets = rows.offset[later & (rows.partition == one)]
            if len(offsets):
                found[one] = min(int(offsets.min()), found.get(one, int(offsets[0])))
    return found

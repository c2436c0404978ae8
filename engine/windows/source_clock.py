"""NOW of a stream: watermarks of its partitions, idle ones left out, never back.

Event time. A partition's watermark is (largest timestamp seen - lateness - 1 ms). A partition *holds* NOW
back in a step if it has records in the step, or waiting in the log, or had some within the idle timeout;
NOW is the least watermark of those. A partition with unread records is never idle, however long ago its last
record came: otherwise a partition that is read first would make all rows of the others late. When none
holds, NOW goes to the largest timestamp seen and, if the stream says IDLE ADVANCES, on with the clock.

Arrival time. A partition with unread records stands at its last log timestamp, a fully read one at the
clock; NOW is 1 ms behind the least. Nothing is late: a row's instant is at least NOW + 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.kernels.time import NEVER, advance_arrival_time, advance_event_time
from engine.model.batch import Batch, BoolArray, Int64Array
from engine.model.source import Stream
from engine.persistence import PartitionClock

TAKEN, LATE, REJECTED = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Passage:
    """What the clock said of a step's rows.

    fate: uint8[n]: TAKEN, LATE or REJECTED. timestamp: int64[n], the instant each row has.
    """

    fate: npt.NDArray[np.uint8]
    timestamp: Int64Array


class SourceClock:
    """The time of one stream. ``now_ms`` is None until there is a NOW."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.now_ms: int | None = None
        self.clock_ms = 0
        self.idle: frozenset[int] = frozenset()
        self._partitions: dict[int, int] = {}
        self._latest = np.zeros(0, np.int64)
        self._active = np.zeros(0, np.int64)

    def records(self, rows: Batch, clock_ms: int, lagging: frozenset[int]) -> Passage:
        """Move on over a step's rows, in their order. O(rows + partitions)."""
        self.clock_ms = max(self.clock_ms, clock_ms)
        slots = self._slots_of(rows, lagging)
        present = np.zeros(len(self._latest), np.bool_)
        present[slots] = True
        fate = np.zeros(len(rows), np.uint8)
        now_ms = NEVER if self.now_ms is None else self.now_ms
        if self.stream.event_time:
            holds = self._holding(lagging) | present
            timestamp = rows.timestamp
            now_ms = advance_event_time(
                slots,
                timestamp,
                self._latest,
                holds,
                self.stream.lateness_ms + 1,
                self.clock_ms + self.stream.future_max_ms,
                now_ms,
                fate,
            )
        else:
            timestamp = np.empty(len(rows), np.int64)
            now_ms = advance_arrival_time(
                slots,
                rows.timestamp,
                self._latest,
                np.bincount(slots, minlength=len(self._latest)).astype(np.int64),
                self._lagging(lagging),
                self.clock_ms,
                now_ms,
                timestamp,
            )
        self._active[present] = self.clock_ms
        self.now_ms = None if now_ms == NEVER else int(now_ms)
        self._settle(lagging)
        return Passage(fate, timestamp)

    def follow(self, now_ms: int | None, clock_ms: int) -> None:
        """Go where another clock went that saw all rows. NOW does not go back."""
        self.clock_ms = max(self.clock_ms, clock_ms)
        if now_ms is not None:
            self.now_ms = now_ms if self.now_ms is None else max(self.now_ms, now_ms)

    def heartbeat(self, empty: Batch, clock_ms: int, lagging: frozenset[int]) -> None:
        """The clock went on without records. empty: a batch of the schema with no row."""
        self.records(empty, clock_ms, lagging)

    def _settle(self, lagging: frozenset[int]) -> None:
        """After a step: who is idle, and NOW when all are."""
        holds = self._holding(lagging)
        if not self.stream.event_time:
            return
        quiet = (self._active != NEVER) & ~holds
        self.idle = frozenset(p for p, slot in self._partitions.items() if quiet[slot])
        if holds.any():
            return
        seen = self._latest != NEVER
        if not seen.any():
            return
        now_ms = int(self._latest[seen].max())
        if self.stream.idle_advances:
            now_ms += max(0, self.clock_ms - self.idle_since_clock_ms())
        self.now_ms = now_ms if self.now_ms is None else max(self.now_ms, now_ms)

    def idle_since_clock_ms(self) -> int:
        """The clock at which the last partition that had records fell idle."""
        seen = self._active != NEVER
        return int(self._active[seen].max()) + self.stream.idle_timeout_ms

    def next_change_clock_ms(self) -> int | None:
        """The clock at which a heartbeat would first change something; None: not by the clock alone.

        A hint for whoever makes the steps; partitions that lag are not considered.
        """
        if not self.stream.event_time:
            return self.clock_ms + 1
        seen = self._active != NEVER
        if not seen.any():
            return None
        falls = self._active[seen] + self.stream.idle_timeout_ms
        waiting = falls[falls > self.clock_ms]
        if len(waiting):
            return int(waiting.min())
        return self.clock_ms + 1 if self.stream.idle_advances else None

    def _holding(self, lagging: frozenset[int]) -> BoolArray:
        recent: BoolArray = (self._active != NEVER) & (
            self.clock_ms - self._active < self.stream.idle_timeout_ms
        )
        return recent | self._lagging(lagging)

    def _lagging(self, lagging: frozenset[int]) -> npt.NDArray[np.bool_]:
        mask = np.zeros(len(self._latest), np.bool_)
        for partition in lagging:
            mask[self._partitions[partition]] = True
        return mask

    def _slots_of(self, rows: Batch, lagging: frozenset[int]) -> npt.NDArray[np.int32]:
        """Each row's place in the state arrays; partitions never seen get one."""
        named = rows.partitions()
        for p in sorted({*named, *lagging} - self._partitions.keys()):
            self._partitions[p] = len(self._partitions)
            self._latest = np.append(self._latest, NEVER)
            self._active = np.append(self._active, NEVER)
        if len(named) == 1:
            return np.full(len(rows), self._partitions[named[0]], np.int32)
        lookup = np.zeros(max(named, default=0) + 1, np.int32)
        for p in named:
            lookup[p] = self._partitions[p]
        return lookup[rows.partition]

    def partitions(self, next_offsets: dict[int, int]) -> dict[int, PartitionClock]:
        """The state to save, with where reading goes on."""
        clocks = {}
        for p in sorted({*self._partitions, *next_offsets}):
            slot = self._partitions.get(p)
            latest = NEVER if slot is None else int(self._latest[slot])
            active = NEVER if slot is None else int(self._active[slot])
            clocks[p] = PartitionClock(
                None if latest == NEVER else latest,
                None if active == NEVER else active,
                next_offsets.get(p, 0),
            )
        return clocks

    def restore(self, now_ms: int | None, clock_ms: int, partitions: dict[int, PartitionClock]) -> None:
        """Back to a saved state."""
        self.now_ms = now_ms
        self.clock_ms = clock_ms
        self._partitions = {p: slot for slot, p in enumerate(partitions)}
        clocks = list(partitions.values())
        self._latest = np.array(
            [NEVER if c.timestamp_max_ms is None else c.timestamp_max_ms for c in clocks], np.int64
        )
        self._active = np.array(
            [NEVER if c.active_clock_ms is None else c.active_clock_ms for c in clocks], np.int64
        )

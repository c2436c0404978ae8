"""NOW of a stream: watermarks of its partitions, idle ones left out, never back.

Event time. A partition's watermark is (largest timestamp seen - lateness - 1 ms), or (h - 1 ms) where that is
later and a heartbeat promised that no row of it below h follows; such a heartbeat counts as a record here. A
partition *holds* NOW back in a step if it has records in the step, or waiting in the log, or had some within
the idle timeout; NOW is the least watermark of those. A partition with unread records is never idle, however
long ago its last record came: otherwise a partition that is read first would make all rows of the others
late. When none holds, NOW goes to the largest timestamp seen or promised and, if the stream says IDLE
ADVANCES, on with the clock.

Arrival time. A partition with unread records stands at its last log timestamp, a fully read one at the
clock; NOW is 1 ms behind the least. Nothing is late: a row's instant is at least NOW + 1. Versions of a table
come in the order of their offsets, whatever timestamps their producers gave them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.kernels import admission
from engine.kernels.admission import FOLLOWS, NEVER, NEW_PARTITION, Arrived, Partitions, Rules
from engine.model.batch import Batch, Int64Array
from engine.model.persistence import UNREAD, PartitionClock
from engine.model.source import Stream
from tureen.errors import StepOutOfOrder

TAKEN, LATE, REJECTED = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Passage:
    """What the clock said of a step's rows.

    fate: uint8[n]: TAKEN, LATE or REJECTED. timestamp: int64[n], the instant each row has. late, rejected:
    how many are. in_order: whether the others ascend by (timestamp, partition, offset).
    """

    fate: npt.NDArray[np.uint8]
    timestamp: Int64Array
    late: int
    rejected: int
    in_order: bool


@dataclass(frozen=True, slots=True)
class PartitionTime:
    """Where one partition stands. None: there is none yet.

    watermark_ms: no row at or before this instant is expected of it. latest_ms: the largest timestamp seen.
    promised_ms: what a heartbeat said, as a watermark. active_ms: the clock when it last had records or a
    heartbeat. idle_since_ms: the clock from which it holds NOW back no more; None: it does. next_offset:
    where reading goes on; None: nothing of it was read. behind_ms: by how much it alone holds NOW back: until
    the least watermark of the others; 0 where another one is not later.
    """

    partition: int
    watermark_ms: int | None
    latest_ms: int | None
    promised_ms: int | None
    active_ms: int | None
    idle_since_ms: int | None
    next_offset: int | None
    behind_ms: int


@dataclass(frozen=True, slots=True)
class ClockView:
    """The clock of a source at the end of a step, as readers see it. Made in O(partitions) of copied arrays;
    what it tells is computed when asked.
    """

    clock_ms: int
    rules: Rules
    slots: Mapping[int, int]
    state: Partitions

    def partitions(self, lagging: Collection[int] = ()) -> list[PartitionTime]:
        """The partitions that were met, by number. lagging: those with unread records.

        O(partitions log partitions).
        """
        state, rules = self.state, self.rules
        met = sorted((p, slot) for p, slot in [*self.slots.items()] if slot < len(state.latest))
        marks = {p: self._watermark(slot, p in lagging) for p, slot in met}
        holding = sorted(mark for p, slot in met if not state.idle[slot] and (mark := marks[p]) != NEVER)
        found = []
        for p, slot in met:
            idle, active_ms = bool(state.idle[slot]), _known(state.active[slot])
            mark = marks[p]
            alone = not idle and len(holding) > 1 and mark == holding[0]
            found.append(
                PartitionTime(
                    p,
                    _known(mark),
                    _known(state.latest[slot]),
                    _known(state.promised[slot]),
                    active_ms,
                    active_ms + rules.idle_timeout_ms if idle and active_ms is not None else None,
                    int(state.next_offset[slot]) if state.next_offset[slot] >= 0 else None,
                    holding[1] - mark if alone else 0,
                )
            )
        return found

    @property
    def latest_ms(self) -> int | None:
        """The largest timestamp that was seen. O(partitions)."""
        return _known(int(self.state.latest.max(initial=NEVER)))

    def _watermark(self, slot: int, lags: bool) -> int:
        state = self.state
        latest, promised = int(state.latest[slot]), int(state.promised[slot])
        if not self.rules.event_time:
            if not lags:
                return self.clock_ms - 1
            return NEVER if latest == NEVER else latest - 1
        return promised if latest == NEVER else max(latest - self.rules.margin_ms, promised)


def _known(value: int) -> int | None:
    return None if value == NEVER else int(value)


class SourceClock:
    """The time of one stream, and where reading it goes on. ``now_ms`` is None until there is a NOW."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.now_ms: int | None = None
        self.clock_ms = 0
        self.idle: frozenset[int] = frozenset()
        self._rules = Rules(
            stream.event_time,
            stream.lateness_ms + 1,
            stream.future_max_ms,
            stream.idle_timeout_ms,
            stream.idle_advances,
            stream.is_table and not stream.event_time,
        )
        self._partitions: dict[int, int] = {}
        self._state = _state_of({})

    def records(
        self, rows: Batch, clock_ms: int, lagging: frozenset[int], *, checked: bool = False
    ) -> Passage:
        """Move on over a step's rows, in their order. O(rows + partitions).

        checked: raise StepOutOfOrder, with nothing changed, where offsets do not follow those of the last
        step, and go on behind them.
        """
        clock_ms = max(self.clock_ms, clock_ms)
        event_time, n = self.stream.event_time, len(rows)
        instants = np.empty(0 if event_time else n, np.int64)
        fate = np.zeros(n, np.uint8)
        now_ms = NEVER if self.now_ms is None else self.now_ms
        arrived = Arrived(rows.partition, rows.offset, rows.timestamp)
        behind = [self._slot(partition) for partition in lagging]
        self._state.lagging[behind] = True
        beside = self._rules, checked, clock_ms, now_ms, fate, instants
        said = admission.admit(arrived, self._state, *beside)
        if said.follows == NEW_PARTITION:
            self._meet(rows)
            said = admission.admit(arrived, self._state, *beside)
        if lagging:
            self._state.lagging[:] = False
        if said.follows != FOLLOWS:
            raise self._out_of_order(said.culprit)
        self.clock_ms = clock_ms
        self.now_ms = None if said.now_ms == NEVER else said.now_ms
        if event_time:
            self.idle = self._idle()
        timestamp = rows.timestamp if event_time else instants
        return Passage(fate, timestamp, said.late, said.rejected, said.in_order)

    def follow(self, rows: Batch, now_ms: int | None, clock_ms: int) -> None:
        """Go where another clock went that saw all rows, of which these are some. NOW does not go back.

        Raises StepOutOfOrder, with nothing changed, where their offsets do not follow.
        """
        arrived = Arrived(rows.partition, rows.offset, rows.timestamp)
        follows, partition = admission.follow(arrived, self._state)
        if follows == NEW_PARTITION:
            self._meet(rows)
            follows, partition = admission.follow(arrived, self._state)
        if follows != FOLLOWS:
            raise self._out_of_order(partition)
        self.clock_ms = max(self.clock_ms, clock_ms)
        if now_ms is not None:
            self.now_ms = now_ms if self.now_ms is None else max(self.now_ms, now_ms)

    def _out_of_order(self, partition: int) -> StepOutOfOrder:
        return StepOutOfOrder(f"offsets of {self.stream.name}[{partition}] do not follow the last step")

    @property
    def lag_ms(self) -> int | None:
        """How far NOW is behind the clock; None before there is a NOW, and of one that has no clock."""
        if self.now_ms is None or not self.clock_ms:
            return None
        return max(0, self.clock_ms - self.now_ms)

    def heartbeat(self, empty: Batch, clock_ms: int, lagging: frozenset[int]) -> None:
        """The clock went on without records. empty: a batch of the schema with no row."""
        self.records(empty, clock_ms, lagging)

    def promise(self, below: Mapping[int, int], clock_ms: int) -> frozenset[int]:
        """No rows of these partitions below these instants follow. Those whose watermark rises by that; of
        the others nothing changes. NOW moves with the next step.
        """
        clock_ms = max(self.clock_ms, clock_ms)
        raised = self.raised_by(below)
        for partition in sorted(raised):
            slot = self._slot(partition)
            self._state.promised[slot] = below[partition] - 1
            self._state.active[slot] = clock_ms
        return raised

    def raised_by(self, below: Mapping[int, int]) -> frozenset[int]:
        """The partitions whose watermark is below what these heartbeats promise."""
        return frozenset(p for p, ms in below.items() if ms - 1 > self._watermark(p))

    def _watermark(self, partition: int) -> int:
        slot = self._partitions.get(partition)
        if slot is None:
            return NEVER
        latest, promised = int(self._state.latest[slot]), int(self._state.promised[slot])
        return promised if latest == NEVER else max(latest - self._rules.margin_ms, promised)

    def _idle(self) -> frozenset[int]:
        idle = self._state.idle
        if not idle.any():
            return frozenset()
        return frozenset(partition for partition, slot in self._partitions.items() if idle[slot])

    def view(self) -> ClockView:
        """As it stands, for readers in other threads. O(partitions)."""
        state = self._state
        copied = Partitions._make([state.slot_of, *(held.copy() for held in state[1:])])
        return ClockView(self.clock_ms, self._rules, self._partitions, copied)

    # --- partitions -------------------------------------------------------------------------------

    @property
    def next_offsets(self) -> dict[int, int]:
        """Where reading goes on, by partition, of those that were read."""
        offsets = self._state.next_offset
        return {p: int(offsets[slot]) for p, slot in self._partitions.items() if offsets[slot] >= 0}

    def read_to(self, next_offsets: Mapping[int, int]) -> None:
        """Reading goes on at or behind these, past records that gave no row."""
        for partition, offset in next_offsets.items():
            slot, known = self._slot(partition), self._state.next_offset
            known[slot] = max(offset, int(known[slot]))

    def _meet(self, rows: Batch) -> None:
        for partition in rows.partitions():
            self._slot(partition)

    def _slot(self, partition: int) -> int:
        """A partition's place in the state; one never seen gets one."""
        slot = self._partitions.get(partition)
        if slot is None:
            slot = self._partitions[partition] = len(self._partitions)
            self._state = _state_of(self._partitions, self._state)
        return slot

    def partitions(self, next_offsets: Mapping[int, int] | None = None) -> dict[int, PartitionClock]:
        """The state to save. next_offsets: where reading goes on, if others know that."""
        known = self.next_offsets if next_offsets is None else next_offsets
        clocks = {}
        for p in sorted({*self._partitions, *known}):
            slot = self._partitions.get(p)
            latest = NEVER if slot is None else int(self._state.latest[slot])
            active = NEVER if slot is None else int(self._state.active[slot])
            promised = NEVER if slot is None else int(self._state.promised[slot])
            clocks[p] = PartitionClock(
                None if latest == NEVER else latest,
                None if active == NEVER else active,
                known.get(p, UNREAD),
                None if promised == NEVER else promised,
            )
        return clocks

    def restore(self, now_ms: int | None, clock_ms: int, partitions: Mapping[int, PartitionClock]) -> None:
        """Restore a saved state."""
        self.now_ms = now_ms
        self.clock_ms = clock_ms
        self._partitions = {p: slot for slot, p in enumerate(partitions)}
        self._state = state = _state_of(self._partitions)
        for slot, clock in enumerate(partitions.values()):
            state.next_offset[slot] = clock.next_offset
            state.latest[slot] = NEVER if clock.timestamp_max_ms is None else clock.timestamp_max_ms
            state.active[slot] = NEVER if clock.active_clock_ms is None else clock.active_clock_ms
            state.promised[slot] = NEVER if clock.promised_ms is None else clock.promised_ms


def _state_of(slots: Mapping[int, int], before: Partitions | None = None) -> Partitions:
    """The state of these partitions, which have slots by number; those of ``before`` keep theirs."""
    n = len(slots)
    state = Partitions(
        np.full(max(slots, default=-1) + 1, -1, np.int32),
        np.full(n, -1, np.int64),
        np.full(n, NEVER, np.int64),
        np.full(n, NEVER, np.int64),
        np.full(n, NEVER, np.int64),
        np.zeros(n, np.bool_),
        np.zeros(n, np.bool_),
    )
    state.slot_of[list(slots)] = list(slots.values())
    for held, old in zip(state[1:], before[1:] if before else (), strict=False):
        held[: len(old)] = old
    return state

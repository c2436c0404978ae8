"""Entries in partitions by the instant of their exit: a calendar queue.

A circular array of ``partitions + 1`` partitions, since the clock is seldom on a border, each
``ceil(span / partitions)`` wide: partition k has the exits after ``k * width`` up to ``(k + 1) * width``. An
entry goes to the end of its partition. When the clock has passed a partition all its entries are gone, and
it serves for later exits. Exits beyond the last partition stand apart until the clock comes near them, those
that never come apart from these.

``ordered``: entries leave in the order of their exits, which costs a sort of each partition when the clock
enters it; else in the order in which they came, partition by partition, and whoever asks for those that leave
within a partition has all of it read.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engine.dataflow.buffers.buffer import NO_PLACES, NOBODY, NOTHING, Buffer, Leaving, longer
from engine.dataflow.buffers.calendar_arrays import (
    Division,
    chain_of,
    cut,
    empty_far,
    entries_of,
    grown,
    joined,
    no_blocks,
    no_front,
)
from engine.dataflow.buffers.settings import StateSettings
from engine.kernels import blocks as pool
from engine.kernels import calendars as kernels
from engine.kernels import exit_order
from engine.kernels.blocks import SIZE
from engine.kernels.calendars import DROPPED, ENDLESS, FAR, LISTS_BESIDE, NEVER_LEAVES
from engine.model.batch import Int32Array, Int64Array

BLOCKS_MIN = 8
FRONT_MIN = 16
FAR_BOUND = 1 << 61


class Calendar(Buffer):
    """For exits in any order. Cost: O(1) to insert one, a sort within its partition to take one in order,
    O(partitions) to drop any number; a search of its partition to remove one, shared by all that leave it.
    12.1 bytes an entry, and up to a block of 128 for each partition.
    """

    def __init__(
        self,
        span: int,
        partitions: int | None = None,
        settings: StateSettings | None = None,
        *,
        ordered: bool = True,
    ) -> None:
        """span: how far ahead of the clock exits are, in their unit. partitions: None: as the settings say;
        see :meth:`engine.dataflow.buffers.settings.StateSettings.partitions_of`.
        """
        super().__init__()
        self._settings = settings or StateSettings()
        self._division = Division(span, self._settings.partitions_of(span, partitions), partitions)
        self._ordered = ordered
        self._count = 0
        self._now: int | None = None
        """The clock, as far as is known."""
        self._guessed = False
        self._positions: Int32Array = NO_PLACES
        self._clear()

    def _clear(self) -> None:
        lists = self._division.partitions + 1 + LISTS_BESIDE
        self._blocks = no_blocks(lists, self._settings.capacities.first(BLOCKS_MIN))
        self._front = no_front(self._settings.capacities.first(FRONT_MIN))
        width = self._division.width
        number = 0 if self._now is None else self._now // width
        self._clock = np.array([width, number, 0, self._ordered, 0, 0], np.int64)
        empty_far(self._clock)

    @property
    def span(self) -> int:
        return self._division.span

    @property
    def partitions(self) -> int:
        return self._division.partitions

    @property
    def width(self) -> int:
        """The width of a partition, in the unit of exits."""
        return int(self._clock[kernels.WIDTH])

    def __len__(self) -> int:
        return self._count

    # --- entries that come and leave --------------------------------------------------------------

    def insert(self, places: Int32Array, exits: Int64Array) -> None:
        if not len(places):
            return
        if self._now is None:
            self._guess_now(exits)
        self._put(places, exits)
        self._count += len(places)
        self.work.inserted += len(places)

    def take(self, until: int) -> Leaving:
        endless = until >= NEVER_LEAVES
        taken = self._take(min(until, NEVER_LEAVES - 1)) if until > -FAR_BOUND else NOTHING
        if endless:
            more = self._take_scanned(self._circle + ENDLESS, until)
            taken = joined([taken, more])
        if not len(taken.places):
            return NOTHING
        self._count -= len(taken.places)
        self._shrink()
        return self._taken(*taken)

    def drop(self, until: int) -> int:
        """Passed partitions, unread; what leaves in the partition of ``until`` stays."""
        passed = self._passed_at(until)
        if not passed:
            return 0
        number = min(until, NEVER_LEAVES - 1) // self.width
        front = self._front
        sorted_places = front.places[front.at[kernels.START] : front.at[kernels.STOP]]
        self.work.visited += len(sorted_places)
        parts = sorted_places[sorted_places != NOBODY], front.heap_places[: front.at[kernels.IN_HEAP]]
        front.at[:] = 0
        for places in parts:
            kernels.forget(places, 0, len(places), self._positions)
            self._put_down(places.copy())
        whole = kernels.drop_passed(passed, self._clock, self._blocks, self._positions)
        if self._far_count and self._clock[kernels.FAR_MOST] <= number * self.width:
            whole += kernels.drop_far(self._blocks, self._positions)
            empty_far(self._clock)
        self._dropped_count += whole
        due = self._enter(number)
        self._put_down(due.places)
        count = sum(map(len, parts)) + whole + len(due.places)
        self._count -= count
        self.work.deleted += count
        self.work.dropped += whole
        return int(count)

    def remove(self, places: Int32Array, exits: Int64Array) -> None:
        if not len(places):
            return
        lists = np.empty(len(places), np.int32)
        kernels.lists_of(exits, self._clock, len(self._blocks.counts), lists)
        order = np.argsort(lists, kind="stable")
        found, visited = kernels.search_out(
            places, exits, lists, order, self._clock, self._blocks, self._front, self._positions
        )
        self._removed(found, visited, len(places))

    def live(self, now: int) -> Int32Array:
        places, exits = entries_of(self._blocks, self._front)
        live: Int32Array = places[exits > now]
        return live

    def reclaim(self, wanted: int) -> Int32Array:
        found = super().reclaim(wanted)
        more = min(wanted - len(found), self._dropped_count - sum(map(len, self._dropped)))
        if more <= 0:
            return found
        places = np.empty(more + SIZE, np.int32)
        count = pool.take_whole(self._circle + DROPPED, more, self._blocks, places)
        kernels.forget(places, 0, count, self._positions)
        self._dropped_count -= count
        self._shrink()
        places = places[:count]
        return np.concatenate([found, places]) if len(found) else places

    def resize(self, span: int, partitions: int | None = None) -> None:
        """Exits are so far ahead from now on, in so many partitions, None: as was asked for before.
        O(entries).
        """
        asked = self._division.asked if partitions is None else partitions
        if asked is not None and partitions is None:
            asked = min(asked, span)
        self._division = Division(span, self._settings.partitions_of(span, asked), asked)
        self._rebuild()

    # --- the clock --------------------------------------------------------------------------------

    def _guess_now(self, exits: Int64Array) -> None:
        """Until the clock is told, it is as far before the first exit as exits can be."""
        ahead = exits[(exits < NEVER_LEAVES) & (exits > -FAR_BOUND)]
        if len(ahead):
            self._now = int(ahead.min()) - self._division.span
            self._clock[kernels.NUMBER] = self._now // self.width
            self._guessed = True

    def _passed_at(self, until: int) -> int:
        """How many partitions the clock passes."""
        until = min(until, NEVER_LEAVES - 1)
        if until <= -FAR_BOUND:
            return 0
        if self._now is None:
            self._clock[kernels.NUMBER] = until // self.width
        elif self._guessed and until < self._now:
            self._now = until
            self._rebuild()
        self._guessed = False
        self._now = until if self._now is None else max(self._now, until)
        return max(0, until // self.width - int(self._clock[kernels.NUMBER]))

    def _enter(self, number: int) -> Leaving:
        """The clock is in the partition of this number. Returns the entries from beyond the last partition
        that are past by then.
        """
        clock = self._clock
        passed = number - int(clock[kernels.NUMBER])
        clock[kernels.SLOT] = (int(clock[kernels.SLOT]) + passed) % self._circle
        clock[kernels.NUMBER] = number
        self._sort_first()
        if not self._far_count or clock[kernels.FAR_LEAST] > (number + self._circle) * self.width:
            return NOTHING
        return self._near_again(number * self.width)

    def _sort_first(self) -> None:
        """The entries of the first partition go into the front, which is empty, if they leave in order."""
        if not self._ordered:
            return
        count = int(self._blocks.counts[self._clock[kernels.SLOT]])
        if not count <= len(self._front.places) <= 4 * count + FRONT_MIN:
            room = max(count, FRONT_MIN)
            self._front = self._front._replace(
                places=np.empty(room, np.int32), exits=np.empty(room, np.int64)
            )
        kernels.front_entered(self._blocks, self._clock, self._front, self._positions)
        self.work.visited += count

    def _near_again(self, past: int) -> Leaving:
        """Exits beyond the last partition are nearer now. Returns the entries past by then, in order."""
        far = self._circle + FAR
        count = self._far_count
        places, exits = np.empty(count, np.int32), np.empty(count, np.int64)
        pool.copy(far, self._blocks, places, exits, 0)
        pool.empty(far, self._blocks)
        empty_far(self._clock)
        self.work.visited += count
        due = exits <= past
        leaving = Leaving(places[due], exits[due])
        kernels.forget(leaving.places, 0, len(leaving.places), self._positions)
        if self._ordered:
            exit_order.sort(leaving.places, leaving.exits, 0, len(leaving.places))
        self._put(places[~due], exits[~due])
        if 2 * self._far_count > self._count - len(leaving.places):
            assert self._now is not None
            reach = int(np.median(exits[~due])) - self._now
            self._division = replace(self._division, span=max(2 * self._division.span, reach))
            self._rebuild()
        return leaving

    # --- what leaves ------------------------------------------------------------------------------

    def _take(self, until: int) -> Leaving:
        """Takes out the entries whose exit is at ``until`` or before. until: below NEVER_LEAVES."""
        passed = self._passed_at(until)
        parts: list[Leaving] = []
        if passed:
            number = until // self.width
            front = self._take_front(until)
            room = kernels.passed_count(passed, self._clock, self._blocks)
            taken = np.empty(room, np.int32), np.empty(room, np.int64)
            kernels.take_passed(passed, self._clock, self._blocks, self._positions, *taken, 0)
            self.work.visited += room
            parts = [front, Leaving(*taken), self._enter(number)]
        slot = int(self._clock[kernels.SLOT])
        parts.append(self._take_front(until) if self._ordered else self._take_scanned(slot, until))
        return joined(parts)

    def _take_front(self, until: int) -> Leaving:
        front = self._front
        room = int(front.at[kernels.STOP] - front.at[kernels.START] + front.at[kernels.IN_HEAP])
        if not room:
            return NOTHING
        places, exits = np.empty(room, np.int32), np.empty(room, np.int64)
        count = kernels.take_front(until, front, self._positions, places, exits, 0)
        self.work.visited += count + 1
        return cut(places, exits, count)

    def _take_scanned(self, of: int, until: int) -> Leaving:
        room = int(self._blocks.counts[of])
        if not room:
            return NOTHING
        places, exits = np.empty(room, np.int32), np.empty(room, np.int64)
        count = pool.take_until(of, until, self._blocks, self._positions, places, exits, 0)
        self.work.visited += room
        return cut(places, exits, count)

    def _removed(self, found: int, visited: int, wanted: int) -> None:
        self._count -= found
        self.work.visited += visited
        self._shrink()
        self._left_out(found, wanted)

    # --- room -------------------------------------------------------------------------------------

    @property
    def _circle(self) -> int:
        """How many partitions stand in the circle."""
        return len(self._blocks.counts) - LISTS_BESIDE

    @property
    def _far_count(self) -> int:
        return int(self._blocks.counts[self._circle + FAR])

    def _put(self, places: Int32Array, exits: Int64Array) -> None:
        done = 0
        while True:
            state = self._clock, self._blocks, self._front, self._positions
            done = kernels.insert(places, exits, done, *state)
            if done == len(places):
                return
            if self._blocks.free[pool.FREE_COUNT] == 0:
                self._blocks = grown(self._blocks)
            front = self._front
            if front.at[kernels.IN_HEAP] == len(front.heap_places):
                room = 2 * len(front.heap_places)
                heap = longer(front.heap_places, room), longer(front.heap_exits, room)
                self._front = front._replace(heap_places=heap[0], heap_exits=heap[1])

    def _shrink(self) -> None:
        blocks = self._blocks
        count = len(blocks.following)
        if (
            count > self._settings.capacities.first(BLOCKS_MIN)
            and 4 * (count - int(blocks.free[pool.FREE_COUNT])) < count
        ):
            self._rebuild()

    def _rebuild(self) -> None:
        """All entries go into new arrays."""
        self._put_down_read()
        places, exits = entries_of(self._blocks, self._front)
        self._clear()
        self._clock[kernels.IS_ORDERED] = 0
        self._put(places, exits)
        self._clock[kernels.IS_ORDERED] = self._ordered
        self._sort_first()

    def _put_down_read(self) -> None:
        """What was dropped stands apart from the blocks from now on."""
        count = int(self._blocks.counts[self._circle + DROPPED])
        places = np.empty(count + SIZE, np.int32)
        pool.take_whole(self._circle + DROPPED, count, self._blocks, places)
        kernels.forget(places, 0, count, self._positions)
        self._dropped_count -= count
        self._put_down(places[:count])

    @property
    def nbytes(self) -> int:
        arrays: list[np.ndarray] = [*self._blocks, *self._front, self._clock, self._positions, *self._dropped]
        return sum(each.nbytes for each in arrays)

    def _check(self) -> None:
        blocks, front, clock = self._blocks, self._front, self._clock
        places = entries_of(self._blocks, self._front).places
        assert len(places) == self._count == len(np.unique(places))
        used = 0
        for of, count in enumerate(blocks.counts.tolist()):
            chain = chain_of(blocks, of)
            used += len(chain)
            if of == self._circle + DROPPED:
                assert count == sum(int(blocks.fills[block]) for block in chain)
                continue
            assert len(chain) == -(-count // SIZE)
            assert all(blocks.lists[block] == of for block in chain)
            held = np.empty(count, np.int32), np.empty(count, np.int64)
            pool.copy(of, blocks, *held, 0)
            lists = np.empty(count, np.int32)
            kernels.lists_of(held[1], clock, len(blocks.counts), lists)
            assert set(lists.tolist()) <= {of}
        assert used + blocks.free[pool.FREE_COUNT] == len(blocks.following)
        waiting = int(blocks.counts[self._circle + DROPPED]) + sum(map(len, self._dropped))
        assert waiting == self._dropped_count
        stop, size = int(front.at[kernels.STOP]), int(front.at[kernels.IN_HEAP])
        ahead = front.exits[int(front.at[kernels.START]) : stop]
        assert bool((ahead[1:] >= ahead[:-1]).all())
        crossed = np.count_nonzero(front.places[int(front.at[kernels.START]) : stop] == NOBODY)
        assert crossed == front.at[kernels.OUT]
        heap = front.heap_exits[:size]
        assert all(heap[(i - 1) // 2] <= heap[i] for i in range(1, size))
        if self._ordered:
            assert blocks.counts[clock[kernels.SLOT]] == 0
        else:
            assert not len(ahead)
            assert not size

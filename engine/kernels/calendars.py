"""Loops over the entries of calendars: state buffers in partitions by exit.

A *calendar* of entries as :mod:`engine.kernels.buffers` has them has ``n + 1`` lists, a circle, list by list
the partition that begins after ``k * width`` and ends at ``(k + 1) * width``; then a list for exits beyond
these (FAR), one for exits that never come (ENDLESS), one of entries that were dropped (DROPPED). Where
entries have to leave in order, those of the first partition stand in a *front* instead: sorted when the clock
enters it, and in a heap if they come later.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.kernels import blocks as pool
from engine.kernels import exit_order
from engine.kernels.blocks import SIZE, Blocks
from engine.kernels.buffers import NONE, hashed, is_wanted, steps_of_search
from engine.kernels.compiled import kernel

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]

NEVER_LEAVES = 1 << 62
"""Exits from here on never come."""
LISTS_BESIDE = 3
FAR, ENDLESS, DROPPED = 0, 1, 2
"""The lists of a calendar that stand behind those of the circle."""
WIDTH, NUMBER, SLOT, IS_ORDERED, FAR_LEAST, FAR_MOST = 0, 1, 2, 3, 4, 5
"""Places in the clock of a calendar: the width of a partition, the number k of the first, its list, whether
there is a front, and bounds of the exits in FAR.
"""
START, STOP, IN_HEAP, OUT = 0, 1, 2, 3
"""Places in ``Front.at``: where its sorted entries start and stop, the size of its heap, and how many of the
sorted entries left prematurely.
"""


class Front(NamedTuple):
    """The entries of the first partition. NONE is the place of a sorted one that left prematurely."""

    places: Int32Array
    exits: Int64Array
    heap_places: Int32Array
    heap_exits: Int64Array
    at: Int64Array
    """int64[4]: START, STOP, IN_HEAP, OUT."""


@kernel
def list_of(exit_at: int, clock: Int64Array, lists: int) -> int:
    """The list of a calendar in which entries of this exit stand; those of the past in the first."""
    circle = lists - LISTS_BESIDE
    if exit_at >= NEVER_LEAVES:
        return circle + ENDLESS
    begin = clock[NUMBER] * clock[WIDTH]
    if exit_at <= begin:
        return int(clock[SLOT])
    ahead = (exit_at - 1 - begin) // clock[WIDTH]
    if ahead >= circle:
        return circle + FAR
    slot = clock[SLOT] + ahead
    return int(slot - circle if slot >= circle else slot)


@kernel
def insert(
    places: Int32Array,
    exits: Int64Array,
    start: int,
    clock: Int64Array,
    blocks: Blocks,
    front: Front,
    positions: Int32Array,
) -> int:
    """Put entries from ``start`` on into a calendar; return the first that found no room, in the blocks or in
    the heap.
    """
    circle = blocks.counts.shape[0] - LISTS_BESIDE
    width, slot, is_ordered = clock[WIDTH], clock[SLOT], clock[IS_ORDERED] != 0
    begin = clock[NUMBER] * width
    for i in range(start, places.shape[0]):
        place, exit_at = places[i], exits[i]
        if exit_at >= NEVER_LEAVES:
            of = circle + ENDLESS
        elif exit_at <= begin + width:
            of = slot
        elif exit_at > begin + circle * width:
            of = circle + FAR
        else:
            of = slot + (exit_at - 1 - begin) // width
            if of >= circle:
                of -= circle
        if of == slot and is_ordered:
            size = front.at[IN_HEAP]
            if size == front.heap_places.shape[0]:
                return i
            front.heap_places[size], front.heap_exits[size] = place, exit_at
            front.at[IN_HEAP] += 1
            exit_order.sift_up(size, front.heap_places, front.heap_exits, positions)
        else:
            if not pool.append(of, place, exit_at, blocks, positions):
                return i
            if of == circle + FAR:
                clock[FAR_LEAST] = min(clock[FAR_LEAST], exit_at)
                clock[FAR_MOST] = max(clock[FAR_MOST], exit_at)
    return int(places.shape[0])


@kernel
def forget(places: Int32Array, start: int, stop: int, positions: Int32Array) -> None:
    """Places have no position any more."""
    if positions.shape[0] > 0:
        for i in range(start, stop):
            positions[places[i]] = NONE


@kernel
def passed_count(passed: int, clock: Int64Array, blocks: Blocks) -> int:
    """How many entries are in the lists of the first ``passed`` partitions."""
    circle = blocks.counts.shape[0] - LISTS_BESIDE
    count, slot = 0, clock[SLOT]
    for _ in range(min(passed, circle)):
        count += blocks.counts[slot]
        slot = slot + 1 if slot + 1 < circle else 0
    return int(count)


@kernel
def take_passed(
    passed: int,
    clock: Int64Array,
    blocks: Blocks,
    positions: Int32Array,
    places: Int32Array,
    exits: Int64Array,
    start: int,
) -> int:
    """Write the entries of the lists of the first ``passed`` partitions from ``start`` on, in order of exit
    if that is asked for; return where they end.
    """
    circle = blocks.counts.shape[0] - LISTS_BESIDE
    slot = clock[SLOT]
    for _ in range(min(passed, circle)):
        if blocks.counts[slot] > 0:
            stop = pool.copy(slot, blocks, places, exits, start)
            pool.empty(slot, blocks)
            if clock[IS_ORDERED] != 0:
                exit_order.sort(places, exits, start, stop)
            forget(places, start, stop, positions)
            start = stop
        slot = slot + 1 if slot + 1 < circle else 0
    return start


@kernel
def _drop(of: int, dropped: int, blocks: Blocks, positions: Int32Array) -> None:
    """Where positions are known, the blocks say that nobody may remove entries from them any more."""
    if positions.shape[0] > 0 and blocks.counts[of] > 0:
        block = blocks.heads[of]
        for _ in range((blocks.counts[of] + SIZE - 1) // SIZE):
            blocks.lists[block] = dropped
            block = blocks.following[block]
    pool.pass_on(of, dropped, blocks)


@kernel
def drop_far(blocks: Blocks, positions: Int32Array) -> int:
    """All entries in FAR are dropped unread; return how many."""
    circle = blocks.counts.shape[0] - LISTS_BESIDE
    count = blocks.counts[circle + FAR]
    _drop(circle + FAR, circle + DROPPED, blocks, positions)
    return int(count)


@kernel
def drop_passed(passed: int, clock: Int64Array, blocks: Blocks, positions: Int32Array) -> int:
    """The entries of the lists of the first ``passed`` partitions are dropped unread; return how many.
    O(partitions).
    """
    circle = blocks.counts.shape[0] - LISTS_BESIDE
    count, slot = 0, clock[SLOT]
    for _ in range(min(passed, circle)):
        count += blocks.counts[slot]
        _drop(slot, circle + DROPPED, blocks, positions)
        slot = slot + 1 if slot + 1 < circle else 0
    return int(count)


@kernel
def front_entered(blocks: Blocks, clock: Int64Array, front: Front, positions: Int32Array) -> None:
    """The clock has entered a partition: its entries go into the front, sorted. The front is empty, and has
    room for so many.
    """
    count = pool.copy(clock[SLOT], blocks, front.places, front.exits, 0)
    pool.empty(clock[SLOT], blocks)
    exit_order.sort(front.places, front.exits, 0, count)
    front.at[START], front.at[STOP], front.at[OUT] = 0, count, 0
    if positions.shape[0] > 0:
        for i in range(count):
            positions[front.places[i]] = -2 - 2 * i


@kernel
def take_front(
    until: int, front: Front, positions: Int32Array, places: Int32Array, exits: Int64Array, start: int
) -> int:
    """Write the entries of a front whose exit is at ``until`` or before, from ``start`` on, in order; return
    where they end.
    """
    at, stop, size = front.at[START], front.at[STOP], front.at[IN_HEAP]
    while True:
        while at < stop and front.places[at] == NONE:
            at += 1
            front.at[OUT] -= 1
        from_heap = size > 0 and (at == stop or front.heap_exits[0] < front.exits[at])
        if from_heap:
            place, exit_at = front.heap_places[0], front.heap_exits[0]
        elif at < stop:
            place, exit_at = front.places[at], front.exits[at]
        else:
            break
        if exit_at > until:
            break
        places[start], exits[start] = place, exit_at
        start += 1
        if from_heap:
            exit_order.remove(0, size, front.heap_places, front.heap_exits, positions)
            size -= 1
        else:
            if positions.shape[0] > 0:
                positions[place] = NONE
            at += 1
    front.at[START], front.at[IN_HEAP] = at, size
    return start


@kernel
def _search_front(place: int, exit_at: int, front: Front, positions: Int32Array) -> tuple[bool, int]:
    """Remove an entry from a front; whether it was there, and how many entries were visited."""
    low, high = front.at[START], front.at[STOP]
    visited = steps_of_search(high - low)
    while low < high:
        middle = (low + high) >> 1
        if front.exits[middle] < exit_at:
            low = middle + 1
        else:
            high = middle
    while low < front.at[STOP] and front.exits[low] == exit_at:
        visited += 1
        if front.places[low] == place:
            front.places[low] = NONE
            front.at[OUT] += 1
            return True, visited
        low += 1
    for i in range(front.at[IN_HEAP]):
        visited += 1
        if front.heap_places[i] == place and front.heap_exits[i] == exit_at:
            exit_order.remove(i, front.at[IN_HEAP], front.heap_places, front.heap_exits, positions)
            front.at[IN_HEAP] -= 1
            return True, visited
    return False, visited


@kernel
def search_out(
    gone: Int32Array,
    exits: Int64Array,
    lists: Int32Array,
    order: Int64Array,
    clock: Int64Array,
    blocks: Blocks,
    front: Front,
    positions: Int32Array,
) -> tuple[int, int]:
    """Remove entries from a calendar; how many were found, and how many entries visited: each list is read
    once, as far as it takes, for all that are to leave it.

    lists: the list of each. order: the entries by list. positions: empty.
    """
    found, visited, start = 0, 0, 0
    n = gone.shape[0]
    by_list_gone, by_list_exits = gone[order], exits[order]
    while start < n:
        of = lists[order[start]]
        stop = start + 1
        while stop < n and lists[order[stop]] == of:
            stop += 1
        if clock[IS_ORDERED] != 0 and of == clock[SLOT]:
            for i in range(start, stop):
                was_there, more = _search_front(by_list_gone[i], by_list_exits[i], front, positions)
                found, visited = found + was_there, visited + more
            start = stop
            continue
        table = hashed(by_list_gone, start, stop)
        left, i, block = stop - start, 0, blocks.heads[of]
        while left > 0 and i < blocks.counts[of]:
            position = block * SIZE + (i & (SIZE - 1))
            visited += 1
            place, exit_at = blocks.places[position], blocks.exits[position]
            if is_wanted(place, exit_at, by_list_gone, by_list_exits, table):
                pool.remove_at(position, blocks, positions)
                left -= 1
                continue
            i += 1
            if i & (SIZE - 1) == 0:
                block = blocks.following[block]
        found += stop - start - left
        start = stop
    return found, visited


@kernel
def point_out(
    gone: Int32Array, exits: Int64Array, blocks: Blocks, front: Front, positions: Int32Array
) -> int:
    """Remove entries from a calendar whose positions are known; return how many were found. O(1) each."""
    found, dropped = 0, blocks.counts.shape[0] - LISTS_BESIDE + DROPPED
    for i in range(gone.shape[0]):
        place = gone[i]
        if place < 0 or place >= positions.shape[0] or positions[place] == NONE:
            continue
        position = np.int64(positions[place])
        if position >= 0:
            if (
                blocks.lists[position // SIZE] == dropped
                or blocks.places[position] != place
                or blocks.exits[position] != exits[i]
            ):
                continue
            pool.remove_at(int(position), blocks, positions)
        elif position & 1 == 0:
            at = (-2 - position) >> 1
            if front.exits[at] != exits[i]:
                continue
            front.places[at] = NONE
            front.at[OUT] += 1
            positions[place] = NONE
        else:
            at = (-3 - position) >> 1
            if front.heap_exits[at] != exits[i]:
                continue
            exit_order.remove(int(at), front.at[IN_HEAP], front.heap_places, front.heap_exits, positions)
            front.at[IN_HEAP] -= 1
        found += 1
    return found


@kernel
def lists_of(exits: Int64Array, clock: Int64Array, lists: int, out: Int32Array) -> None:
    """out[i] = the list of a calendar in which entries of this exit stand."""
    for i in range(exits.shape[0]):
        out[i] = list_of(exits[i], clock, lists)


@kernel
def entries(blocks: Blocks, front: Front, places: Int32Array, exits: Int64Array) -> int:
    """Write all entries of a calendar but those dropped: the front, the circle, FAR, ENDLESS. Return how
    many.
    """
    count = 0
    for i in range(front.at[START], front.at[STOP]):
        if front.places[i] != NONE:
            places[count], exits[count] = front.places[i], front.exits[i]
            count += 1
    for i in range(front.at[IN_HEAP]):
        places[count], exits[count] = front.heap_places[i], front.heap_exits[i]
        count += 1
    for of in range(blocks.counts.shape[0] - 1):
        if blocks.counts[of] > 0:
            count = pool.copy(of, blocks, places, exits, count)
    return count

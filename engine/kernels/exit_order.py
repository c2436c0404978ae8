"""Entries in the order of their exits: sorted at once, or a heap of those that come one by one.

An entry is a place and the instant of its exit. A heap is two arrays, the least exit in front.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]

NONE = -1
FEW = 24
MANY = 2_048
FEW_BITS, MANY_BITS = 6, 11
"""The bits of a digit of the radix sort, for few entries and for many."""


@kernel
def _sort_few(places: Int32Array, exits: Int64Array, start: int, stop: int) -> None:
    for i in range(start + 1, stop):
        place, exit_at = places[i], exits[i]
        j = i
        while j > start and exits[j - 1] > exit_at:
            places[j], exits[j] = places[j - 1], exits[j - 1]
            j -= 1
        places[j], exits[j] = place, exit_at


@kernel
def sort(places: Int32Array, exits: Int64Array, start: int, stop: int) -> None:
    """Bring entries [start, stop) into the order of their exits; equal ones stay as they stand.

    Exits are less than 2**63 apart. O(n) for each digit in which exits differ.
    """
    n = stop - start
    if n <= FEW:
        _sort_few(places, exits, start, stop)
        return
    low, high, is_sorted, differing = exits[start], exits[start], True, np.int64(0)
    for i in range(start + 1, stop):
        is_sorted = is_sorted and exits[i] >= exits[i - 1]
        low, high = min(low, exits[i]), max(high, exits[i])
        differing |= exits[i] ^ exits[i - 1]
    if is_sorted:
        return
    bits = MANY_BITS if n >= MANY else FEW_BITS
    mask = (1 << bits) - 1
    counts = np.empty(mask + 2, np.int64)
    from_places, from_exits = places[start:stop], exits[start:stop]
    to_places, to_exits = np.empty(n, np.int32), np.empty(n, np.int64)
    span, shift, passes = high - low, 0, 0
    while (differing >> shift) & 1 == 0:
        shift += 1
    while shift <= 62 and span >> shift > 0:
        counts[:] = 0
        for i in range(n):
            counts[(((from_exits[i] - low) >> shift) & mask) + 1] += 1
        for digit in range(mask):
            counts[digit + 1] += counts[digit]
        for i in range(n):
            digit = ((from_exits[i] - low) >> shift) & mask
            to = counts[digit]
            counts[digit] += 1
            to_places[to], to_exits[to] = from_places[i], from_exits[i]
        from_places, to_places = to_places, from_places
        from_exits, to_exits = to_exits, from_exits
        shift, passes = shift + bits, passes + 1
    if passes & 1:
        places[start:stop] = from_places
        exits[start:stop] = from_exits


@kernel
def code_of_heap(i: int) -> int:
    """The position of an entry that is in a heap, as owners of heaps have it."""
    return -3 - 2 * i


@kernel
def sift_up(i: int, places: Int32Array, exits: Int64Array, positions: Int32Array) -> None:
    """Entry i of a heap may be before those above it."""
    place, exit_at = places[i], exits[i]
    while i > 0:
        parent = (i - 1) >> 1
        if exits[parent] <= exit_at:
            break
        places[i], exits[i] = places[parent], exits[parent]
        if positions.shape[0] > 0:
            positions[places[i]] = code_of_heap(i)
        i = parent
    places[i], exits[i] = place, exit_at
    if positions.shape[0] > 0:
        positions[place] = code_of_heap(i)


@kernel
def _sift_down(i: int, size: int, places: Int32Array, exits: Int64Array, positions: Int32Array) -> None:
    place, exit_at = places[i], exits[i]
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and exits[child + 1] < exits[child]:
            child += 1
        if exits[child] >= exit_at:
            break
        places[i], exits[i] = places[child], exits[child]
        if positions.shape[0] > 0:
            positions[places[i]] = code_of_heap(i)
        i = child
    places[i], exits[i] = place, exit_at
    if positions.shape[0] > 0:
        positions[place] = code_of_heap(i)


@kernel
def remove(i: int, size: int, places: Int32Array, exits: Int64Array, positions: Int32Array) -> None:
    """Entry i of a heap of ``size`` leaves it. O(log size)."""
    if positions.shape[0] > 0:
        positions[places[i]] = NONE
    last = size - 1
    if i == last:
        return
    places[i], exits[i] = places[last], exits[last]
    if i > 0 and exits[i] < exits[(i - 1) >> 1]:
        sift_up(i, places, exits, positions)
    else:
        _sift_down(i, last, places, exits, positions)

"""Which rows fell into each bucket, by blocks of BLOCK ordinals.

Block k has the ordinals k * BLOCK and on, and lies in slot k & (slots - 1) of a ring. ``order``:
uint16[slots, BLOCK], the places of its rows, bucket by bucket, ascending in each; ``starts``:
int32[slots, buckets + 2], where each bucket begins there. Buckets are 0..buckets - 1; ``NOWHERE`` stands in a
block's places where there is no row (yet).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel, step
from engine.kernels.strings import Int32Array, Int64Array

UInt16Array = npt.NDArray[np.uint16]

SHIFT = 12
BLOCK = 1 << SHIFT
NOWHERE = np.uint16(0xFFFF)


@kernel
def sort_block(bucket: UInt16Array, order: UInt16Array, starts: Int32Array) -> None:
    """Lay out one block. bucket, order: uint16[BLOCK]; starts: int32[buckets + 1]. O(BLOCK)."""
    buckets = starts.shape[0] - 1
    next_free = np.zeros(buckets + 1, np.int64)  # the last is for places without a row
    for place in range(BLOCK):
        next_free[min(np.int64(bucket[place]), buckets)] += 1
    at = 0
    for one in range(buckets):
        starts[one] = at
        at, next_free[one] = at + next_free[one], at
    starts[buckets] = next_free[buckets] = at
    for place in range(BLOCK):
        one = min(np.int64(bucket[place]), buckets)
        order[next_free[one]] = place
        next_free[one] += 1


@step
def _at_or_after(order: UInt16Array, low: int, high: int, place: int) -> int:
    """The first of the ascending order[low:high] that is at or after a place."""
    while low < high:
        middle = (low + high) >> 1
        if order[middle] < place:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def rows_in(
    order: UInt16Array,
    starts: Int32Array,
    bucket: Int32Array,
    first: Int64Array,
    end: Int64Array,
    offsets: Int64Array,
    out: Int64Array,
) -> None:
    """The ordinals of bucket[q]'s rows in first[q] <= ordinal < end[q], ascending.

    offsets: int64[q + 1]. With an empty ``out`` they are written: where the rows of each q begin in ``out``;
    otherwise ``out`` is, by them. All blocks between first and end are in the ring.
    O(blocks + rows) each.
    """
    mask = order.shape[0] - 1
    counting = out.shape[0] == 0
    at = 0
    for q in range(bucket.shape[0]):
        one = bucket[q]
        if counting:
            offsets[q] = at
        else:
            at = offsets[q]
        if first[q] >= end[q]:
            continue
        for block in range(first[q] >> SHIFT, ((end[q] - 1) >> SHIFT) + 1):
            slot, base = block & mask, block << SHIFT
            low, high = starts[slot, one], starts[slot, one + 1]
            if base < first[q]:
                low = _at_or_after(order[slot], low, high, first[q] - base)
            if base + BLOCK > end[q]:
                high = _at_or_after(order[slot], low, high, end[q] - base)
            if counting:
                at += high - low
            else:
                for place in range(low, high):
                    out[at] = base + order[slot, place]
                    at += 1
    if counting:
        offsets[bucket.shape[0]] = at

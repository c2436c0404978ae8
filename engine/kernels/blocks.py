"""Lists of entries in blocks of one pool: an entry is a place and the instant of its exit.

The blocks of a list are linked both ways, all but the last full. ``positions`` has the position of each place
in the pool, or is empty where nobody asks for it. An entry costs 12 bytes, a block 16 more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]

SIZE = 128
"""Entries in a block, a power of two: more take fewer steps from block to block, and leave more room unused
at the end of a list."""
NONE = -1
FIRST_FREE, FREE_COUNT = 0, 1


class Blocks(NamedTuple):
    """A pool and its lists."""

    places: Int32Array
    """By position: block * SIZE + place in the block."""
    exits: Int64Array
    """By position, halves of ms."""
    following: Int32Array
    """By block: the next of its list, or of the free ones; NONE: it is the last."""
    before: Int32Array
    """By block: the one before it in its list."""
    lists: Int32Array
    """By block: its list."""
    fills: Int32Array
    """By block: entries, of those that are not the last of a list."""
    heads: Int32Array
    """By list: its first block, of lists that are not empty."""
    tails: Int32Array
    """By list: its last block, of lists that are not empty."""
    counts: Int64Array
    """By list: entries."""
    free: Int64Array
    """int64[2]: the first block that is not in use, and how many are not."""


@kernel
def set_free(start: int, blocks: Blocks) -> None:
    """Blocks from ``start`` on are not in use."""
    for block in range(start, blocks.following.shape[0]):
        blocks.following[block] = block + 1
        blocks.fills[block] = SIZE
    blocks.following[-1] = np.int32(blocks.free[FIRST_FREE])
    blocks.free[FIRST_FREE] = start
    blocks.free[FREE_COUNT] += blocks.following.shape[0] - start


@kernel
def append(of: int, place: int, exit_at: int, blocks: Blocks, positions: Int32Array) -> bool:
    """An entry goes behind the others of list ``of``; False: there is no block for it."""
    offset = blocks.counts[of] & (SIZE - 1)
    if offset == 0:
        block = np.int32(blocks.free[FIRST_FREE])
        if block < 0:
            return False
        blocks.free[FIRST_FREE] = blocks.following[block]
        blocks.free[FREE_COUNT] -= 1
        blocks.following[block] = NONE
        blocks.lists[block] = of
        if blocks.counts[of] == 0:
            blocks.heads[of], blocks.before[block] = block, NONE
        else:
            blocks.following[blocks.tails[of]], blocks.before[block] = block, blocks.tails[of]
        blocks.tails[of] = block
    position = blocks.tails[of] * SIZE + offset
    blocks.places[position], blocks.exits[position] = place, exit_at
    blocks.counts[of] += 1
    if positions.shape[0] > 0:
        positions[place] = position
    return True


@kernel
def remove_at(position: int, blocks: Blocks, positions: Int32Array) -> None:
    """An entry leaves its list, whose last one takes its position."""
    of = blocks.lists[position // SIZE]
    tail = blocks.tails[of]
    blocks.counts[of] -= 1
    offset = blocks.counts[of] & (SIZE - 1)
    last = tail * SIZE + offset
    if positions.shape[0] > 0:
        positions[blocks.places[last]] = position
        positions[blocks.places[position]] = NONE
    blocks.places[position], blocks.exits[position] = blocks.places[last], blocks.exits[last]
    if offset == 0:
        blocks.tails[of] = blocks.before[tail]
        if blocks.counts[of] > 0:
            blocks.following[blocks.before[tail]] = NONE
        blocks.following[tail] = np.int32(blocks.free[FIRST_FREE])
        blocks.free[FIRST_FREE] = tail
        blocks.free[FREE_COUNT] += 1


@kernel
def empty(of: int, blocks: Blocks) -> None:
    """All entries of a list leave: its blocks are free. O(1)."""
    if blocks.counts[of] == 0:
        return
    blocks.following[blocks.tails[of]] = np.int32(blocks.free[FIRST_FREE])
    blocks.free[FIRST_FREE] = blocks.heads[of]
    blocks.free[FREE_COUNT] += (blocks.counts[of] + SIZE - 1) // SIZE
    blocks.counts[of] = 0


@kernel
def pass_on(of: int, to: int, blocks: Blocks) -> None:
    """The blocks of a list go to list ``to`` as they are, which only :func:`take_whole` reads. O(1)."""
    count = blocks.counts[of]
    if count == 0:
        return
    blocks.fills[blocks.tails[of]] = ((count - 1) & (SIZE - 1)) + 1
    blocks.following[blocks.tails[of]] = NONE if blocks.counts[to] == 0 else blocks.heads[to]
    if blocks.counts[to] == 0:
        blocks.tails[to] = blocks.tails[of]
    blocks.heads[to] = blocks.heads[of]
    blocks.counts[to] += count
    blocks.counts[of] = 0


@kernel
def take_whole(of: int, wanted: int, blocks: Blocks, places: Int32Array) -> int:
    """Write the places of whole blocks of a list that was passed on, ``wanted`` at least where there are so
    many, and free the blocks; return how many. places: int32[wanted + SIZE] at least.
    """
    taken = 0
    while taken < wanted and blocks.counts[of] > 0:
        block = blocks.heads[of]
        fill = blocks.fills[block]
        for i in range(fill):
            places[taken + i] = blocks.places[block * SIZE + i]
        taken += fill
        blocks.counts[of] -= fill
        blocks.heads[of] = blocks.following[block]
        blocks.fills[block] = SIZE
        blocks.following[block] = np.int32(blocks.free[FIRST_FREE])
        blocks.free[FIRST_FREE] = block
        blocks.free[FREE_COUNT] += 1
    return taken


@kernel
def copy(of: int, blocks: Blocks, places: Int32Array, exits: Int64Array, start: int) -> int:
    """Write the entries of a list from ``start`` on; return where they end."""
    left = blocks.counts[of]
    block = blocks.heads[of]
    while left > 0:
        fill = min(left, SIZE)
        for i in range(fill):
            places[start + i] = blocks.places[block * SIZE + i]
            exits[start + i] = blocks.exits[block * SIZE + i]
        start += fill
        left -= fill
        block = blocks.following[block]
    return start


@kernel
def take_until(
    of: int,
    until: int,
    blocks: Blocks,
    positions: Int32Array,
    places: Int32Array,
    exits: Int64Array,
    start: int,
) -> int:
    """Write the entries of a list whose exit is at ``until`` or before, from ``start`` on, in the order in
    which they stand; the others stay in their order. Return where they end.
    """
    count = blocks.counts[of]
    if count == 0:
        return start
    block, target, kept = blocks.heads[of], blocks.heads[of], 0
    for i in range(count):
        if i > 0 and i & (SIZE - 1) == 0:
            block = blocks.following[block]
        position = block * SIZE + (i & (SIZE - 1))
        place, exit_at = blocks.places[position], blocks.exits[position]
        if exit_at <= until:
            places[start], exits[start] = place, exit_at
            start += 1
            if positions.shape[0] > 0:
                positions[place] = NONE
            continue
        if kept > 0 and kept & (SIZE - 1) == 0:
            target = blocks.following[target]
        to = target * SIZE + (kept & (SIZE - 1))
        blocks.places[to], blocks.exits[to] = place, exit_at
        if positions.shape[0] > 0:
            positions[place] = to
        kept += 1
    if kept == 0:
        empty(of, blocks)
        return start
    blocks.counts[of] = kept
    if blocks.tails[of] != target:
        blocks.following[blocks.tails[of]] = np.int32(blocks.free[FIRST_FREE])
        blocks.free[FIRST_FREE] = blocks.following[target]
        blocks.free[FREE_COUNT] += (count + SIZE - 1) // SIZE - (kept + SIZE - 1) // SIZE
        blocks.tails[of] = target
        blocks.following[target] = NONE
    return start

"""Partial aggregates of 64 query slots at once: what a word column's rows add to the open results of a block.

Every kernel takes ``column``, uint64[n], the match bits of 64 slots over n rows of one block, and ``values``
of those rows, and brings the results, one a slot, up to date in row order. All slots
are treated alike, several to an instruction; a slot that does not match a row finds its result as if the row
were not there. Rows that no slot matches are passed over.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel

Words = npt.NDArray[np.uint64]
Int64Array = npt.NDArray[np.int64]
Float64Array = npt.NDArray[np.float64]

SLOTS = 64


@kernel
def restrict(column: Words, mask: np.uint64, ok: npt.NDArray[np.bool_], out: Words) -> None:
    """out[r] = the masked bits of column[r], none where ok[r] is False."""
    for row in range(column.shape[0]):
        out[row] = column[row] & mask if ok[row] else np.uint64(0)


@kernel
def _add(planes: tuple[np.uint64, ...], counts: Int64Array) -> None:
    """counts[b] grows by the number whose bit i is bit b of planes[i]."""
    for slot in range(SLOTS):
        total = np.uint64(0)
        for bit in range(8):
            total |= ((planes[bit] >> np.uint64(slot)) & np.uint64(1)) << np.uint64(bit)
        counts[slot] += np.int64(total)


@kernel
def count(column: Words, counts: Int64Array) -> None:
    """counts[b] grows by the rows with bit b.

    Eight rows at a time go through a tree of adders, bit by bit of all 64 slots: ``p0`` holds the lowest bit
    of 64 small counts, ``p7`` the highest. They are emptied before they can overflow.
    """
    one = np.uint64(1)
    zero = np.uint64(0)
    p0, p1, p2, p3, p4, p5, p6, p7 = zero, zero, zero, zero, zero, zero, zero, zero
    n = column.shape[0]
    held = 0
    for row in range(0, n - 7, 8):
        a, b, c, d = column[row], column[row + 1], column[row + 2], column[row + 3]
        e, f, g, h = column[row + 4], column[row + 5], column[row + 6], column[row + 7]
        some = p0 ^ a
        left = (p0 & a) | (some & b)
        p0 = some ^ b
        some = p0 ^ c
        right = (p0 & c) | (some & d)
        p0 = some ^ d
        some = p1 ^ left
        twos = (p1 & left) | (some & right)
        p1 = some ^ right
        some = p0 ^ e
        left = (p0 & e) | (some & f)
        p0 = some ^ f
        some = p0 ^ g
        right = (p0 & g) | (some & h)
        p0 = some ^ h
        some = p1 ^ left
        fours = (p1 & left) | (some & right)
        p1 = some ^ right
        some = p2 ^ twos
        carry = (p2 & twos) | (some & fours)
        p2 = some ^ fours
        some = p3 & carry
        p3 ^= carry
        carry = p4 & some
        p4 ^= some
        some = p5 & carry
        p5 ^= carry
        carry = p6 & some
        p6 ^= some
        p7 ^= carry
        held += 8
        if held == 248 or row + 15 >= n:
            _add((p0, p1, p2, p3, p4, p5, p6, p7), counts)
            p0, p1, p2, p3, p4, p5, p6, p7 = zero, zero, zero, zero, zero, zero, zero, zero
            held = 0
    for row in range(n - n % 8, n):
        for slot in range(SLOTS):
            counts[slot] += np.int64((column[row] >> np.uint64(slot)) & one)


@kernel
def add_whole(column: Words, values: Int64Array, sums: Int64Array) -> None:
    """sums[b] += values of the rows with bit b; whoever calls sees to it that they fit."""
    one = np.uint64(1)
    n = column.shape[0]
    for row in range(0, n - 3, 4):
        w0, w1, w2, w3 = column[row], column[row + 1], column[row + 2], column[row + 3]
        if w0 | w1 | w2 | w3 != 0:
            v0, v1, v2, v3 = values[row], values[row + 1], values[row + 2], values[row + 3]
            for slot in range(SLOTS):
                at = np.uint64(slot)
                total = sums[slot]
                total += v0 if (w0 >> at) & one else 0
                total += v1 if (w1 >> at) & one else 0
                total += v2 if (w2 >> at) & one else 0
                total += v3 if (w3 >> at) & one else 0
                sums[slot] = total
    for row in range(n - n % 4, n):
        for slot in range(SLOTS):
            sums[slot] += values[row] if (column[row] >> np.uint64(slot)) & one else 0


@kernel
def least_doubles(column: Words, values: Float64Array, least: Float64Array) -> None:
    """least[b] = the first of the least values of the rows with bit b; NaN is above all, and of no rows."""
    one = np.uint64(1)
    for row in range(column.shape[0]):
        word = column[row]
        if word != 0:
            value = values[row]
            for b in range(SLOTS):
                held = least[b]
                take = ((word >> np.uint64(b)) & one != 0) & ((value < held) | (held != held))
                least[b] = value if take else held


@kernel
def greatest_doubles(column: Words, values: Float64Array, greatest: Float64Array) -> None:
    """The mirror of :func:`least_doubles`; -inf of no rows."""
    one = np.uint64(1)
    for row in range(column.shape[0]):
        word = column[row]
        if word != 0:
            value = values[row]
            for b in range(SLOTS):
                held = greatest[b]
                above = (value > held) | ((value != value) & (held == held))
                greatest[b] = value if ((word >> np.uint64(b)) & one != 0) & above else held


@kernel
def least_whole(column: Words, values: Int64Array, least: Int64Array) -> None:
    """least[b] = the least value of the rows with bit b, or what it was."""
    one = np.uint64(1)
    for row in range(column.shape[0]):
        word = column[row]
        if word != 0:
            value = values[row]
            for b in range(SLOTS):
                held = least[b]
                least[b] = value if ((word >> np.uint64(b)) & one != 0) & (value < held) else held


@kernel
def greatest_whole(column: Words, values: Int64Array, greatest: Int64Array) -> None:
    """The mirror of :func:`least_whole`."""
    one = np.uint64(1)
    for row in range(column.shape[0]):
        word = column[row]
        if word != 0:
            value = values[row]
            for b in range(SLOTS):
                held = greatest[b]
                greatest[b] = value if ((word >> np.uint64(b)) & one != 0) & (value > held) else held


@kernel
def set_bits(
    rows: npt.NDArray[np.uint16],
    slots: npt.NDArray[np.int32],
    first: int,
    places: Int64Array,
    masks: Words,
    out: Words,
) -> None:
    """Set bit (slot & 63) of out[places[slot >> 6], row - first] for each pair of a row and a slot.

    Pairs of words without a place (-1, or beyond the last) and of bits outside masks[place] are passed over.
    """
    one = np.uint64(1)
    for i in range(rows.shape[0]):
        word = slots[i] >> 6
        if word < places.shape[0] and places[word] >= 0:
            place = places[word]
            bit = one << np.uint64(slots[i] & 63)
            out[place, np.int64(rows[i]) - first] |= bit & masks[place]

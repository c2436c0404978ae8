"""Rows of the inputs of a join under slots, with what finds them: chains of the rows of a key.

Whose a row is stands in runs of words: for each 64 columns of which some have the row their number, and a bit
for each of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.kernels.bits import bit_of
from engine.kernels.compiled import borrowing, step

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
UInt64Array = npt.NDArray[np.uint64]

NOBODY = -1


class Arranged(NamedTuple):
    """Rows of one input."""

    first: Int32Array
    """By key: the slot that its chain begins with, or NOBODY."""
    key: Int32Array
    """By slot, as all that follow; NOBODY of rows that have none."""
    following: Int32Array
    """The next of the chain, or NOBODY."""
    previous: Int32Array
    """The one before it, or NOBODY."""
    valid_from: Int64Array
    """Instants, in halves."""
    valid_to: Int64Array
    starts: Int64Array
    """By slot: where the run of the row's owners begins among the words."""
    counts: Int32Array
    """By slot: how many words that run has."""
    words: Int32Array
    """The numbers of the words in the runs, ascending within each run."""
    bits: UInt64Array
    """The bits of these words: which of a word's 64 columns have the row."""


class SlotPairs(NamedTuple):
    """Pairs of slots, as they are found."""

    near: Int32Array
    far: Int32Array
    valid_from: Int64Array
    valid_to: Int64Array
    starts: Int64Array
    """[pairs + 1]: where the owners of each are."""
    owners: Int32Array


@borrowing
def link(slots: Int32Array, rows: Arranged) -> None:
    """Rows join the chains of their keys. O(n)."""
    for slot in slots:
        key = rows.key[slot]
        if key == NOBODY:
            continue
        head = rows.first[key]
        rows.following[slot] = head
        rows.previous[slot] = NOBODY
        if head != NOBODY:
            rows.previous[head] = slot
        rows.first[key] = slot


@borrowing
def unlink(slots: Int32Array, rows: Arranged) -> None:
    """Rows leave their chains. O(n)."""
    for slot in slots:
        if rows.key[slot] == NOBODY:
            continue
        before, after = rows.previous[slot], rows.following[slot]
        if before == NOBODY:
            rows.first[rows.key[slot]] = after
        else:
            rows.following[before] = after
        if after != NOBODY:
            rows.previous[after] = before


@borrowing
def slots_of(keys: Int32Array, rows: Arranged, out: Int32Array) -> int:
    """Write the slots of all rows of some keys, each key once; return how many. There is room for all.

    O(keys + slots).
    """
    count = 0
    for key in keys:
        slot = rows.first[key]
        while slot != NOBODY:
            out[count] = slot
            count += 1
            slot = rows.following[slot]
    return count


@borrowing
def put_owners(slots: Int32Array, starts: Int64Array, owners: Int32Array, rows: Arranged, used: int) -> int:
    """Write the runs of slots, those of row i from owners[starts[i]:starts[i + 1]] in any order; return how
    many words are in use then. used: so many are before; there is room for one an owner. O(owners).
    """
    for i in range(slots.shape[0]):
        low = used
        for pair in range(starts[i], starts[i + 1]):
            word = np.int32(owners[pair] >> 6)
            bit = np.uint64(1) << np.uint64(owners[pair] & 63)
            place = used
            while place > low and rows.words[place - 1] > word:
                place -= 1
            if place > low and rows.words[place - 1] == word:
                rows.bits[place - 1] |= bit
                continue
            for behind in range(used, place, -1):
                rows.words[behind], rows.bits[behind] = rows.words[behind - 1], rows.bits[behind - 1]
            rows.words[place], rows.bits[place] = word, bit
            used += 1
        rows.starts[slots[i]] = low
        rows.counts[slots[i]] = used - low
    return used


@borrowing
def pack_owners(slots: Int32Array, rows: Arranged, words: Int32Array, bits: UInt64Array) -> int:
    """Write the runs of slots one after another into other arrays; return how many words they take."""
    used = 0
    for slot in slots:
        low, count = rows.starts[slot], rows.counts[slot]
        rows.starts[slot] = used
        for place in range(low, low + count):
            words[used], bits[used] = rows.words[place], rows.bits[place]
            used += 1
    return used


@borrowing
def drop_owners(slots: Int32Array, rows: Arranged, dropped: UInt64Array) -> None:
    """Rows of slots belong to some columns no more. dropped: their bits, 64 a word."""
    for slot in slots:
        low = used = rows.starts[slot]
        for place in range(low, low + rows.counts[slot]):
            left = rows.bits[place]
            if rows.words[place] < dropped.shape[0]:
                left &= ~dropped[rows.words[place]]
            if left != 0:
                rows.words[used], rows.bits[used] = rows.words[place], left
                used += 1
        rows.counts[slot] = used - low


@borrowing
def count_owners(slots: Int32Array, rows: Arranged, starts: Int64Array) -> None:
    """starts: int64[n + 1], written: how many owners the rows before each have."""
    starts[0] = 0
    for i in range(slots.shape[0]):
        count, low = 0, rows.starts[slots[i]]
        for place in range(low, low + rows.counts[slots[i]]):
            left = rows.bits[place]
            while left != 0:
                left &= left - np.uint64(1)
                count += 1
        starts[i + 1] = starts[i] + count


@borrowing
def spell_owners(slots: Int32Array, rows: Arranged, owners: Int32Array) -> None:
    """The owners of slots, ascending within each."""
    written = 0
    for slot in slots:
        low = rows.starts[slot]
        for place in range(low, low + rows.counts[slot]):
            written = _spelled(rows.words[place], rows.bits[place], owners, written)


@step
def _spelled(word: int, bits: np.uint64, owners: Int32Array, written: int) -> int:
    while bits != 0:
        lowest = bits & (~bits + np.uint64(1))
        owners[written] = np.int32(word * 64 + bit_of(lowest))
        written += 1
        bits ^= lowest
    return written


@borrowing
def probe(
    slots: Int32Array,
    first: int,
    near: Arranged,
    far: Arranged,
    skipped: BoolArray,
    since: int,
    until: int,
    out: SlotPairs,
) -> tuple[int, int]:
    """The partners of rows, from the first on: equal keys, there together at an instant from since to until,
    with owners in common. Return the row that there was no room for (how many there are: none), and how many
    pairs of those before it there are.

    skipped: bool by slot of the far input: rows that are nobody's partners. O(rows + partners * words).
    """
    count = 0
    room, owners_room = out.near.shape[0], out.owners.shape[0]
    for row in range(first, slots.shape[0]):
        slot, before = slots[row], count
        filled = out.starts[count]
        other = NOBODY if near.key[slot] == NOBODY else far.first[near.key[slot]]
        while other != NOBODY:
            begin, end = (
                max(near.valid_from[slot], far.valid_from[other]),
                min(near.valid_to[slot], far.valid_to[other]),
            )
            if begin < end and end > since and begin <= until and not skipped[other]:
                start = filled
                one, two = near.starts[slot], far.starts[other]
                one_end, two_end = one + near.counts[slot], two + far.counts[other]
                if count == room:
                    return row, before
                while one < one_end and two < two_end:
                    if near.words[one] < far.words[two]:
                        one += 1
                    elif near.words[one] > far.words[two]:
                        two += 1
                    else:
                        if owners_room - filled < 64:
                            return row, before
                        filled = _spelled(near.words[one], near.bits[one] & far.bits[two], out.owners, filled)
                        one += 1
                        two += 1
                if filled > start:
                    out.near[count], out.far[count] = slot, other
                    out.valid_from[count], out.valid_to[count] = begin, end
                    count += 1
                    out.starts[count] = filled
            other = far.following[other]
    return slots.shape[0], count

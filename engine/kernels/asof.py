"""The latest partner of a row among those that are not after it: chains in descending order.

The chains of :mod:`engine.kernels.arranged`, each from the row that is latest on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.kernels.arranged import NOBODY, Arranged
from engine.kernels.compiled import kernel, step

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


class InOrder(NamedTuple):
    """Rows whose chains descend in ``order``, int64 by slot."""

    rows: Arranged
    order: Int64Array


Latest = tuple[Int64Array, Int32Array, Int64Array, Int64Array]
"""(pair of a row and an owner, partner, when it begins and ends to be the latest)."""


@kernel
def link_in_order(slots: Int32Array, rows: Arranged, order: Int64Array, ids: Int64Array) -> None:
    """Rows join the chains of their keys, behind those that are later: in ``order``, int64 by slot, or where
    that is equal in their ids. O(1) a row that is the latest, else O(those that are later).
    """
    for slot in slots:
        key = rows.key[slot]
        if key == NOBODY:
            continue
        before, after = NOBODY, rows.first[key]
        while after != NOBODY and _is_later(after, slot, order, ids):
            before, after = after, rows.following[after]
        rows.previous[slot], rows.following[slot] = before, after
        if before == NOBODY:
            rows.first[key] = slot
        else:
            rows.following[before] = slot
        if after != NOBODY:
            rows.previous[after] = slot


@kernel
def _is_later(one: int, other: int, order: Int64Array, ids: Int64Array) -> bool:
    if order[one] != order[other]:
        return bool(order[one] > order[other])
    for word in range(ids.shape[1]):
        if ids[one, word] != ids[other, word]:
            return bool(ids[one, word] > ids[other, word])
    return False


@kernel
def affected(
    slots: Int32Array,
    outer: InOrder,
    inner: InOrder,
    moves: BoolArray,
    strict: bool,
    since: int,
    marks: BoolArray,
    out: Int32Array,
) -> int:
    """Left rows whose latest partner may be another when some right rows enter or leave: those that are not
    before such a row, and before the next one that stays and has all of its owners. Return how many there
    are.

    since: the turn begins behind it; a row that left by then is still in its chain, and stays no more.
    marks: bool by left slot, rows that are left out; written. out: int32, room for all left rows.
    """
    left, left_order, right, right_order = outer.rows, outer.order, inner.rows, inner.order
    count = 0
    for slot in slots:
        if right.key[slot] == NOBODY:
            continue
        bound = right.previous[slot]
        while bound != NOBODY and (
            moves[bound] or right.valid_to[bound] <= since or not _has_all(right, bound, slot)
        ):
            bound = right.previous[bound]
        row = left.first[right.key[slot]]
        while row != NOBODY and _is_partner(right_order[slot], left_order[row], strict):
            if not marks[row] and (
                bound == NOBODY or not _is_partner(right_order[bound], left_order[row], strict)
            ):
                marks[row] = True
                out[count] = row
                count += 1
            row = left.following[row]
    return count


@kernel
def _is_partner(inner: int, outer: int, strict: bool) -> bool:
    return inner < outer or (inner == outer and not strict)


@kernel
def _has_all(rows: Arranged, one: int, other: int) -> bool:
    """Whether a row has all owners that another one has."""
    place, end = rows.starts[one], rows.starts[one] + rows.counts[one]
    for wanted in range(rows.starts[other], rows.starts[other] + rows.counts[other]):
        while place < end and rows.words[place] < rows.words[wanted]:
            place += 1
        if place == end or rows.words[place] != rows.words[wanted]:
            return False
        if rows.bits[wanted] & ~rows.bits[place] != 0:
            return False
    return True


@kernel
def _has(rows: Arranged, slot: int, owner: int) -> bool:
    word, bit = owner >> 6, np.uint64(1) << np.uint64(owner & 63)
    for place in range(rows.starts[slot], rows.starts[slot] + rows.counts[slot]):
        if rows.words[place] >= word:
            return bool(rows.words[place] == word and rows.bits[place] & bit != 0)
    return False


@step
def _filled(
    gap: int, gaps: int, begins: Int64Array, ends: Int64Array, first: int, last: int
) -> tuple[int, int]:
    """Take an interval out of a gap. Returns the gap to go on with, and how many there are."""
    before, after = begins[gap] < first, last < ends[gap]
    if before and after:  # an interval is in one piece, so no other gap has a part of it
        begins[gaps], ends[gaps] = last, ends[gap]
        ends[gap] = first
        gap, gaps = gaps + 1, gaps + 1
    elif before:
        ends[gap] = first
        gap += 1
    elif after:
        begins[gap] = last
        gap += 1
    else:
        gaps -= 1
        begins[gap], ends[gap] = begins[gaps], ends[gaps]
    return gap, gaps


@kernel
def latest(
    slots: Int32Array,
    owners: Int32Array,
    outer: InOrder,
    inner: InOrder,
    strict: bool,
    since: int,
) -> Latest:
    """For each pair of a left row and an owner, and each time of its life from an instant on, the latest of
    the owner's right rows that is there then. By pair.

    slots: int32[n]; owners: int32[n]. O(partners looked at * gaps): it stops at the first partners that cover
    a life.
    """
    left, left_order, right, right_order = outer.rows, outer.order, inner.rows, inner.order
    room, written = max(16, 2 * slots.shape[0]), 0
    pairs, partners = np.empty(room, np.int64), np.empty(room, np.int32)
    begins, ends = np.empty(room, np.int64), np.empty(room, np.int64)
    gap_begins, gap_ends = np.empty(16, np.int64), np.empty(16, np.int64)
    for pair in range(slots.shape[0]):
        slot = slots[pair]
        gap_begins[0], gap_ends[0], gaps = max(left.valid_from[slot], since), left.valid_to[slot], 1
        other = NOBODY if left.key[slot] == NOBODY else right.first[left.key[slot]]
        while other != NOBODY and gaps:
            usable = _is_partner(right_order[other], left_order[slot], strict)
            if not usable or not _has(right, other, owners[pair]):
                other = right.following[other]
                continue
            if gaps == gap_begins.shape[0]:
                gap_begins = np.concatenate((gap_begins, gap_begins))
                gap_ends = np.concatenate((gap_ends, gap_ends))
            gap = 0
            while gap < gaps:
                first, last = (
                    max(right.valid_from[other], gap_begins[gap]),
                    min(right.valid_to[other], gap_ends[gap]),
                )
                if first >= last:
                    gap += 1
                    continue
                if written == room:
                    room *= 2
                    pairs, partners = np.concatenate((pairs, pairs)), np.concatenate((partners, partners))
                    begins, ends = np.concatenate((begins, begins)), np.concatenate((ends, ends))
                pairs[written], partners[written] = pair, other
                begins[written], ends[written] = first, last
                written += 1
                gap, gaps = _filled(gap, gaps, gap_begins, gap_ends, first, last)
            other = right.following[other]
    return pairs[:written], partners[:written], begins[:written], ends[:written]

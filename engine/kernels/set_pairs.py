"""INTERSECT ALL over rows whose exits are known: pairs of equal rows, one of each input.

A *cell* is one value of one query, an *entry* a row in a cell, of the left input or the right. A row is in
one pair at most; those without one are a chain of their cell, from which the one that came last is taken. A
pair is there until the earlier exit of both rows; the one that stays is paired again, at that instant, if the
other side has a row without a pair. All that happens at one instant is one change: rows leave and join the
chains first, then pairs are made.

A *record* says from when until when a pair was there. ``told`` is the number of that of each left entry with
a pair; numbers below those of the step are of steps before. Cost: O(1) an event and cell.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import borrowing, step
from engine.kernels.set_copies import Moves, next_instant
from engine.kernels.set_rows import ENTERED, PREMATURE

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]

NONE = -1
NEVER = -(1 << 63)


class PairSide(NamedTuple):
    """The rows of one input. exits: int64 by slot. By entry, int32: slots, cells, partner, NONE of one
    without a pair, and of those the neighbours previous and following. last: by cell, that of its chain, NONE
    of none.
    """

    exits: Int64Array
    slots: Int32Array
    cells: Int32Array
    partner: Int32Array
    previous: Int32Array
    following: Int32Array
    last: Int32Array


class PairVersions(NamedTuple):
    """Records: int32[n] slots of both and cells, int64[n] instants. filled: int64[1], how many there are.
    stats: int64[2], how many pairs ENTERED, and how many ended PREMATURE, before the exit of both.
    """

    left: Int32Array
    right: Int32Array
    cells: Int32Array
    valid_from: Int64Array
    valid_to: Int64Array
    filled: Int64Array
    stats: Int64Array


@step
def _link(entry: int, side: PairSide) -> None:
    """A row without a pair."""
    last = side.last[side.cells[entry]]
    side.partner[entry] = NONE
    side.previous[entry], side.following[entry] = last, NONE
    if last != NONE:
        side.following[last] = entry
    side.last[side.cells[entry]] = entry


@step
def _unlink(entry: int, side: PairSide) -> None:
    before, after = side.previous[entry], side.following[entry]
    if before != NONE:
        side.following[before] = after
    if after != NONE:
        side.previous[after] = before
    else:
        side.last[side.cells[entry]] = before


@step
def _end(
    one: int,
    other: int,
    at: int,
    base: int,
    told: Int64Array,
    left: PairSide,
    right: PairSide,
    made: PairVersions,
) -> None:
    """The pair of a left entry and a right one ends."""
    exit_at = min(left.exits[left.slots[one]], right.exits[right.slots[other]])
    if at == exit_at:
        return
    record = told[one] - base
    if record >= 0:
        made.valid_to[record] = at
        if made.valid_from[record] == at:
            made.stats[ENTERED] -= 1
            return
    else:
        n = made.filled[0]
        made.left[n], made.right[n], made.cells[n] = left.slots[one], right.slots[other], left.cells[one]
        made.valid_from[n], made.valid_to[n] = NEVER, at
        made.filled[0] += 1
    made.stats[PREMATURE] += 1


@step
def _settle(
    cell: int, at: int, base: int, told: Int64Array, left: PairSide, right: PairSide, made: PairVersions
) -> None:
    """Pairs of rows that have none."""
    while left.last[cell] != NONE and right.last[cell] != NONE:
        one, other = left.last[cell], right.last[cell]
        _unlink(one, left)
        _unlink(other, right)
        left.partner[one], right.partner[other] = other, one
        n = made.filled[0]
        made.left[n], made.right[n], made.cells[n] = left.slots[one], right.slots[other], cell
        made.valid_from[n] = at
        made.valid_to[n] = min(left.exits[left.slots[one]], right.exits[right.slots[other]])
        told[one] = base + n
        made.filled[0] += 1
        made.stats[ENTERED] += 1


@borrowing
def _happen(
    moves: Moves,
    entries: Int32Array,
    event: int,
    at: int,
    base: int,
    is_left: bool,
    told: Int64Array,
    left: PairSide,
    right: PairSide,
    made: PairVersions,
) -> int:
    """The events of an instant of one input, from one on, but for new pairs; the first of a later one."""
    side = left if is_left else right
    while event < moves.at.shape[0] and moves.at[event] == at:
        row = moves.rows[event]
        for pair in range(moves.starts[row], moves.starts[row + 1]):
            entry = entries[pair]
            if moves.signs[event] > 0:
                _link(entry, side)
            elif side.partner[entry] == NONE:
                _unlink(entry, side)
            elif is_left:
                other = side.partner[entry]
                _end(entry, other, at, base, told, left, right, made)
                _link(other, right)
            else:
                other = side.partner[entry]
                _end(other, entry, at, base, told, left, right, made)
                _link(other, left)
        event += 1
    return event


@borrowing
def _settle_all(
    moves: Moves,
    first: int,
    last: int,
    base: int,
    told: Int64Array,
    left: PairSide,
    right: PairSide,
    made: PairVersions,
) -> None:
    for event in range(first, last):
        row, at = moves.rows[event], moves.at[event]
        for pair in range(moves.starts[row], moves.starts[row + 1]):
            _settle(moves.cells[pair], at, base, told, left, right, made)


@borrowing
def fold(
    of_left: Moves,
    left_entries: Int32Array,
    of_right: Moves,
    right_entries: Int32Array,
    base: int,
    told: Int64Array,
    left: PairSide,
    right: PairSide,
    made: PairVersions,
) -> None:
    """Rows of both inputs enter and leave; of one instant those that leave stand first. The entries are those
    of each pair of a row and a cell. told: int64 by left entry. base: records have numbers from here on.
    made: with room for two records a pair of an event and a cell.
    """
    i, j = 0, 0
    while i < of_left.at.shape[0] or j < of_right.at.shape[0]:
        at = next_instant(of_left, i, of_right, j)
        k = _happen(of_left, left_entries, i, at, base, True, told, left, right, made)
        m = _happen(of_right, right_entries, j, at, base, False, told, left, right, made)
        _settle_all(of_left, i, k, base, told, left, right, made)
        _settle_all(of_right, j, m, base, told, left, right, made)
        i, j = k, m


@borrowing
def enter(entries: Int32Array, side: PairSide) -> None:
    """Rows enter, and nobody asks for records; pairs are made by :func:`settle`."""
    for entry in entries:
        _link(entry, side)


@borrowing
def settle(cells: Int32Array, told: Int64Array, left: PairSide, right: PairSide) -> None:
    """The pairs of cells whose rows entered."""
    for cell in cells:
        while left.last[cell] != NONE and right.last[cell] != NONE:
            one, other = left.last[cell], right.last[cell]
            _unlink(one, left)
            _unlink(other, right)
            left.partner[one], right.partner[other] = other, one
            told[one] = 0

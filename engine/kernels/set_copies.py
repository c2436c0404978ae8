"""Set operations by counting: how many copies of a value the answer has, and when each enters and leaves.

A *cell* is one value of one query; ``left`` and ``right`` count its rows in each input, ``size`` its copies
in the answer, which depends on those two alone. Copies are numbered from 1; the one with the highest number
leaves first. All that happens at one instant is one change.

A *record* says from when until when a copy was there. The records of a cell that a step opened are a stack:
``top`` is the last one by cell, ``below`` the one under each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import borrowing, step

Int8Array = npt.NDArray[np.int8]
Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]

NONE = -1
NEVER = -(1 << 63)
FOREVER = (1 << 63) - 1

INTERSECT, INTERSECT_ALL, EXCEPT, EXCEPT_ALL = range(4)


class Moves(NamedTuple):
    """Rows of an input that enter and leave: at, rows, signs of each event, by instant; row r is in
    cells[starts[r]:starts[r + 1]].
    """

    at: Int64Array
    rows: Int64Array
    signs: Int8Array
    starts: Int64Array
    cells: Int32Array


class Counts(NamedTuple):
    """By cell. top: NONE between steps."""

    left: Int64Array
    right: Int64Array
    size: Int64Array
    top: Int32Array


class CopyVersions(NamedTuple):
    """Records: int32[n] cells, copies and below; int64[n] instants. filled: int64[1], how many there are."""

    cells: Int32Array
    copies: Int32Array
    below: Int32Array
    valid_from: Int64Array
    valid_to: Int64Array
    filled: Int64Array


@step
def size_of(form: int, left: int, right: int) -> int:
    """How many copies the answer has, of so many left and right."""
    if form == EXCEPT_ALL:
        return max(left - right, 0)
    if form == INTERSECT_ALL:
        return min(left, right)
    if form == EXCEPT:
        return int(left > 0 and right == 0)
    return int(left > 0 and right > 0)


@step
def next_instant(left: Moves, i: int, right: Moves, j: int) -> int:
    """The earlier one of the next events of two inputs, at least one of which has one."""
    if i == left.at.shape[0]:
        return int(right.at[j])
    if j == right.at.shape[0]:
        return int(left.at[i])
    return int(min(left.at[i], right.at[j]))


@step
def count(moves: Moves, event: int, at: int, counts: Int64Array) -> int:
    """Count the events of an instant, from one on; the first of a later instant. counts: by cell."""
    while event < moves.at.shape[0] and moves.at[event] == at:
        row, sign = moves.rows[event], np.int64(moves.signs[event])
        for pair in range(moves.starts[row], moves.starts[row + 1]):
            counts[moves.cells[pair]] += sign
        event += 1
    return event


@step
def _settle(moves: Moves, first: int, last: int, form: int, held: Counts, made: CopyVersions) -> None:
    """Open and close copies of the cells of some events of one instant."""
    for event in range(first, last):
        row, at = moves.rows[event], moves.at[event]
        for pair in range(moves.starts[row], moves.starts[row + 1]):
            cell = moves.cells[pair]
            size = size_of(form, held.left[cell], held.right[cell])
            while held.size[cell] < size:
                held.size[cell] += 1
                n = made.filled[0]
                made.cells[n], made.copies[n], made.below[n] = cell, held.size[cell], held.top[cell]
                made.valid_from[n], made.valid_to[n] = at, FOREVER
                held.top[cell] = n
                made.filled[0] += 1
            while held.size[cell] > size:
                record = held.top[cell]
                if record >= 0:
                    made.valid_to[record] = at
                    held.top[cell] = made.below[record]
                else:
                    n = made.filled[0]
                    made.cells[n], made.copies[n], made.below[n] = cell, held.size[cell], NONE
                    made.valid_from[n], made.valid_to[n] = NEVER, at
                    made.filled[0] += 1
                held.size[cell] -= 1


@borrowing
def fold(left: Moves, right: Moves, form: int, held: Counts, made: CopyVersions) -> None:
    """Rows of both inputs enter and leave. made: with room for a record a pair of an event and a cell.
    O(pairs).
    """
    i, j = 0, 0
    while i < left.at.shape[0] or j < right.at.shape[0]:
        at = next_instant(left, i, right, j)
        k, m = count(left, i, at, held.left), count(right, j, at, held.right)
        _settle(left, i, k, form, held, made)
        _settle(right, j, m, form, held, made)
        i, j = k, m
    for record in range(made.filled[0]):
        held.top[made.cells[record]] = NONE


@borrowing
def enter(cells: Int32Array, counts: Int64Array) -> None:
    """A row enters each of these cells, and nobody asks for records."""
    for cell in cells:
        counts[cell] += 1


@borrowing
def resize(cells: Int32Array, form: int, held: Counts) -> None:
    """The sizes of cells whose rows entered."""
    for cell in cells:
        held.size[cell] = size_of(form, held.left[cell], held.right[cell])

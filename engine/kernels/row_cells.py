"""The cells that rows are in, a list of *entries* for each row, so that a row that leaves is found in all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import borrowing

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

NONE = -1


class RowCells(NamedTuple):
    """By slot of a row: heads, its first entry, NONE of a row in no cell. By entry: slots, cells and sibling,
    the next entry of the row; int32. free: entries, the first free[top[0]] of which are not in use.
    """

    heads: Int32Array
    slots: Int32Array
    cells: Int32Array
    sibling: Int32Array
    free: Int32Array
    top: Int64Array


@borrowing
def put(
    slots: Int32Array, starts: Int64Array, cells: Int32Array, held: RowCells, entries: Int32Array
) -> None:
    """Rows are in cells, too: row i, in slots[i], in cells[starts[i]:starts[i + 1]]. entries: int32, as long
    as cells, written. There is room.
    """
    for i in range(slots.shape[0]):
        for pair in range(starts[i], starts[i + 1]):
            held.top[0] -= 1
            entry = held.free[held.top[0]]
            held.slots[entry], held.cells[entry] = slots[i], cells[pair]
            held.sibling[entry] = held.heads[slots[i]]
            held.heads[slots[i]] = entry
            entries[pair] = entry


@borrowing
def count(slots: Int32Array, held: RowCells, starts: Int64Array) -> None:
    """starts: int64[n + 1], written: from where on the entries of each row stand one after the other."""
    starts[0] = 0
    for i in range(slots.shape[0]):
        starts[i + 1] = starts[i]
        entry = held.heads[slots[i]]
        while entry != NONE:
            starts[i + 1] += 1
            entry = held.sibling[entry]


@borrowing
def spell(slots: Int32Array, held: RowCells, entries: Int32Array) -> None:
    """Write the entries of rows, row by row."""
    n = 0
    for slot in slots:
        entry = held.heads[slot]
        while entry != NONE:
            entries[n] = entry
            n += 1
            entry = held.sibling[entry]


@borrowing
def release(slots: Int32Array, held: RowCells) -> None:
    """Take these rows out of all cells."""
    for slot in slots:
        entry = held.heads[slot]
        held.heads[slot] = NONE
        while entry != NONE:
            held.free[held.top[0]] = entry
            held.top[0] += 1
            entry = held.sibling[entry]


@borrowing
def drop(slots: Int32Array, dropped: BoolArray, held: RowCells) -> None:
    """Take these rows out of cells. dropped: bool by entry. O(their entries)."""
    for slot in slots:
        entry = held.heads[slot]
        held.heads[slot] = NONE
        while entry != NONE:
            following = held.sibling[entry]
            if dropped[entry]:
                held.free[held.top[0]] = entry
                held.top[0] += 1
            else:
                held.sibling[entry] = held.heads[slot]
                held.heads[slot] = entry
            entry = following

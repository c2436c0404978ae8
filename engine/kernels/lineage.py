"""Lineage of rows in flight: uint64[columns, rows], whose bits tell which queries still want each row.

A column holds 64 queries, or one alternative of each of them. Bits only ever go from 1 to 0.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.bitmaps import Words
from engine.kernels.bits import ones
from engine.kernels.compiled import kernel

Places = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@kernel
def wanting(wanted: Words, columns: Places, masks: Words, n: int, out: Places) -> int:
    """Write the places of rows < n with a bit of masks[i] in some columns[i], ascending; return how many.

    out: int64[>= n]. O(n * columns).
    """
    count = 0
    for row in range(n):
        some = np.uint64(0)
        for i in range(columns.shape[0]):
            some |= wanted[columns[i], row] & masks[i]
        out[count] = row
        count += some != 0
    return count


@kernel
def restrict(
    wanted: Words,
    columns: Places,
    masks: Words,
    table: Words,
    codes: npt.NDArray[np.uint16],
    rows: Places,
    left: Flags,
) -> int:
    """A grouped filter's visit: wanted[columns[i], rows[j]] &= table[i, codes[j]]; returns bits cleared.

    table: uint64[columns, pieces], all ones outside masks. codes: uint16[rows], the piece of each row. left:
    bool[rows]: becomes True where a bit of masks is left; others stay as they are. O(rows * columns).
    """
    cleared = np.uint64(0)
    for i in range(columns.shape[0]):
        column = wanted[columns[i]]
        accepted = table[i]
        mask = masks[i]
        for j in range(rows.shape[0]):
            before = column[rows[j]]
            after = before & accepted[codes[j]]
            column[rows[j]] = after
            left[j] |= (after & mask) != 0
            cleared += ones(before ^ after)
    return int(cleared)


@kernel
def begin(live: Words, wanted: Words) -> None:
    """Every row is wanted by all that live: wanted[c, r] = live[c]."""
    for c in range(live.shape[0]):
        wanted[c] = live[c]


@kernel
def end(wanted: Words, words: Places, rows: Places, at: Places, first: int, out: Words) -> None:
    """End the flight of these rows: out[words[c], first + at[row]] |= wanted[c, row]. O(rows * columns)."""
    for c in range(words.shape[0]):
        source = wanted[c]
        target = out[words[c]]
        for j in range(rows.shape[0]):
            target[first + at[rows[j]]] |= source[rows[j]]


@kernel
def refuse(wanted: Words, columns: Places, masks: Words, rows: Places) -> int:
    """Clear the masked bits of columns[i] at these rows; returns how many were set."""
    cleared = np.uint64(0)
    for i in range(columns.shape[0]):
        column = wanted[columns[i]]
        mask = masks[i]
        for j in range(rows.shape[0]):
            before = column[rows[j]] & mask
            column[rows[j]] ^= before
            cleared += ones(before)
    return int(cleared)

"""Rows of a stream linked with those of their sessions: the one before and the one after.

A row that none comes after is the last of its session as far as it is known. Places are those of arrays, in
the order of time; rows before ``base`` are gone, whatever links to them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel
from engine.kernels.window_pairs import NOBODY

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]


class LinkedRows(NamedTuple):
    """at: int64[room], ms. key: int32[room], numbers of keys. before, after: int32[room], places of the rows
    beside it in its session. last: int32[keys], the last row of a key.
    """

    at: Int64Array
    key: Int32Array
    before: Int32Array
    after: Int32Array
    last: Int32Array


@kernel
def link(base: int, low: int, high: int, gap_ms: int, rows: LinkedRows) -> None:
    """Link the rows at places from low to high, which came after all others. O(high - low)."""
    for place in range(low, high):
        key = rows.key[place]
        found = rows.last[key]
        rows.before[place] = rows.after[place] = NOBODY
        if found >= base and rows.at[place] - rows.at[found] < gap_ms:
            rows.before[place] = found
            rows.after[found] = place
        rows.last[key] = place


@kernel
def last_of_heads(base: int, high: int, rows: LinkedRows, out: Int32Array) -> int:
    """The last rows of the sessions whose first rows that are left are at places from base to high.

    out: int32[high - base], written. Returns how many. O(rows of these sessions).
    """
    count = 0
    for head in range(base, high):
        if rows.before[head] >= base:
            continue
        place = head
        while rows.after[place] != NOBODY:
            place = rows.after[place]
        out[count] = place
        count += 1
    return count


@kernel
def rows_of_sessions(
    base: int, lasts: Int32Array, rows: LinkedRows, starts: Int64Array, out: Int32Array, session: Int32Array
) -> int:
    """All rows of sessions, and where each session begins.

    lasts: int32[n], the last row of each. starts: int64[n], ms, written. out, session: int32[rows], written:
    a row, and its session as an index of ``lasts``; or both empty to count alone. Returns the number of rows.
    O(rows).
    """
    count = 0
    for number in range(lasts.shape[0]):
        place = lasts[number]
        while place >= base:
            if out.shape[0]:
                out[count] = place
                session[count] = number
            count += 1
            starts[number] = rows.at[place]
            place = rows.before[place]
    return count

"""Rows and their partners: ranges of an arrangement of the other side, narrowed, spelled out, completed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel

Int64Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


@kernel
def narrow(
    values: Int64Array,
    bounds: Int64Array,
    usable: BoolArray,
    lower: bool,
    strict: bool,
    low: Int64Array,
    high: Int64Array,
) -> None:
    """Narrow each row's range to the values that satisfy its bound: value >= bound (lower) or value <= bound,
    and where ``strict`` not equal to it.

    values: int64[m], ascending in every range. bounds: int64[n]; usable: bool[n], elsewhere nothing
    satisfies. low, high: int64[n], low <= place < high; one of them is written. O(n log m).
    """
    for row in range(low.shape[0]):
        first, last = low[row], high[row]
        if not usable[row]:
            high[row] = first
            continue
        bound = bounds[row]
        passes_equal = lower == strict  # whether the place looked for is behind values that equal
        while first < last:
            middle = (first + last) >> 1
            value = values[middle]
            if value < bound or (passes_equal and value == bound):
                first = middle + 1
            else:
                last = middle
        if lower:
            low[row] = first
        else:
            high[row] = first


@kernel
def spell(
    low: Int64Array,
    high: Int64Array,
    order: Int64Array,
    row: int,
    place: int,
    rows: Int64Array,
    partners: Int64Array,
) -> tuple[int, int, int]:
    """(r, order[p]) for each row r from ``row`` on and each p of low[r] <= p < high[r], from ``place`` on in
    the first.

    rows, partners: int64, of one length, written as far as they reach. Returns how many were written, and
    the row and place where to go on; the row is n when all are. O(rows + written).
    """
    room, written = rows.shape[0], 0
    while row < low.shape[0]:
        stop = min(high[row], place + room - written)
        for each in range(place, stop):
            rows[written] = row
            partners[written] = order[each]
            written += 1
        if stop < high[row]:
            return written, row, stop
        row += 1
        if row < low.shape[0]:
            place = low[row]
    return written, row, 0


@kernel
def with_lonely(left: Int64Array, right: Int64Array, n: int, rows: Int64Array, partners: Int64Array) -> int:
    """The pairs, and (r, -1) for each of n rows without any, in the order of rows.

    left, right: int64[pairs], left ascending. rows, partners: int64[>= pairs + lonely], written. Returns how
    many were. O(n + pairs).
    """
    pair, written = 0, 0
    for row in range(n):
        if pair == left.shape[0] or left[pair] != row:
            rows[written] = row
            partners[written] = -1
            written += 1
        while pair < left.shape[0] and left[pair] == row:
            rows[written] = row
            partners[written] = right[pair]
            written += 1
            pair += 1
    return written

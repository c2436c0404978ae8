"""Rows into windows: the last of each key, overlapping windows of fixed size, sessions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel

BoolArray = npt.NDArray[np.bool_]
Int64Array = npt.NDArray[np.int64]


@kernel
def last_of_each(codes: Int64Array, distinct: int, most: int, out: BoolArray) -> None:
    """out[r]: whether row r is one of the last ``most`` rows of its code.

    codes: int64[n], below ``distinct``. out: bool[n], written. O(n + distinct).
    """
    seen = np.zeros(distinct, np.int64)
    for row in range(codes.shape[0] - 1, -1, -1):
        code = codes[row]
        out[row] = seen[code] < most
        seen[code] += 1


@kernel
def rows_of_hops(
    timestamps: Int64Array,
    size_ms: int,
    slide_ms: int,
    first_end: int,
    last_end: int,
    rows: Int64Array,
    ends: Int64Array,
) -> int:
    """Pair windows with their rows: window by window in the order of time, rows in their order.

    timestamps: int64[n], ascending. Windows end at first_end, first_end + slide_ms, ... up to last_end, and
    hold end - size_ms <= timestamp < end. rows, ends: int64[pairs], written, or both empty to count alone.
    Returns the number of pairs. O(n + windows with rows + pairs): windows without rows are stepped over.
    """
    n, pairs = timestamps.shape[0], 0
    low = high = 0
    end = first_end
    while end <= last_end:
        while low < n and timestamps[low] < end - size_ms:
            low += 1
        if low == n:
            break
        if timestamps[low] >= end:
            end += ((timestamps[low] - end) // slide_ms + 1) * slide_ms
            continue
        high = max(high, low)
        while high < n and timestamps[high] < end:
            high += 1
        if rows.shape[0]:
            for row in range(low, high):
                rows[pairs + row - low] = row
                ends[pairs + row - low] = end
        pairs += high - low
        end += slide_ms
    return pairs


@kernel
def sessions(
    codes: Int64Array,
    timestamps: Int64Array,
    distinct: int,
    gap_ms: int,
    session: Int64Array,
    first: Int64Array,
    last: Int64Array,
) -> int:
    """Cut the rows of each code where ``gap_ms`` or more lie between two of them.

    codes: int64[n], below ``distinct``. timestamps: int64[n], ascending. session: int64[n], written: the
    session of each row; sessions count from 0 in the order of their first rows. first, last: int64[n],
    written for each session: its first and last timestamp. Returns the number of sessions. O(n + distinct).
    """
    current = np.full(distinct, -1, np.int64)
    count = 0
    for row in range(codes.shape[0]):
        found = current[codes[row]]
        if found < 0 or timestamps[row] - last[found] >= gap_ms:
            found = count
            count += 1
            current[codes[row]] = found
            first[found] = timestamps[row]
        last[found] = timestamps[row]
        session[row] = found
    return count

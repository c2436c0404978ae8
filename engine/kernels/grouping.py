"""Rows put into groups: first appearances, and rows of a group side by side."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]


@kernel
def relabel(codes: Int64Array, width: int, out: Int64Array, firsts: Int64Array) -> int:
    """Codes below ``width`` as 0, 1, 2, ... in the order of first appearance; return how many there are.

    out: int64[n]; firsts: int64[>= codes], the first row of each. O(n + width).
    """
    known = np.full(width, -1, np.int64)
    seen = 0
    for row in range(codes.shape[0]):
        code = codes[row]
        if known[code] < 0:
            known[code] = seen
            firsts[seen] = row
            seen += 1
        out[row] = known[code]
    return seen


@kernel
def first_rows(codes: Int64Array, out: Int64Array) -> None:
    """out[c] = the first row with code c. Codes are 0, 1, 2, ... in the order of first appearance."""
    seen = 0
    for row in range(codes.shape[0]):
        if codes[row] == seen:
            out[seen] = row
            seen += 1


@kernel
def distinct(codes: Int32Array, places: Int32Array, out: Int32Array, used: Int32Array) -> int:
    """Codes as 0, 1, 2, ... in the order of first appearance, however far they lie apart; return how many.

    places: int32[power of two, more than there are codes], all -1; written. out: int32[n]. used: int32[n],
    the code that each number stands for. O(n).
    """
    mask = np.uint64(places.shape[0] - 1)
    seen = 0
    for row in range(codes.shape[0]):
        code = codes[row]
        mixed = np.uint64(code) * np.uint64(0x9E3779B97F4A7C15)
        place = (mixed >> np.uint64(32)) & mask
        while places[place] >= 0 and used[places[place]] != code:
            place = (place + np.uint64(1)) & mask
        if places[place] < 0:
            places[place] = seen
            used[seen] = code
            seen += 1
        out[row] = places[place]
    return seen


@kernel
def bring_together(codes: Int64Array, starts: Int64Array, order: Int64Array) -> None:
    """Rows by code, those of one code in the order they had: a counting sort.

    codes: int64[n], below groups. starts: int64[groups + 1], where each group's rows begin in order;
    order: int64[n]. Both are written. O(n + groups).
    """
    starts[:] = 0
    for row in range(codes.shape[0]):
        starts[codes[row] + 1] += 1
    for group in range(1, starts.shape[0]):
        starts[group] += starts[group - 1]
    cursor = starts[:-1].copy()
    for row in range(codes.shape[0]):
        order[cursor[codes[row]]] = row
        cursor[codes[row]] += 1

"""Rows put into groups: first appearances, and rows of a group side by side."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel

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

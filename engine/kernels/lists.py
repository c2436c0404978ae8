"""Matches as lists: for each row the queries that it satisfies, one list behind the other."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel

Int32Array = npt.NDArray[np.int32]


@kernel
def lists_of_rows(
    rows: Int32Array, queries: Int32Array, numbers: Int32Array, starts: Int32Array, out: Int32Array
) -> None:
    """Row r's list is numbers[q] for each pair (r, q), in the order of the pairs.

    rows, queries: int32[pairs], a row and a query each, in any order. starts: int32[n + 1], written: row r's
    list is out[starts[r] : starts[r + 1]]. out: int32[pairs], written. O(pairs + n), two passes.
    """
    n = starts.shape[0] - 1
    starts[:] = 0
    for pair in range(rows.shape[0]):
        starts[rows[pair] + 1] += 1
    for row in range(n):
        starts[row + 1] += starts[row]
    at = starts[:n].copy()
    for pair in range(rows.shape[0]):
        row = rows[pair]
        out[at[row]] = numbers[queries[pair]]
        at[row] += 1

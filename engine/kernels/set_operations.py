"""UNION ALL, INTERSECT and EXCEPT over rows whose equality is known: codes, the same where rows are equal."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel

Int64Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


@kernel
def paired(codes: Int64Array, copies: Int64Array, out: BoolArray) -> None:
    """Which rows are one of the first ``copies[code]`` of their code.

    codes: int64[n], 0 <= code. copies: int64[width], how many of each code; all of them are used up.
    out: bool[n], written. O(n).
    """
    for row in range(codes.shape[0]):
        code = codes[row]
        out[row] = copies[code] > 0
        if copies[code] > 0:
            copies[code] -= 1


@kernel
def first_of_each(codes: Int64Array, wanted: BoolArray, out: BoolArray) -> None:
    """Which rows are the first of their code, of the codes that are wanted.

    codes: int64[n]. wanted: bool[width], False afterwards of those that were met. out: bool[n], written.
    O(n).
    """
    for row in range(codes.shape[0]):
        code = codes[row]
        out[row] = wanted[code]
        wanted[code] = False


@kernel
def merged(
    timestamp: Int64Array,
    partition: Int64Array,
    offset: Int64Array,
    other_timestamp: Int64Array,
    other_partition: Int64Array,
    other_offset: Int64Array,
    out: Int64Array,
) -> None:
    """The order of the rows of two relations by timestamp, then partition, then offset, then relation.

    The first three: int64[n], in that order already; the next three: int64[m], likewise. out: int64[n + m],
    written: a row of the first relation by its place, one of the other by n and its place. O(n + m).
    """
    n, m = timestamp.shape[0], other_timestamp.shape[0]
    row, other = 0, 0
    for place in range(n + m):
        if row == n:
            first = False
        elif other == m:
            first = True
        elif timestamp[row] != other_timestamp[other]:
            first = timestamp[row] < other_timestamp[other]
        elif partition[row] != other_partition[other]:
            first = partition[row] < other_partition[other]
        else:
            first = offset[row] <= other_offset[other]
        if first:
            out[place] = row
            row += 1
        else:
            out[place] = n + other
            other += 1

"""From a column's values to the pieces that the constants of all predicates cut its domain into.

*starts* is the ascending array of the first values of pieces 1, 2, ...; piece 0 holds everything below the
first start. A value's piece is the number of starts at or below it. The piece after the last holds NULL.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel

Pieces = npt.NDArray[np.uint16]


@kernel
def pieces_by_lookup(
    values: npt.NDArray[np.int64], lowest: int, lookup: npt.NDArray[np.uint16], out: npt.NDArray[np.uint16]
) -> None:
    """out[i] = lookup[values[i] - lowest], clipped at both ends of the lookup table.

    values: integers [n]. lookup: uint16[span]: the pieces of lowest, lowest + 1, ...; its first entry also
    serves everything below, its last everything above. O(n).
    """
    last = lookup.shape[0] - 1
    highest = lowest + last
    for row in range(values.shape[0]):
        value = np.int64(values[row])
        if value < lowest:
            out[row] = lookup[0]
        elif value > highest:
            out[row] = lookup[last]
        else:
            out[row] = lookup[value - lowest]


@kernel
def pieces_of_integers(
    values: npt.NDArray[np.int64], starts: npt.NDArray[np.int64], out: npt.NDArray[np.int32]
) -> None:
    """out[i] = number of starts <= values[i], by bisection. O(n log starts)."""
    for row in range(values.shape[0]):
        value = np.int64(values[row])
        low = 0
        high = starts.shape[0]
        while low < high:
            middle = (low + high) >> 1
            if starts[middle] <= value:
                low = middle + 1
            else:
                high = middle
        out[row] = low


@kernel
def pieces_of_floats(
    values: npt.NDArray[np.float64], starts: npt.NDArray[np.float64], out: npt.NDArray[np.int32]
) -> None:
    """out[i] = number of starts <= values[i], where NaN is above all and equals itself. O(n log starts)."""
    for row in range(values.shape[0]):
        value = values[row]
        low = 0
        high = starts.shape[0]
        if value != value:
            low = high
        while low < high:
            middle = (low + high) >> 1
            if starts[middle] <= value:
                low = middle + 1
            else:
                high = middle
        out[row] = low


@kernel
def fill_table(
    first: npt.NDArray[np.int32],
    last: npt.NDArray[np.int32],
    word: npt.NDArray[np.int32],
    bit: npt.NDArray[np.uint64],
    table: npt.NDArray[np.uint64],
) -> None:
    """Set, for each interval i, its query's bit in pieces first[i] .. last[i]-1 of its word's row.

    first, last, word: int32[intervals]; bit: uint64[intervals], one bit set; table: uint64[words, pieces].
    """
    for i in range(first.shape[0]):
        row = table[word[i]]
        for piece in range(first[i], last[i]):
            row[piece] |= bit[i]


@kernel
def fuse_tables(
    left: npt.NDArray[np.uint64], right: npt.NDArray[np.uint64], out: npt.NDArray[np.uint64]
) -> None:
    """out[w, a * pieces(right) + b] = left[w, a] & right[w, b]: two attributes as one table."""
    for w in range(left.shape[0]):
        for a in range(left.shape[1]):
            for b in range(right.shape[1]):
                out[w, a * right.shape[1] + b] = left[w, a] & right[w, b]

"""From a column's domain keys to the pieces that the constants of many predicates cut its domain into.

*keys* are int64 in the order of the domain (:mod:`engine.domains.domain`). *starts* is the ascending array of
the first keys of pieces 1, 2, ...; piece 0 holds everything below the first start. A key's piece is the
number of starts at or below it. The piece after the last holds NULL.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel

Keys = npt.NDArray[np.int64]
Pieces = npt.NDArray[np.uint16]

NAN_KEY = 0x7FF8000000000000
"""Above the key of infinity (0x7FF0000000000000)."""


@kernel
def keys_of_doubles(values: npt.NDArray[np.float64], bits: Keys, out: Keys) -> None:
    """Keys that order as the doubles do: -0.0 as 0.0, NaN above all.

    bits: the same memory as values, seen as int64.
    """
    for row in range(values.shape[0]):
        key = bits[row]
        if values[row] != values[row]:
            key = NAN_KEY
        elif values[row] == 0.0:
            key = 0
        elif key < 0:
            key ^= 0x7FFFFFFFFFFFFFFF
        out[row] = key


@kernel
def pieces_by_lookup(keys: Keys, lowest: int, lookup: Pieces, out: Pieces) -> None:
    """out[i] = lookup[keys[i] - lowest], clipped at both ends of the lookup table.

    lookup: uint16[span]: the pieces of lowest, lowest + 1, ...; its first entry also serves everything
    below, its last everything above. O(n).
    """
    last = lookup.shape[0] - 1
    highest = lowest + last
    for row in range(keys.shape[0]):
        key = min(max(keys[row], lowest), highest)
        out[row] = lookup[key - lowest]


@kernel
def pieces_by_bisection(keys: Keys, starts: Keys, out: Pieces) -> None:
    """out[i] = number of starts <= keys[i]. O(n log starts); for few starts."""
    count = starts.shape[0]
    if count <= 8:
        for row in range(keys.shape[0]):
            key = keys[row]
            piece = 0
            for i in range(count):
                piece += starts[i] <= key
            out[row] = piece
        return
    for row in range(keys.shape[0]):
        key = keys[row]
        low = 0
        high = count
        while low < high:
            middle = (low + high) >> 1
            if starts[middle] <= key:
                low = middle + 1
            else:
                high = middle
        out[row] = low


@kernel
def pieces_by_merge(order: npt.NDArray[np.uint16], ascending: Keys, starts: Keys, out: Pieces) -> None:
    """Compute out[i] as :func:`pieces_by_bisection` does, for keys that were sorted once for many arrays of
    starts. O(n + starts), no bisection.

    order: uint16[n], the places of ascending[0], ascending[1], ... among the rows.
    """
    piece = 0
    count = starts.shape[0]
    for i in range(order.shape[0]):
        key = ascending[i]
        while piece < count and starts[piece] <= key:
            piece += 1
        out[order[i]] = piece


@kernel
def fill_table(
    first: npt.NDArray[np.int64],
    after: npt.NDArray[np.int64],
    place: npt.NDArray[np.int64],
    table: npt.NDArray[np.uint64],
) -> None:
    """Set, for each interval i, its query's bit in pieces first[i] .. after[i]-1 of its word's row.

    place: int64[intervals], bit (place & 63) of word (place >> 6). Intervals of one place are disjoint.
    table: uint64[words, pieces], zero before but for the last column, NULL's, which is left alone.
    O(intervals + words * pieces).
    """
    pieces = table.shape[1] - 1
    for i in range(first.shape[0]):
        if first[i] < after[i]:
            word = place[i] >> 6
            bit = np.uint64(1) << np.uint64(place[i] & 63)
            table[word, first[i]] ^= bit
            if after[i] < pieces:
                table[word, after[i]] ^= bit
    for w in range(table.shape[0]):
        inside = np.uint64(0)
        for piece in range(pieces):
            inside ^= table[w, piece]
            table[w, piece] = inside


@kernel
def fuse_tables(
    left: npt.NDArray[np.uint64], right: npt.NDArray[np.uint64], out: npt.NDArray[np.uint64]
) -> None:
    """out[w, a * pieces(right) + b] = left[w, a] & right[w, b]: two attributes as one table."""
    for w in range(left.shape[0]):
        for a in range(left.shape[1]):
            for b in range(right.shape[1]):
                out[w, a * right.shape[1] + b] = left[w, a] & right[w, b]


@kernel
def within(
    values: npt.NDArray[np.integer], low: int, last: int, first: bool, out: npt.NDArray[np.uint8]
) -> None:
    """Narrow a scan: out[i] = (first or out[i]) and low <= values[i] <= last.

    values: integers of any width [n]. out: uint8[n], 0 or 1.
    """
    if first:
        for row in range(values.shape[0]):
            out[row] = (values[row] >= low) & (values[row] <= last)
    else:
        for row in range(values.shape[0]):
            out[row] &= (values[row] >= low) & (values[row] <= last)

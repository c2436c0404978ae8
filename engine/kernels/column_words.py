"""Columns of rows as words: for each 64 columns of which some have a row their number, and a bit for each."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.bits import bit_of, ones
from engine.kernels.compiled import borrowing

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
UInt64Array = npt.NDArray[np.uint64]

WORD_BITS = 6
WORD_MASK = 63


@borrowing
def gather(
    starts: Int64Array,
    owners: Int32Array,
    latest: Int64Array,
    out_starts: Int64Array,
    words: Int32Array,
    bits: UInt64Array,
) -> int:
    """The columns of row r, owners[starts[r]:starts[r + 1]] in any order, each once, are then the bits of
    words[out_starts[r]:out_starts[r + 1]]. latest: int64 by word, all -1. Return how many words there are.
    O(owners).
    """
    count = 0
    for row in range(starts.shape[0] - 1):
        low = out_starts[row] = count
        for pair in range(starts[row], starts[row + 1]):
            word = owners[pair] >> WORD_BITS
            bit = np.uint64(1) << np.uint64(owners[pair] & WORD_MASK)
            place = latest[word]
            if place >= low:
                bits[place] |= bit
            else:
                latest[word] = count
                words[count], bits[count] = word, bit
                count += 1
    out_starts[starts.shape[0] - 1] = count
    return count


@borrowing
def count(bits: UInt64Array, starts: Int64Array) -> None:
    """starts: int64[n + 1], written: how many bits the words before each have."""
    starts[0] = 0
    for place in range(bits.shape[0]):
        starts[place + 1] = starts[place] + np.int64(ones(bits[place]))


@borrowing
def spell(words: Int32Array, bits: UInt64Array, owners: Int32Array) -> None:
    """Write the columns of words, word by word."""
    written = 0
    for place in range(words.shape[0]):
        base, left = words[place] << WORD_BITS, bits[place]
        while left != np.uint64(0):
            lowest = left & (~left + np.uint64(1))
            owners[written] = np.int32(base + bit_of(lowest))
            written += 1
            left ^= lowest

"""Which of many rows may be equal to one of the opposite sign, by their hashes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel

Int8Array = npt.NDArray[np.int8]
Int64Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
UInt64Array = npt.NDArray[np.uint64]

_MIX = 0x9E3779B97F4A7C15


@kernel
def mix(hashes: UInt64Array, words: Int64Array) -> None:
    """Take one word more of each row into its hash. O(n)."""
    for i in range(hashes.shape[0]):
        mixed = (hashes[i] ^ np.uint64(words[i])) * np.uint64(_MIX)
        hashes[i] = mixed ^ (mixed >> np.uint64(32))


@kernel
def may_meet(hashes: UInt64Array, weights: Int8Array, came: UInt64Array, went: UInt64Array) -> BoolArray:
    """bool[n]: rows with a hash that may be that of a row of the other sign; few of the others.

    came, went: a power of two of words, all 0; written. O(n).
    """
    mask = np.uint64(64 * came.shape[0] - 1)
    for i in range(hashes.shape[0]):
        place = hashes[i] & mask
        bit = np.uint64(1) << (place & np.uint64(63))
        if weights[i] > 0:
            came[place >> np.uint64(6)] |= bit
        else:
            went[place >> np.uint64(6)] |= bit
    found = np.zeros(hashes.shape[0], np.bool_)
    for i in range(hashes.shape[0]):
        place = hashes[i] & mask
        others = went if weights[i] > 0 else came
        found[i] = (others[place >> np.uint64(6)] >> (place & np.uint64(63))) & np.uint64(1) != 0
    return found

"""Patterns of bits that many rows have: numbered once each, so that work is done for each of them, not for
each bit of each row.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel

Words = npt.NDArray[np.uint64]
Int32Array = npt.NDArray[np.int32]


@kernel
def number(bits: Words, places: Int32Array, out: Int32Array, found: Words) -> int:
    """out[i] = the number of the pattern bits[i], in the order of first appearance; -1 where no bit is set.
    Return how many there are, or -1 if there are more than ``found`` has room for.

    places: int32[power of two, more than there is room for], all -1; written. out: int32[n]. found:
    uint64[room], the patterns. O(n).
    """
    mask = np.uint64(places.shape[0] - 1)
    seen, last, given = 0, np.uint64(0), np.int32(-1)
    for i in range(bits.shape[0]):
        word = bits[i]
        if word != last:
            last, given = word, np.int32(-1)
            if word != 0:
                mixed = word * np.uint64(0x9E3779B97F4A7C15)
                place = (mixed >> np.uint64(40)) & mask
                while places[place] >= 0 and found[places[place]] != word:
                    place = (place + np.uint64(1)) & mask
                if places[place] < 0:
                    if seen == found.shape[0]:
                        return -1
                    places[place] = seen
                    found[seen] = word
                    seen += 1
                given = places[place]
        out[i] = given
    return seen

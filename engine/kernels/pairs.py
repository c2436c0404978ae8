"""Matches spelled out: set bits, and slots of pairs, as one (row, holder) each."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.bitmaps import Words
from engine.kernels.bits import bit_of
from engine.kernels.compiled import kernel

Int32Array = npt.NDArray[np.int32]


@kernel
def spell_bits(
    words: Words, starts: Int32Array, holders: Int32Array, rows: Int32Array, found: Int32Array
) -> int:
    """For bit b of words[w, r]: (r, h) for each h of holders[starts[64 w + b] : starts[64 w + b + 1]].

    words: uint64[w, n]. starts: int32[>= 64 w + 1]. rows, found: int32, of one length, written from their
    beginning on as far as they reach, word by word and in these row by row. Returns how many pairs there are,
    which may be more than were written. O(words + pairs).
    """
    one = np.uint64(1)
    room = rows.shape[0]
    n = 0
    for w in range(words.shape[0]):
        for row in range(words.shape[1]):
            word = words[w, row]
            while word != 0:
                lowest = word & (~word + one)
                place = (w << 6) + bit_of(lowest)
                for i in range(starts[place], starts[place + 1]):
                    if n < room:
                        rows[n] = row
                        found[n] = holders[i]
                    n += 1
                word ^= lowest
    return n

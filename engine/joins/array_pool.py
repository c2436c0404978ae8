"""Large arrays of numbers that nobody holds any more, to be written again."""

from __future__ import annotations

import weakref

import numpy as np

from engine.kernels import streaming
from engine.kernels.bitmaps import Words

ROWS = 65_536


class ArrayPool:
    """Arrays that no reader holds any more.

    The system hands out fresh memory far slower than a pass fills it. An array comes back when its last
    reference goes, so a reader is never written under. Arrays begin at a line of the cache.
    """

    def __init__(self, pooled_max: int) -> None:
        """pooled_max: how many arrays wait here at most."""
        self._pooled_max = pooled_max
        self._free: list[Words] = []

    def take(self, words: int) -> Words:
        """uint64[words, ROWS] with anything in it."""
        wanted = words * ROWS
        while self._free:
            owner = self._free.pop()
            if wanted <= len(owner) - streaming.LINE_WORDS <= 4 * max(wanted, ROWS):
                break
        else:
            owner = streaming.aligned_words(wanted)
        lent: Words = np.asarray(owner.data)  # slices of it keep it, not the owner, alive
        weakref.finalize(lent, self._back, owner).atexit = False
        first = streaming.first_aligned(lent)
        rows = (len(owner) - streaming.LINE_WORDS) // ROWS
        return lent[first : first + rows * ROWS].reshape(rows, ROWS)

    def _back(self, owner: Words) -> None:
        if len(self._free) < self._pooled_max:
            self._free.append(owner)

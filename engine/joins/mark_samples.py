"""Whether it pays to mark the rows of a batch: where most combinations are wanted marks cost more than they
save.

What share of combinations is wanted is estimated from some marks of the last large batch of each input, taken
together row by row. Once it is most, batches go by without being marked, ever more of them, between two of
which a few rows are.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from engine.kernels import join_lineage
from engine.kernels.bitmaps import Words

BATCH_MIN = 1_024
"""Fewer rows are no sample: they are marked as long as the last one said that it pays."""
SAMPLE = 128
"""So many rows are a sample."""
MOST = 0.875
UNSEEN_MAX = 7
"""So many batches go by at most without a sample."""


class MarkSamples:
    """The last samples of the inputs of one join."""

    def __init__(self, inputs: int) -> None:
        self._last: Words = np.full((inputs, SAMPLE), join_lineage.EVERY, np.uint64)
        self._unpaid = [0] * inputs
        """How many samples one after another said that marks do not pay."""
        self._ahead = [0] * inputs

    def forget(self) -> None:
        """Queries came or went: the next batch is sampled."""
        self._ahead = [0] * len(self._ahead)
        self._unpaid = [0] * len(self._unpaid)

    def pays(self, place: int, start: int, stop: int, marks: Callable[[int, int], Words]) -> bool:
        """Whether the next rows of an input, those of these ordinals, are to be marked. marks: of the rows
        between two ordinals.
        """
        if not self._unpaid[place]:
            return True
        if stop - start < BATCH_MIN:
            return False
        if self._ahead[place]:
            self._ahead[place] -= 1
            return False
        first, middle = start, start + (stop - start) // 2
        return self._decide(place, np.concatenate([marks(at, at + SAMPLE // 2) for at in (first, middle)]))

    def paid(self, place: int, marks: Words, wanted: int) -> bool:
        """Whether it did: marks are those of the rows that were marked, ``wanted`` of which are not 0."""
        n = len(marks)
        if n < BATCH_MIN:
            return True
        sample = marks[: n - n % SAMPLE : n // SAMPLE][:SAMPLE]
        if wanted > MOST * n:
            return self._decide(place, sample)
        self._last[place] = sample
        return True

    def _decide(self, place: int, sample: Words) -> bool:
        self._last[place] = sample
        wanted = np.bitwise_and.reduce(self._last, axis=0)
        if np.count_nonzero(wanted) <= MOST * SAMPLE:
            self._unpaid[place] = 0
            return True
        self._unpaid[place] += 1
        self._ahead[place] = min(self._unpaid[place], UNSEEN_MAX)
        return False

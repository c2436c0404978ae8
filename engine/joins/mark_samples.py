"""Whether it pays to mark the rows of a batch: where most combinations are wanted marks cost more than they
save.

A few rows of a large batch are marked first. What share of combinations is wanted is estimated from them and
from the last samples of the other inputs, taken together row by row. As long as it is most, ever more batches
go by before the next sample.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from engine.kernels import join_lineage
from engine.kernels.bitmaps import Words

BATCH_MIN = 1_024
"""No sample is taken of fewer rows: they are marked as long as the last sample said that it pays."""
RUN = 64
RUNS = 2
"""So many runs of so many rows are a sample."""
MOST = 0.875
UNSEEN_MAX = 7
"""So many batches go by at most without a sample."""


class MarkSamples:
    """The last samples of the inputs of one join."""

    def __init__(self, inputs: int) -> None:
        self._last: Words = np.full((inputs, RUN * RUNS), join_lineage.EVERY, np.uint64)
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
        if stop - start < BATCH_MIN:
            return not self._unpaid[place]
        if self._ahead[place]:
            self._ahead[place] -= 1
            return False
        for run in range(RUNS):
            first = start + run * (stop - start - RUN) // max(1, RUNS - 1)
            self._last[place, run * RUN : (run + 1) * RUN] = marks(first, first + RUN)
        wanted = np.bitwise_and.reduce(self._last, axis=0)
        if np.count_nonzero(wanted) <= MOST * len(wanted):
            self._unpaid[place] = 0
            return True
        self._unpaid[place] += 1
        self._ahead[place] = min(self._unpaid[place], UNSEEN_MAX)
        return False

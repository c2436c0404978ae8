"""The k that rows needed of a constraint: the largest, and the usual one."""

from __future__ import annotations

import numpy as np

from engine.kernels.monitoring import BUCKETS
from engine.model.batch import Int64Array

LAST_ROWS = 1 << 20
"""When so many were counted the counts are halved: what was long ago counts less."""
USUAL_SHARE = 0.01


class Needed:
    """The k that rows needed."""

    def __init__(self) -> None:
        self.largest: int | None = None
        self.histogram: Int64Array = np.zeros(BUCKETS, np.int64)

    def saw(self, k: int) -> None:
        """A pass over rows found this to be the largest."""
        if self.histogram.any():
            self.largest = max(k, self.largest or 0)
        if self.histogram.sum() > LAST_ROWS:
            self.histogram >>= 1

    @property
    def usual(self) -> int | None:
        """The smallest 2^b - 1 that all but 1% of the last rows keep."""
        total = int(self.histogram.sum())
        if not total:
            return None
        above = total - np.cumsum(self.histogram)
        return (1 << int(np.argmax(above <= USUAL_SHARE * total))) - 1

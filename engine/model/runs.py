"""Runs: parts of an array that are taken one after another."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int64Array = npt.NDArray[np.int64]


def places_of(starts: Int64Array, counts: Int64Array) -> Int64Array:
    """int64[sum of counts]: starts[i], starts[i] + 1, ... for each run i, ``counts[i]`` places."""
    total = int(counts.sum())
    return np.repeat(starts - np.cumsum(counts) + counts, counts) + np.arange(total)

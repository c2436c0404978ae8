"""Aggregates of rows that stand group by group: group g's are those from starts[g] to starts[g + 1].

Whole numbers are added up exactly, in two limbs: total = high * 2**32 + low, with 0 <= low < 2**32 at the
end. That is exact for up to 2**31 rows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel

Int64Array = npt.NDArray[np.int64]

LOW_BITS = 32
LOW_MASK = (1 << LOW_BITS) - 1


@kernel
def sums(values: Int64Array, starts: Int64Array, high: Int64Array, low: Int64Array) -> None:
    """The exact total of each group, in two limbs; 0 of none."""
    for group in range(starts.shape[0] - 1):
        above = np.int64(0)
        below = np.int64(0)
        for i in range(starts[group], starts[group + 1]):
            above += values[i] >> LOW_BITS
            below += values[i] & LOW_MASK
        high[group] = above + (below >> LOW_BITS)
        low[group] = below & LOW_MASK


@kernel
def least(keys: Int64Array, starts: Int64Array, out: Int64Array) -> None:
    """out[g] = the place of the first of the least keys of each group; -1 of none."""
    for group in range(starts.shape[0] - 1):
        best = -1
        for i in range(starts[group], starts[group + 1]):
            if best < 0 or keys[i] < keys[best]:
                best = i
        out[group] = best

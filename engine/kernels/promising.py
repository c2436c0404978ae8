"""Visits of promising entries, and pairs that they found."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel

Int8Array = npt.NDArray[np.int8]
Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
Float64Array = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


@kernel
def _first_at(ordinals: Int64Array, wanted: int, low: int) -> int:
    """The first place from ``low`` on whose ordinal is not below the wanted one; gallops, then bisects."""
    step, high = 1, low
    while high < ordinals.shape[0] and ordinals[high] < wanted:
        low = high + 1
        high += step
        step *= 2
    high = min(high, ordinals.shape[0])
    while low < high:
        middle = (low + high) >> 1
        if ordinals[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def places_of_pairs(
    pairs_left: Int64Array,
    pairs_right: Int64Array,
    left: Int64Array,
    right: Int64Array,
    out_left: Int64Array,
    out_right: Int64Array,
) -> int:
    """Places in ``left`` and ``right`` of the pairs with both parts there; returns how many they are.

    pairs: by left, then right ordinal. left, right: ascending, each once. out: with room for all pairs.
    Cost: O(pairs log right + left).
    """
    count = 0
    at = 0
    there = 0
    before = np.int64(-1)
    for pair in range(pairs_left.shape[0]):
        one = pairs_left[pair]
        if one != before:
            at = _first_at(left, one, at)
            there = 0
            before = one
            if at == left.shape[0]:
                break
        if left[at] != one:
            continue
        there = _first_at(right, pairs_right[pair], there)
        if there < right.shape[0] and right[there] == pairs_right[pair]:
            out_left[count] = at
            out_right[count] = there
            count += 1
    return count

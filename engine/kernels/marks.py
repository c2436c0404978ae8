"""Ids of many that stand several times, each once; without sorting."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


@kernel
def unmarked(ids: Int32Array, marks: BoolArray, out: Int32Array) -> int:
    """Write the ids that are not marked, in the order in which they stand first, and mark them. Return how
    many there are. marks: bool by id. out: int32[n]. O(n).
    """
    count = 0
    for i in ids:
        if not marks[i]:
            marks[i] = True
            out[count] = i
            count += 1
    return count


@kernel
def unused(ids: Int32Array, counts: Int64Array, out: Int32Array) -> int:
    """Write the ids whose count is 0, in the order in which they stand first. Return how many there are.
    counts: int64 by id, none below 0. out: int32[n]. O(n).
    """
    found = 0
    for i in ids:
        if counts[i] == 0:
            counts[i] = -1
            out[found] = i
            found += 1
    for place in range(found):
        counts[out[place]] = 0
    return found


@kernel
def count_more(ids: Int32Array, users: Int32Array) -> None:
    """Add 1 to the count of each, as often as it stands there. users: int32 by id. O(n)."""
    for i in ids:
        users[i] += 1


@kernel
def count_less(ids: Int32Array, users: Int32Array, out: Int32Array) -> int:
    """Take 1 from the count of each, as often as it stands there, and write those that come to 0. Return how
    many these are. users: int32 by id, none below 0 then. out: int32[n]. O(n).
    """
    found = 0
    for i in ids:
        users[i] -= 1
        if users[i] == 0:
            out[found] = i
            found += 1
    return found

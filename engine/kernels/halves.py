"""Instants in ms and in halves of one (:mod:`engine.changes.source_interval`), in one pass."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel

Int64Array = npt.NDArray[np.int64]

FAR = 1 << 61
"""Instants in ms beyond this are none of the clock's, and stay as they are."""


@kernel
def double(instants: Int64Array, half: int, out: Int64Array) -> None:
    """out[i] = the first (0) or second (1) half of an instant in ms."""
    for i in range(instants.shape[0]):
        at = instants[i]
        out[i] = 2 * at + half if -FAR < at < FAR else at


@kernel
def halve(instants: Int64Array, out: Int64Array) -> None:
    """out[i] = the instant in ms of a half."""
    for i in range(instants.shape[0]):
        at = instants[i]
        out[i] = at >> 1 if -2 * FAR < at < 2 * FAR else at

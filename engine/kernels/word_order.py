"""The order of tuples of words, compared word by word."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import step

Int64Array = npt.NDArray[np.int64]


@step
def comes_before(one: int, other: int, words: Int64Array) -> bool:
    """Whether a row of int64[rows, W] is less than another one."""
    for word in range(words.shape[1]):
        if words[one, word] != words[other, word]:
            return bool(words[one, word] < words[other, word])
    return False

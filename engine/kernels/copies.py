"""Which copy of equal rows comes or goes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel


@kernel
def number_copies(
    codes: npt.NDArray[np.int32] | npt.NDArray[np.int64],
    weights: npt.NDArray[np.int8],
    held: npt.NDArray[np.int64],
    out: npt.NDArray[np.int32],
) -> None:
    """out[i] = the copy that the i-th change brings or takes away, from 1: the last one that there is.

    codes: [n], equal for equal rows. held: int64[codes], how many of each are there before; afterwards
    how many there are then.
    """
    for i in range(codes.shape[0]):
        code = codes[i]
        if weights[i] > 0:
            held[code] += 1
            out[i] = held[code]
        else:
            out[i] = held[code]
            held[code] -= 1

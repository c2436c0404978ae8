"""How far off COUNT, SUM and AVG may be that are estimated from a sample of the rows.

Each row is kept with probability q, whatever becomes of the others (Horvitz and Thompson). COUNT and SUM of
the sample, divided by q, are then without bias; AVG is the ratio of the two. MIN, MAX and COUNT(DISTINCT) are
not scaled: nothing is known of the rows that are missing.

Relative variances, of a population of n rows with the values v:

    COUNT   (1 - q) / (q n)
    SUM     (1 - q) / q * sum v^2 / (sum v)^2
    AVG     (1 - q) / q * sum (v - mean)^2 / (sum v)^2    to first order

In the place of the population's sums stand their estimates, made of the sample. Where a sum is so small or so
large that a double does not hold its square, nothing is told.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

SQUARES = float(np.finfo(np.float64).tiny), float(np.finfo(np.float64).max)
"""Squares below the first have lost digits, or all of them; those above the second are infinite."""
NORMAL_95 = 1.959963984540054
"""Quantile 0.975 of the standard normal distribution."""


def widest_error(
    functions: Sequence[str], columns: Sequence[npt.NDArray[np.float64]], q: float
) -> float | None:
    """The largest half width of the 95 % intervals of all groups and aggregates, relative to their values;
    None where nothing is told of any.

    functions: COUNT, SUM or AVG. columns: float64[groups] each, of a COUNT how many values, of the others
    their sum and the sum of their squares behind that. Groups without values, or with a sum of which an
    estimate tells no error, count for nothing. Raises ValueError. O(groups).
    """
    _require_share(q)
    left, found = list(columns), []
    for function in functions:
        count = left.pop(0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if function == "COUNT":
                spread = 1.0 / count
            else:
                total, squares = left.pop(0), left.pop(0)
                square = total * total
                if function == "AVG":
                    squares = np.maximum(0.0, squares - square / count)
                spread = np.where((square >= SQUARES[0]) & (square <= SQUARES[1]), squares / square, np.nan)
        known = spread[np.isfinite(spread)]
        if len(known):
            found.append(float(known.max()))
    return NORMAL_95 * math.sqrt((1 - q) * max(found)) if found else None


def _require_share(q: float) -> None:
    if not 0 < q <= 1:
        raise ValueError(f"a sample keeps a share above 0 and up to 1 of the rows, not {q}")

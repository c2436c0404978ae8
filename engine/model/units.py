"""Whether an instant was given in another unit than milliseconds.

Seconds since 1970, taken as milliseconds, lie in January 1970; microseconds lie beyond the year 9999. An
instant is taken for one in another unit if it is further than :data:`REACH_MS` from an instant that it should
be near to, and would be within that reach in the other unit. So data of years ago, and clocks that begin at
0, pass.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.model.source import DAY_MS

REACH_MS = 20 * 365 * DAY_MS


def unit_of(value: int, near_ms: int) -> str | None:
    """The unit that an instant, given as ms since 1970, seems to be in instead; None: none is likelier.

    near_ms: an instant that it should be near to.

    >>> unit_of(1_748_772_000, near_ms=1_748_772_000_123)
    'seconds'
    >>> unit_of(1_748_772_000_123_000, near_ms=1_748_772_000_123)
    'microseconds'
    >>> unit_of(1_370_000_000_000, near_ms=1_748_772_000_123)
    """
    if abs(value - near_ms) <= REACH_MS:
        return None
    scales = {"seconds": value * 1_000, "microseconds": value // 1_000, "nanoseconds": value // 1_000_000}
    return next((unit for unit, ms in scales.items() if abs(ms - near_ms) <= REACH_MS), None)


def are_seconds(values: npt.NDArray[np.int64], near_ms: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """bool[n]: which of int64[n] instants are seconds by :func:`unit_of`; near_ms int64[n]."""
    far: npt.NDArray[np.bool_] = np.abs(values - near_ms) > REACH_MS
    if far.any():
        far &= np.abs(values * 1_000 - near_ms) <= REACH_MS
    return far

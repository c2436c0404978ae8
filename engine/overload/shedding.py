"""When rows of a queue are shed, by how full the queue is.

Shedding begins at 80 % of what is reserved for the queue, ends below 50 %, and changes once in 5 s at most,
so that a queue that swings about one share does not flap. Pure: whoever has a clock passes it in, and whoever
sheds does so for queries alone that allow it. O(1) an observation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

BEGINS_AT = 0.80
ENDS_BELOW = 0.50
BETWEEN_S = 5.0


@dataclass(slots=True)
class Shedding:
    """Switches the shedding of one queue on and off. reserve_bytes: what the queue may hold, above 0. is_on:
    whether rows that come are shed now.
    """

    reserve_bytes: int
    is_on: bool = False
    _changed_s: float = -math.inf

    def __post_init__(self) -> None:
        if self.reserve_bytes <= 0:
            raise ValueError(f"a queue's reserve is above 0 bytes, not {self.reserve_bytes:,}")

    def observe(self, queued_bytes: int, now_s: float) -> bool:
        """Note what the queue holds at an instant of a clock that does not go back; returns whether rows that
        come are shed from now on.
        """
        share = queued_bytes / self.reserve_bytes
        wanted = share >= BEGINS_AT or (self.is_on and share >= ENDS_BELOW)
        if wanted != self.is_on and now_s - self._changed_s >= BETWEEN_S:
            self.is_on = wanted
            self._changed_s = now_s
        return self.is_on

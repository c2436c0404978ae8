"""How much room structures have: what they begin with, and where rows go that memory has no room for.

Each structure says what suits it; an engine is made with a bound on all of these. Answers do not depend on
it: with a bound of 1 a few rows take every structure through its growth.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from engine.model.spill import SpillSpace


@dataclass(frozen=True, slots=True)
class Capacities:
    """first_max: no structure begins with room for more items than these, from 1 on. spill: takes sealed
    rows when memory is short; None: all stay in memory. strings_bytes: a table of a stream's strings that is
    larger gives way to a new one, so that it can leave memory.
    """

    first_max: int = sys.maxsize
    spill: SpillSpace | None = None
    strings_bytes: int = 256 << 20

    def first(self, usual: int) -> int:
        """What a structure begins with that usually has room for so many.

        >>> Capacities().first(256), Capacities(1).first(256)
        (256, 1)
        """
        return min(usual, self.first_max)


USUAL = Capacities()
SMALLEST = Capacities(1)

"""Memory for the cells of zones: slots of one array, used again.

The lowest free slot is taken first, and the array gives way to one of half the size once three quarters of it
are free, the upper half among them: a step with many zones at once leaves no room behind that nobody needs.
"""

from __future__ import annotations

import heapq

import numpy as np

from engine.model.capacities import USUAL, Capacities
from engine.summaries.summary_type import ZoneCells

SLOTS_MIN = 8


class CellPool:
    """Slots for the cells of one zone each. A slot is all zeros when it is taken."""

    def __init__(self, buckets: int, size: int, capacities: Capacities = USUAL) -> None:
        self.capacities = capacities
        slots = capacities.first(SLOTS_MIN)
        self._counters = np.zeros((slots, buckets, size), np.int32)
        self._rows = np.zeros((slots, buckets + 1), np.int32)
        self._free = list(range(slots))  # a heap
        self._taken: set[int] = set()

    @property
    def cells(self) -> ZoneCells:
        """The cells of all slots; not to be kept, since the arrays give way to larger ones."""
        return ZoneCells(self._counters, self._rows)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self._counters.nbytes + self._rows.nbytes

    def of(self, slot: int) -> ZoneCells:
        """The cells in one slot, as those of one zone; written through."""
        return ZoneCells(self._counters[slot : slot + 1], self._rows[slot : slot + 1])

    def take(self) -> int:
        """A slot for a zone."""
        if not self._free:
            slots = len(self._counters)
            self._free = list(range(slots, 2 * slots))
            self._counters = np.concatenate([self._counters, np.zeros_like(self._counters)])
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        slot = heapq.heappop(self._free)
        self._taken.add(slot)
        self.clear(slot)
        return slot

    def clear(self, slot: int) -> None:
        """All zeros."""
        self._counters[slot] = 0
        self._rows[slot] = 0

    def free(self, slot: int) -> None:
        """Whoever took the slot needs it no more."""
        self._taken.remove(slot)
        heapq.heappush(self._free, slot)
        half = len(self._counters) // 2
        if (
            half >= self.capacities.first(SLOTS_MIN)
            and 2 * len(self._taken) <= half
            and max(self._taken, default=0) < half
        ):
            self._counters, self._rows = self._counters[:half].copy(), self._rows[:half].copy()
            self._free = [one for one in range(half) if one not in self._taken]

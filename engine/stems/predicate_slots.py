"""The slots that standing predicates live in: reused when one goes, lowest first."""

from __future__ import annotations

import heapq
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from engine.model.batch import Int32Array, Int64Array
from engine.model.capacities import USUAL, Capacities

SLOTS_MIN = 64
"""Slots that there is room for at first."""


class PredicateSlots:
    """By slot: ``errors``, int64, rows whose predicate ended as an error; ``generations``, int64, which tell
    owners of one slot apart; ``holders``, int32, how many queries hold it. ``used``: how many ever were.
    """

    def __init__(self, capacities: Capacities = USUAL) -> None:
        slots = capacities.first(SLOTS_MIN)
        self.errors: Int64Array = np.zeros(slots, np.int64)
        self.generations: Int64Array = np.zeros(slots, np.int64)
        self.holders: Int32Array = np.zeros(slots, np.int32)
        self.used = 0
        self._free: list[int] = []

    def __len__(self) -> int:
        """How many are held."""
        return self.used - len(self._free)

    def take(self) -> int:
        """A slot with one holder, whose errors are still those of the former owner."""
        if self._free:
            slot = heapq.heappop(self._free)
            self.generations[slot] += 1  # before its matches change: readers of the former owner look again
        else:
            slot = self.used
            self.used += 1
            if slot == len(self.errors):
                self.errors, self.generations = _doubled(self.errors), _doubled(self.generations)
                self.holders = _doubled(self.holders)
        self.holders[slot] = 1
        return slot

    def free(self, slot: int) -> None:
        """Nobody holds it any more."""
        heapq.heappush(self._free, slot)

    def held(self, first: int, stop: int) -> Int64Array:
        """Those of the slots first .. stop-1 that are held."""
        return first + np.flatnonzero(self.holders[first : min(stop, self.used)]).astype(np.int64)

    def clear_errors(self, slots: Int64Array) -> None:
        """These begin without errors; arrays that views hold stay as they are."""
        self.errors = self.errors.copy()
        self.errors[slots] = 0

    def count_errors(self, counts: Mapping[int, int]) -> None:
        """Add to the errors by slot; arrays that views hold stay as they are."""
        if counts:
            self.errors = self.errors.copy()
            for slot, count in counts.items():
                self.errors[slot] += count

    @property
    def nbytes(self) -> int:
        return self.errors.nbytes + self.generations.nbytes + self.holders.nbytes

    def _check(self) -> None:
        assert sorted([*self.held(0, self.used).tolist(), *self._free]) == list(range(self.used))
        assert (self.holders >= 0).all()


def _doubled(array: npt.NDArray[np.signedinteger]) -> npt.NDArray[np.signedinteger]:
    return np.concatenate([array, np.zeros_like(array)])

"""Which slot holds a given predicate: 64-bit fingerprints in a table of open addressing, 12 bytes an entry,
and 8 for each slot.

Two predicates may have one fingerprint, so what is found is compared by the caller.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from engine.model.capacities import USUAL, Capacities

ROOM_MIN = 64
_NOBODY = -1
_GONE = -2


class SharedPredicates:
    """Fingerprint -> slots. O(1) each."""

    def __init__(self, capacities: Capacities = USUAL) -> None:
        self._room_min = capacities.first(ROOM_MIN)
        self._clear(self._room_min)
        self._used = 0
        self._print_of = np.zeros(self._room_min, np.int64)
        """By slot, of those that were added."""

    def _clear(self, room: int) -> None:
        self._prints = np.zeros(room, np.int64)
        self._slots = np.full(room, _NOBODY, np.int32)
        self._taken = 0

    def __len__(self) -> int:
        return self._used

    def find(self, fingerprint: int) -> Iterator[int]:
        """Slots with this fingerprint."""
        for place in self._places(fingerprint):
            if self._slots[place] >= 0 and self._prints[place] == fingerprint:
                yield int(self._slots[place])

    def _places(self, fingerprint: int) -> Iterator[int]:
        """Taken places from its home on."""
        mask = len(self._slots) - 1
        place = (fingerprint ^ fingerprint >> 29) & mask
        while self._slots[place] != _NOBODY:
            yield place
            place = place + 1 & mask

    def add(self, fingerprint: int, slot: int) -> None:
        """fingerprint: within 64 bits, signed."""
        if 3 * (self._taken + 1) > 2 * len(self._slots):
            held = np.flatnonzero(self._slots >= 0)
            prints, slots = self._prints[held].tolist(), self._slots[held].tolist()
            self._clear(max(self._room_min, 1 << (3 * len(held) + 3).bit_length()))
            for one, its in zip(prints, slots, strict=True):
                self._put(one, its)
        self._put(fingerprint, slot)
        self._used += 1
        if slot >= len(self._print_of):
            more = max(slot + 1, 2 * len(self._print_of)) - len(self._print_of)
            self._print_of = np.concatenate([self._print_of, np.zeros(more, np.int64)])
        self._print_of[slot] = fingerprint

    def _put(self, fingerprint: int, slot: int) -> None:
        mask = len(self._slots) - 1
        place = (fingerprint ^ fingerprint >> 29) & mask
        while self._slots[place] != _NOBODY:
            place = place + 1 & mask
        self._prints[place] = fingerprint
        self._slots[place] = slot
        self._taken += 1

    def drop(self, slot: int) -> None:
        """Remove a slot that was added. Raises KeyError."""
        for place in self._places(int(self._print_of[slot])):
            if self._slots[place] == slot:
                self._slots[place] = _GONE
                self._used -= 1
                return
        raise KeyError(slot)

    def nbytes(self) -> int:
        return self._prints.nbytes + self._slots.nbytes + self._print_of.nbytes

    def slots(self) -> list[int]:
        """All slots, ascending."""
        return sorted(int(slot) for slot in self._slots if slot >= 0)

"""Entries whose exits are told, each by its place: found at once, in no order."""

from __future__ import annotations

import numpy as np

from engine.dataflow.buffers.buffer import NOBODY, Buffer, ExitsUnknown, Leaving, longer, room_for
from engine.dataflow.buffers.settings import StateSettings
from engine.kernels import buffers as kernels
from engine.model.batch import Int32Array, Int64Array


class Keyed(Buffer):
    """For strategies in which a negative tuple says each exit. Cost: O(1) to insert or remove one. 4 bytes an
    entry, and 4 for each place below the highest.

    Places are whole numbers that are used again, so they are their own hash.
    """

    def __init__(self, settings: StateSettings | None = None) -> None:
        super().__init__()
        settings = settings or StateSettings()
        room = room_for(settings.capacities.first(settings.initial_hash_buckets), 1)
        self._places: Int32Array = np.empty(room, np.int32)
        self._positions: Int32Array = np.full(room, NOBODY, np.int32)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def insert(self, places: Int32Array, exits: Int64Array) -> None:
        """exits: not kept."""
        n = len(places)
        if not n:
            return
        count = self._count + n
        if count > len(self._places):
            self._places = longer(self._places, room_for(count, len(self._places)))
        above = int(places.max()) + 1
        if above > len(self._positions):
            self._positions = longer(self._positions, room_for(above, len(self._positions)), NOBODY)
        self._places[self._count : count] = places
        self._positions[places] = np.arange(self._count, count, dtype=np.int32)
        self._count = count
        self.work.inserted += n

    def take(self, until: int) -> Leaving:
        raise ExitsUnknown("exits of these entries are told: nobody keeps them")

    def drop(self, until: int) -> int:
        raise ExitsUnknown("exits of these entries are told: nobody keeps them")

    def remove(self, places: Int32Array, exits: Int64Array) -> None:
        found = kernels.swap_out(places, self._count, self._places, self._positions)
        self._count -= found
        self.work.visited += found
        self._left_out(found, len(places))

    def live(self, now: int) -> Int32Array:
        """All: who is past its exit was removed."""
        return self._places[: self._count].copy()

    @property
    def nbytes(self) -> int:
        return self._places.nbytes + self._positions.nbytes

    def _check(self) -> None:
        places = self._places[: self._count]
        assert self._positions[places].tolist() == list(range(self._count))
        assert int((self._positions != NOBODY).sum()) == self._count

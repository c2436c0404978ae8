"""Entries in the order in which they came, all of which are read to find those that leave."""

from __future__ import annotations

import numpy as np

from engine.dataflow.buffers.buffer import NOTHING, Buffer, Leaving, longer, room_for
from engine.kernels import buffers as kernels
from engine.model.batch import Int32Array, Int64Array
from engine.model.capacities import USUAL, Capacities

ROOM_MIN = 256


class ScannedBuffer(Buffer):
    """Cost: O(1) to insert, O(entries) to take, drop or remove any number. 12 bytes an entry."""

    def __init__(self, capacities: Capacities = USUAL) -> None:
        super().__init__()
        self._room_min = capacities.first(ROOM_MIN)
        self._places: Int32Array = np.empty(self._room_min, np.int32)
        self._exits: Int64Array = np.empty(self._room_min, np.int64)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def insert(self, places: Int32Array, exits: Int64Array) -> None:
        count = self._count + len(places)
        self._resize(room_for(count, len(self._places)))
        self._places[self._count : count] = places
        self._exits[self._count : count] = exits
        self._count = count
        self.work.inserted += len(places)

    def take(self, until: int) -> Leaving:
        if not self._count:
            return NOTHING
        places, exits = np.empty(self._count, np.int32), np.empty(self._count, np.int64)
        gone = kernels.split(self._places, self._exits, self._count, until, places, exits)
        self.work.visited += self._count
        self._count -= gone
        self._shrink()
        return self._taken(places[:gone].copy(), exits[:gone].copy())

    def drop(self, until: int) -> int:
        """All that leave: there is no way to find them unread."""
        places = self.take(until).places
        self._put_down(places)
        return len(places)

    def remove(self, places: Int32Array, exits: Int64Array) -> None:
        if not len(places):
            return
        found = kernels.leave_out(self._places, self._exits, self._count, places, exits)
        self.work.visited += self._count
        self._count -= found
        self._shrink()
        self._left_out(found, len(places))

    def live(self, now: int) -> Int32Array:
        live: Int32Array = self._places[: self._count][self._exits[: self._count] > now]
        return live

    def _shrink(self) -> None:
        if len(self._places) > self._room_min and 4 * self._count < len(self._places):
            self._resize(room_for(2 * self._count, self._room_min))

    def _resize(self, room: int) -> None:
        if room != len(self._places):
            kept = self._count
            self._places = longer(self._places[:kept], room)
            self._exits = longer(self._exits[:kept], room)

    @property
    def nbytes(self) -> int:
        return self._places.nbytes + self._exits.nbytes

    def _check(self) -> None:
        assert 0 <= self._count <= len(self._places) == len(self._exits)
        assert len(np.unique(self._places[: self._count])) == self._count

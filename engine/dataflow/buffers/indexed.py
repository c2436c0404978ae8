"""A calendar that knows the position of each place: a premature exit costs O(1)."""

from __future__ import annotations

import numpy as np

from engine.dataflow.buffers.buffer import NOBODY, longer, room_for
from engine.dataflow.buffers.calendar import Calendar
from engine.dataflow.buffers.calendar_arrays import entries_of
from engine.dataflow.buffers.settings import StateSettings
from engine.kernels import calendars as kernels
from engine.kernels.calendars import Front
from engine.model.batch import Int32Array, Int64Array

ROOM_MIN = 256


class Indexed(Calendar):
    """Cost: as a calendar's, but O(1) to remove an entry, O(log entries) from those that came into the
    partition of the clock when that had begun. 4 bytes more for each place below the highest.
    """

    def __init__(
        self,
        span: int,
        partitions: int | None = None,
        settings: StateSettings | None = None,
        *,
        ordered: bool = True,
    ) -> None:
        super().__init__(span, partitions, settings, ordered=ordered)
        self._positions = np.full(self._settings.capacities.first(ROOM_MIN), NOBODY, np.int32)

    def insert(self, places: Int32Array, exits: Int64Array) -> None:
        above = int(places.max()) + 1 if len(places) else 0
        if above > len(self._positions):
            self._positions = longer(self._positions, room_for(above, len(self._positions)), NOBODY)
        super().insert(places, exits)

    def remove(self, places: Int32Array, exits: Int64Array) -> None:
        found = kernels.point_out(places, exits, self._blocks, self._front, self._positions)
        self._removed(found, found, len(places))

    def _check(self) -> None:
        super()._check()
        positions, front = self._positions, self._front
        places, exits = entries_of(self._blocks, self._front)
        for place, exit_at in zip(places.tolist(), exits.tolist(), strict=True):
            assert self._at(int(positions[place]), front) == (place, exit_at)

    def _at(self, position: int, front: Front) -> tuple[int, int]:
        """The entry at a position."""
        if position >= 0:
            return int(self._blocks.places[position]), int(self._blocks.exits[position])
        if position & 1 == 0:
            at = (-2 - position) >> 1
            assert front.at[kernels.START] <= at < front.at[kernels.STOP]
            return int(front.places[at]), int(front.exits[at])
        at = (-3 - position) >> 1
        assert at < front.at[kernels.IN_HEAP]
        return int(front.heap_places[at]), int(front.heap_exits[at])

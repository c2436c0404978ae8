"""The multi-resolution index of one granularity: a pyramid over its zones and buckets.

Zones are numbered: those of granularity 1 as they come, others by the multiple of their length that they
begin at, so numbers depend on rows and NOW alone. The upper cell (level k, zone number >> k, bucket >> k) of
a layout is the sum of the cells below it, 2 x 2 of the level before; level 0 are the zones. A zone whose rows
are joined with others' adds these to the cells above it, one that leaves subtracts its own: sums of integers,
so a cell above nothing is zero again. Upper cells lie in slots of the same memory as zones, so they take as
much again at most.

Source: Ali, Aref, ElTabakh, section 3.4.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from engine.model.batch import Int64Array
from engine.summaries.cells import CellPool
from engine.summaries.summary_type import SummaryType
from engine.summaries.zones import SummaryZone

HEIGHT_MAX = 4
"""Levels above the zones. Upper cells hold more values in as many counters: above 16 zones by 16 buckets
estimates tell little."""
UNASKED_MAX = 64
"""Zones that end without anybody asking for upper cells, until these are let go of."""


class UpperCell:
    """An upper cell's slot, and how many zones are below it."""

    __slots__ = ("slot", "zones")

    def __init__(self, slot: int) -> None:
        self.slot = slot
        self.zones = 0


class Pyramid:
    """The zones of one granularity, oldest first, and the cells above them."""

    def __init__(self, pool: CellPool, technique: SummaryType, height: int) -> None:
        """height: levels above the zones."""
        self._pool = pool
        self._technique = technique
        self.zones: deque[SummaryZone] = deque()
        self._levels: list[dict[tuple[int, int], UpperCell]] = [{} for _ in range(height)]
        # Whether the levels are summed up, and zones that were ended since somebody asked for them.
        self._is_summed = False
        self._unasked = 0

    @property
    def levels(self) -> list[dict[tuple[int, int], UpperCell]]:
        """For each level above the zones, its upper cells by layout and zone number >> level; ascending.

        They are summed up when they are asked for, and kept up until nobody asked for them while UNASKED_MAX
        zones ended.
        """
        self._unasked = 0
        if not self._is_summed:
            self._is_summed = True
            for zone in self.zones:
                if zone.is_indexed:
                    self._put_above(zone)
        return self._levels

    def append(self, zone: SummaryZone, number: int) -> None:
        """A zone comes; it is the latest."""
        zone.number = number
        self.zones.append(zone)

    def index(self, zone: SummaryZone) -> None:
        """A zone of it is ended: its cells are added to those above it."""
        zone.is_indexed = True
        self._unasked += 1
        if self._is_summed and self._unasked > UNASKED_MAX:
            self._is_summed = False
            for level in self._levels:
                for node in level.values():
                    self._pool.free(node.slot)
                level.clear()
        if self._is_summed:
            self._put_above(zone)

    def join(self, into: SummaryZone, slot: int) -> None:
        """Other cells are added to those of an indexed zone. Raises OverflowError, nothing changed."""
        self._technique.add(self._pool.of(into.slot), self._pool.of(slot))
        if self._is_summed:
            self._add_above(into, slot)

    def reduce(self, zone: SummaryZone, rows: Int64Array) -> None:
        """Take rows of each bucket out of the counts, int64[buckets + 1]; what counts their values stays in
        the cells.
        """
        self._pool.of(zone.slot).rows[0] -= rows.astype(np.int32)
        if zone.is_indexed and self._is_summed:
            bucket = np.arange(len(rows) - 1)
            for shift, level in enumerate(self._levels, 1):
                above = self._pool.of(level[zone.layout, zone.number >> shift].slot).rows[0]
                np.subtract.at(above, bucket >> shift, rows[:-1].astype(np.int32))
                above[-1] -= rows[-1]

    def leave(self) -> SummaryZone:
        """The oldest zone goes; its slot is its own still."""
        zone = self.zones.popleft()
        if zone.is_indexed and self._is_summed:
            for shift, level in enumerate(self._levels, 1):
                node = level[zone.layout, zone.number >> shift]
                node.zones -= 1
                if node.zones:
                    self._technique.subtract(self._pool.of(node.slot), self._pool.of(zone.slot), shift)
                else:
                    del level[zone.layout, zone.number >> shift]
                    self._pool.free(node.slot)
        zone.is_indexed = False
        return zone

    def _put_above(self, zone: SummaryZone) -> None:
        """An ended zone comes under the upper cells."""
        for shift, level in enumerate(self._levels, 1):
            place = (zone.layout, zone.number >> shift)
            node = level.get(place)
            if node is None:
                node = level[place] = UpperCell(self._pool.take())
            node.zones += 1
        self._add_above(zone, zone.slot)

    def _add_above(self, zone: SummaryZone, slot: int) -> None:
        for shift, level in enumerate(self._levels, 1):
            node = level[zone.layout, zone.number >> shift]
            self._technique.add(self._pool.of(node.slot), self._pool.of(slot), shift)

    def _check(self) -> None:
        """Upper cells are the sums of what is below them."""
        for shift, level in enumerate(self.levels, 1):
            spare = self._pool.take()
            for place, node in level.items():
                below = [
                    zone
                    for zone in self.zones
                    if zone.is_indexed and (zone.layout, zone.number >> shift) == place
                ]
                assert node.zones == len(below) > 0
                self._pool.clear(spare)
                for zone in below:
                    self._technique.add(self._pool.of(spare), self._pool.of(zone.slot), shift)
                for one, other in zip(self._pool.of(spare), self._pool.of(node.slot), strict=True):
                    assert (one == other).all()
            self._pool.free(spare)

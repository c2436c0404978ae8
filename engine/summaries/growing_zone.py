"""Self-adjusting zones: the zone that rows enter, and when it ends.

A row is entered, then the confidence of the zone is looked at: below theta, the zone ends with that row. The
confidence tells whether values are as unequally frequent as in the zone's beginning, and after each 1,024
rows whether these have the values of the zone before them; theta is the bound of both. A zone ends before a
row that would make it longer than MAXLENGTH, and before one at or after the next multiple of T1, so that
zones of granularity 2 cover those of granularity 1 whole. Where a zone ends is a function of rows alone. In
CHANGES_MAX zones of a T1 changes were found, or fewer of large zones: until the next multiple of T1 only
length ends zones, so that a stream that changes always takes bounded memory.

Source: Ali, Aref, ElTabakh, section 3.3.
"""

from __future__ import annotations

import numpy as np

from engine.kernels.sketches import LIKENESS, REFERENCE, ZoneTally
from engine.kernels.top_values import Top
from engine.model.batch import Int64Array
from engine.model.summary import SummaryDefinition
from engine.summaries.cells import CellPool
from engine.summaries.layouts import Layout
from engine.summaries.summary_type import SummaryType, ValueKeys
from engine.summaries.top_lists import UnlistedRows, copied, empty_top
from engine.summaries.zones import Cut, SummaryZone

CHANGES_MAX = 256
CHANGES_BYTES_MAX = 8 * 2**20
"""Counters of such zones, in a T1; where zones are large there are fewer of them, but CHANGES_MIN."""
CHANGES_MIN = 4


class GrowingZone:
    """The open zone of a summary, if there is one."""

    def __init__(self, definition: SummaryDefinition, technique: SummaryType, pool: CellPool) -> None:
        self.definition = definition
        self._technique = technique
        self._pool = pool
        self.zone: SummaryZone | None = None
        # Rows that the lists of frequent values don't know of yet; None: no lists are kept.
        self.chunk: UnlistedRows | None = None
        self.tally = self._new_tally()
        # The multiple of T1 that the last zone began in, and how many in it ended because of a change.
        self.t1 = 0
        # Zones that began.
        self.begun = 0
        self.changes = 0

    def takes(self, timestamp_ms: int) -> bool:
        """Whether a row of this instant may enter the open zone."""
        return self.zone is not None and timestamp_ms < self._limit_ms(self.zone)

    def begin(self, timestamp_ms: int, ordinal: int, layout: int) -> SummaryZone:
        """A zone begins with the row of this ordinal."""
        for array in self.tally:
            array[:] = 0
        self.tally.progress[[REFERENCE, LIKENESS]] = -1.0, 1.0
        top = None
        if self.chunk is not None:
            self.chunk.count = 0
            top = empty_top(self.definition.settings.buckets, self._technique.depth)
        slot = self._pool.take()
        self.zone = SummaryZone(1, timestamp_ms, timestamp_ms, ordinal, ordinal, slot, layout, top)
        self.begun += 1
        t1 = timestamp_ms // self.definition.granularity_ms
        if t1 != self.t1:
            self.t1, self.changes = t1, 0
        return self.zone

    def enter(
        self, keys: ValueKeys, layout: Layout, timestamp: Int64Array, first: int, at: int
    ) -> tuple[int, bool]:
        """Enter rows ``at`` and on of a batch whose first row has this ordinal.

        Returns the row after those that entered, and whether the confidence fell below theta with the last.
        """
        zone, settings = self.zone, self.definition.settings
        assert zone is not None
        stop = int(timestamp.searchsorted(self._limit_ms(zone)))
        theta = settings.theta if self.changes < self.changes_max else 0.0
        cells, fell = self._pool.of(zone.slot), False
        while at < stop and not fell:
            if self.chunk is None or zone.top is None:
                rows = slice(at, stop)
                ended = self._technique.summarize_keys(
                    cells, self.tally, keys, layout, rows, theta, self.rows_min
                )
                fell, at = ended >= 0, ended if ended >= 0 else stop
                continue
            some = keys.part(slice(at, min(stop, at + self.chunk.room)))
            places = self._technique.places(some, some.bucket, layout)
            rows = slice(0, len(some.hash))
            ended = self._technique.summarize(cells, self.tally, places, rows, theta, self.rows_min)
            fell, count = ended >= 0, ended if ended >= 0 else rows.stop
            self.chunk.take(some.hash, places, slice(0, count), first + at, cells, zone.top)
            at += count
        zone.end, zone.last_ms = first + at, int(timestamp[at - 1])
        return at, fell

    def end(self, cut: Cut) -> SummaryZone:
        """The open zone ends."""
        zone = self.zone
        assert zone is not None
        if self.chunk is not None and zone.top is not None:
            self.chunk.end(self._pool.of(zone.slot), zone.top)
        zone.cut, zone.confidence = cut, self.confidence
        self.changes += cut == "change"
        self.zone = None
        return zone

    def shown(self) -> Top:
        """The lists of the open zone, by all its rows; it goes on as if this had not been asked for."""
        zone = self.zone
        assert zone is not None
        assert zone.top is not None
        assert self.chunk is not None
        top = copied(zone.top)
        self.chunk.show(self._pool.of(zone.slot), top)
        return top

    def reason(self, timestamp_ms: int) -> Cut:
        """Why the open zone does not take a row of this instant."""
        assert self.zone is not None
        t1 = self.definition.granularity_ms
        return "granularity" if timestamp_ms // t1 != self.zone.begin_ms // t1 else "length"

    @property
    def changes_max(self) -> int:
        """Zones that may end because of a change in a T1."""
        nbytes = self.definition.settings.buckets * self._technique.size * 4
        return max(CHANGES_MIN, min(CHANGES_MAX, CHANGES_BYTES_MAX // nbytes))

    @property
    def confidence(self) -> float:
        """The confidence of the open zone."""
        return self._technique.confidence(self.tally, self.rows_min)

    @property
    def rows_min(self) -> int:
        """Rows before the confidence is looked at; of one row it cannot be told."""
        return max(2, self.definition.settings.zone_rows_min)

    def _limit_ms(self, zone: SummaryZone) -> int:
        """The first instant that the zone may not have rows of."""
        t1 = self.definition.granularity_ms
        multiple: int = (zone.begin_ms // t1 + 1) * t1
        return min(zone.begin_ms + self.definition.zone_length_max_ms, multiple)

    def _new_tally(self) -> ZoneTally:
        depth, buckets = self._technique.depth, self.definition.settings.buckets
        return ZoneTally(
            np.zeros(depth, np.int64),
            np.array([0.0, -1.0, 0.0, 0.0, 1.0]),
            np.zeros((buckets, self._technique.size), np.int32),
            np.zeros(depth, np.int64),
        )

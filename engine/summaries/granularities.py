"""Granularities: which one a zone belongs to at an instant, and which zone covers it there.

Zones of granularity 1 are cut by the stream. A zone of granularity i >= 2 is a multiple of its length,
|Gi| / n = |Gi-1|, and covers zones of granularity i - 1 whole, since those of granularity 1 end at each
multiple of T1. A zone leaves granularity i when NOW reaches its begin + |G1| + ... + |Gi|; so granularity i,
i >= 2, is a ring of n zones. From the last one a zone is dropped once its last row is beyond the reach: a
window as long as the reach loses no row, and that ring has one zone more.

Source: Ali, Aref, ElTabakh, section 3.5.
"""

from __future__ import annotations

from itertools import accumulate

from engine.model.summary import SummaryDefinition
from engine.summaries.pyramid import HEIGHT_MAX
from engine.summaries.zones import SummaryZone


class Granularities:
    """The lengths of the granularities of one summary, and what follows from them."""

    def __init__(self, definition: SummaryDefinition) -> None:
        lengths = definition.lengths_ms
        self.depth = definition.depth
        self._rate = definition.rate
        self.reach_ms = definition.reach_ms
        self._zone_ms = (1, *lengths[:-1])
        self._behind_ms = tuple(accumulate(lengths))

    def height(self, granularity: int) -> int:
        """Levels of the pyramid above its zones."""
        if granularity == 1:
            return HEIGHT_MAX
        return min(HEIGHT_MAX, (self._rate - 1).bit_length())

    def begin_of(self, granularity: int, timestamp: int) -> int:
        """The begin of the zone of granularity 2..m that covers an instant, ms."""
        zone_ms = self._zone_ms[granularity - 1]
        return timestamp // zone_ms * zone_ms

    def number_of(self, granularity: int, timestamp: int) -> int:
        """Which multiple of its length the zone of granularity 2..m begins at that covers an instant."""
        return timestamp // self._zone_ms[granularity - 1]

    def leaves_ms(self, zone: SummaryZone) -> int:
        """The first NOW at which the zone is no more where it is, ms."""
        if zone.granularity == self.depth:
            return zone.last_ms + self.reach_ms + 1
        return self._nominal(zone.granularity, zone.begin_ms) + self._behind_ms[zone.granularity - 1]

    def _nominal(self, granularity: int, begin_ms: int) -> int:
        return begin_ms if granularity == 1 else self.begin_of(granularity, begin_ms)

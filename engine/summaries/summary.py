"""A summary of one attribute of a stream: zones of the recent past, their cells, and estimates from them.

Rows enter in the order in which they become visible, (timestamp, partition, offset). The zones and their
counters are a function of the rows, of NOW and of what retention let go: the same whatever batches and steps
brought them. No row is copied: cells hold counters, and the rows of a bucket are ordinals.

Source: Ali, Aref, ElTabakh, *Scalability via Summaries*, section 3.
"""

from __future__ import annotations

from collections import deque
from itertools import chain

import numpy as np

from engine.kernels import sketches
from engine.model.batch import Column, Int32Array, Int64Array
from engine.model.summary import SummaryDefinition
from engine.model.types import Type
from engine.summaries.cells import CellPool
from engine.summaries.count_sketch import CountSketch
from engine.summaries.granularities import GONE, Granularities
from engine.summaries.row_buckets import RowBuckets, RowLists
from engine.summaries.summary_type import Places, SummaryType, Tally, ValueKeys
from engine.summaries.value_keys import ValueHashes, without_value
from engine.summaries.zones import CUTS, Candidates, Cut, Zone, Zones

ESTIMATE_MIN = 0.5
"""A cell whose estimate is below is not looked into first."""


class Summary:
    """One summary. One writer; what it returns is not changed later."""

    def __init__(self, definition: SummaryDefinition, type_: Type) -> None:
        """type_: of the attribute."""
        self.definition = definition
        self.type = type_
        settings = definition.settings
        self._technique: SummaryType = CountSketch(settings.sketch_depth, settings.sketch_width)
        self._granularities = Granularities(definition)
        self._hashes = ValueHashes()
        self._pool = CellPool(settings.buckets, self._technique.size)
        self._rows = RowBuckets(settings.buckets + 1)
        # By granularity, the first one in front; each oldest first.
        self._held: list[deque[Zone]] = [deque() for _ in range(definition.depth)]
        self._open: Zone | None = None
        self._tally = self._new_tally()
        self._leaves_ms: int | None = None
        self._now_ms: int | None = None
        self._zones: Zones | None = None
        # Zones that ended, by reason.
        self.ended: dict[Cut, int] = dict.fromkeys(CUTS[1:], 0)

    # -- what comes and goes

    def enter(self, values: Column, timestamp: Int64Array, first: int) -> None:
        """Take in the rows first, first + 1, ... with these values and ascending timestamps, ms.

        O(rows t). Raises ValueError: other rows are next.
        """
        if not len(values):
            return
        if self._rows.first == self._rows.next:
            self._rows.begin(first)
        if first != self._rows.next:
            raise ValueError(f"row {self._rows.next} is next, not {first}")
        self._zones = None
        places = self._places(self.keys(values))
        self._rows.append(places.bucket)
        self._leaves_ms = None
        at = 0
        while at < len(values):
            at = self._enter_zone(places, timestamp, first, at)

    def advance(self, now_ms: int) -> None:
        """NOW is this instant: zones move to the granularities they belong to, or are gone. O(what moves)."""
        self._now_ms = now_ms
        if self._leaves_ms is None:
            leave = (self._granularities.leaves_ms(zones[0]) for zones in self._held if zones)
            self._leaves_ms = min(leave, default=2**63 - 1)
        if now_ms < self._leaves_ms:
            return
        self._zones = self._leaves_ms = None
        for zones in reversed(self._held):
            while zones:
                to = self._granularities.due(zones[0], now_ms)
                if to == zones[0].granularity:
                    break
                self._leave(zones.popleft(), to)
        self._rows.drop_below(self._first())

    def drop_below(self, ordinal: int) -> None:
        """Retention let go the rows before this ordinal. Counters of a zone that has others stay."""
        if ordinal <= self._rows.first:
            return
        self._zones = self._leaves_ms = None
        for zones in reversed(self._held):
            while zones and zones[0].end <= ordinal and zones[0] is not self._open:
                self._free(zones.popleft())
        self._rows.drop_below(ordinal)
        for zone in chain.from_iterable(reversed(self._held)):
            if zone.first >= ordinal:
                break
            zone.first = min(ordinal, zone.end)
            self._pool.of(zone.slot).rows[0] = self._rows.counts(zone.first, zone.end)

    # -- what it tells

    def keys(self, values: Column) -> ValueKeys:
        """Of values of the attribute, or of what is compared with it. O(n)."""
        hashes = self._hashes.hashes(values)
        bucket = np.empty(len(values), np.int32)
        sketches.hash_buckets(hashes, self.definition.settings.buckets, bucket)
        missing = without_value(values)
        if missing is not None:
            bucket[missing] = self.definition.settings.buckets
        return ValueKeys(hashes, bucket, np.empty(0))

    @property
    def zones(self) -> Zones:
        """Those that have retained rows."""
        if self._zones is None:
            self._zones = self._columns()
        return self._zones

    def estimate(self, keys: ValueKeys, zones: Int64Array) -> Int32Array:
        """int32[keys, zones]: the estimated rows of each value in its cell of each zone, 0..rows of the cell.

        zones: places in ``zones``. O(keys zones t).
        """
        return self._technique.estimate(self._pool.cells, self._places(keys), self.zones.slot[zones])

    def candidates(self, keys: ValueKeys, from_ms: int) -> Candidates:
        """Where each value may be found in zones that meet [from_ms, NOW]."""
        there = np.flatnonzero(self.zones.end_ms > from_ms)
        rows = self._pool.cells.rows[self.zones.slot[there]].copy()
        rows[:, -1] = 0
        key, zone = np.nonzero(rows[:, keys.bucket].T)
        estimate = self.estimate(keys, there)[key, zone]
        return Candidates(
            key.astype(np.int32), there[zone].astype(np.int32), keys.bucket[key], estimate, estimate == 0
        )

    def rows_of(self, bucket: int, first: int, end: int) -> Int64Array:
        """Ordinals of the bucket's rows in first <= ordinal < end, ascending."""
        one = (np.array([number], np.int64) for number in (first, end))
        return self._rows.lists(np.array([bucket], np.int32), *one).rows

    def rows_of_many(self, bucket: Int32Array, first: Int64Array, end: Int64Array) -> RowLists:
        """As :meth:`rows_of`, for n buckets and ranges at once."""
        return self._rows.lists(bucket, first, end)

    def buckets_of(self, first: int, end: int) -> Int32Array:
        """int32[end - first]: the bucket of each row; of rows that it doesn't hold the last."""
        return self._rows.buckets_of(first, end)

    def cell_rows(self, zones: Int64Array) -> Int32Array:
        """int32[zones, buckets + 1]: retained rows of each cell; the last, those without a value."""
        return self._pool.cells.rows[self.zones.slot[zones]]

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return self._pool.nbytes + self._rows.nbytes

    # -- how it works

    def _places(self, keys: ValueKeys) -> Places:
        return Places(self._technique.places(keys), keys.bucket, np.ones(len(keys.bucket), np.int32))

    def _new_tally(self) -> Tally:
        return Tally(np.zeros(self._technique.depth, np.int64), np.array([0.0, -1.0]))

    def _enter_zone(self, places: Places, timestamp: Int64Array, first: int, at: int) -> int:
        """Enter rows ``at`` and on of a batch into one zone; returns the first that it does not take."""
        t1, settings = self.definition.granularity_ms, self.definition.settings
        zone = self._open
        if zone is not None:
            stop = int(timestamp.searchsorted(self._limit_ms(zone)))
            if stop <= at:
                begin = int(timestamp[at])
                self._seal("granularity" if begin // t1 != zone.begin_ms // t1 else "length")
                zone = None
        if zone is None:
            begin = int(timestamp[at])
            zone = self._open = Zone(1, begin, begin, first + at, first + at, self._pool.take(), 0)
            self._held[0].append(zone)
            stop = int(timestamp.searchsorted(self._limit_ms(zone)))
        cells = self._pool.of(zone.slot)
        rows_min = max(2, settings.zone_rows_min)
        ended = self._technique.summarize(
            cells, self._tally, places, slice(at, stop), settings.theta, rows_min
        )
        upto = stop if ended < 0 else ended
        zone.end, zone.last_ms = first + upto, int(timestamp[upto - 1])
        if ended >= 0:
            self._seal("change")
        return upto

    def _limit_ms(self, zone: Zone) -> int:
        """The first instant that the zone may not have rows of."""
        t1 = self.definition.granularity_ms
        multiple: int = (zone.begin_ms // t1 + 1) * t1
        return min(zone.begin_ms + self.definition.zone_length_max_ms, multiple)

    def _seal(self, cut: Cut) -> None:
        assert self._open is not None
        self._open.cut = cut
        rows_min = max(2, self.definition.settings.zone_rows_min)
        self._open.confidence = self._technique.confidence(self._tally, rows_min)
        self.ended[cut] += 1
        self._open, self._tally = None, self._new_tally()

    def _leave(self, zone: Zone, to: int) -> None:
        """A zone, which is in no granularity now, comes to another one, or is gone."""
        if zone is self._open:
            self._seal("granularity")
        if to == GONE:
            self._free(zone)
            return
        covers, begin = self._held[to - 1], self._granularities.begin_of(to, zone.begin_ms)
        into = covers[-1] if covers else None
        if into is None or self._granularities.begin_of(to, into.begin_ms) != begin:
            zone.granularity, zone.cut = to, "granularity"
            covers.append(zone)
            return
        self._technique.add(self._pool.of(into.slot), self._pool.of(zone.slot))
        into.end, into.last_ms = zone.end, zone.last_ms
        into.confidence = min(into.confidence, zone.confidence)
        self._free(zone)

    def _free(self, zone: Zone) -> None:
        self._pool.free(zone.slot)

    def _first(self) -> int:
        """The ordinal of the first row of a zone, or of the next row."""
        return next((zones[0].first for zones in reversed(self._held) if zones), self._rows.next)

    def _columns(self) -> Zones:
        held = [zone for zone in chain.from_iterable(reversed(self._held)) if zone.first < zone.end]
        slot = np.array([zone.slot for zone in held], np.int64)
        return Zones(
            np.array([zone.granularity for zone in held], np.int32),
            np.array([zone.begin_ms for zone in held], np.int64),
            np.array([zone.last_ms + 1 for zone in held], np.int64),
            np.array([zone.first for zone in held], np.int64),
            np.array([zone.end for zone in held], np.int64),
            self._pool.cells.rows[slot, :-1].sum(axis=1, dtype=np.int64),
            np.array([zone.confidence for zone in held], np.float64),
            np.array([CUTS.index(zone.cut) for zone in held], np.int32),
            np.zeros(len(held), np.bool_),
            slot,
        )

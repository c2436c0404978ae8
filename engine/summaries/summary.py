"""A summary of one attribute of a stream: zones of the recent past, their cells, and estimates from them.

Rows enter in the order in which they become visible, (timestamp, partition, offset). The zones and their
counters are a function of the rows, of NOW and of what retention let go: the same whatever batches and steps
brought them. No row is copied: cells hold counters, and the rows of a bucket are ordinals.

Source: Ali, Aref, ElTabakh, *Scalability via Summaries*, section 3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain
from typing import Self

import numpy as np

from engine.kernels import sketches
from engine.kernels.descents import CandidateRoom
from engine.kernels.top_values import Top
from engine.model.batch import BoolArray, Column, Int32Array, Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.model.summary import SummaryDefinition
from engine.model.types import Type
from engine.summaries import top_lists
from engine.summaries.bucketing import Bucketing
from engine.summaries.cells import CellPool
from engine.summaries.counters import CountSketch, Histogram
from engine.summaries.forests import Trees, forest_of
from engine.summaries.granularities import Granularities
from engine.summaries.growing_zone import GrowingZone
from engine.summaries.pyramid import Pyramid
from engine.summaries.row_buckets import OrdinalLists, RowBuckets
from engine.summaries.state import (
    SummaryState,
    growing_state,
    learning_state,
    restore_growing,
    restore_zones,
    restored_learning,
    zones_state,
)
from engine.summaries.summary_type import Float64Array, SummaryType, ValueKeys
from engine.summaries.top_lists import CHUNK, TopValues, UnlistedRows
from engine.summaries.zones import CUTS, CandidateCells, Cut, SummaryZone, Zones

NEVER = 2**63 - 1
DROPPED_ROWS_MAX = 32_768
"""Rows that retention let go of, and that are held on meanwhile."""


@dataclass(slots=True)
class _Known:
    """What was worked out of the zones as they stand; None: nothing. leaves_ms: the first NOW at which one
    leaves its granularity.
    """

    leaves_ms: int | None = None
    zones: Zones | None = None
    trees: Trees | None = None


class Summary:
    """One summary. One writer; what it returns is not changed later."""

    def __init__(self, definition: SummaryDefinition, type_: Type, capacities: Capacities = USUAL) -> None:
        """type_: of the attribute. capacities: of this, and of what is kept beside it."""
        self.definition = definition
        self.type = type_
        settings = definition.settings
        self._technique: SummaryType = (
            CountSketch(settings.sketch_depth, settings.sketch_width)
            if settings.kind == "count_sketch"
            else Histogram(settings.sketch_width)
        )
        self._granularities = Granularities(definition)
        self.bucketing = Bucketing(definition, self._technique)
        self._pool = CellPool(settings.buckets, self._technique.size, capacities)
        self._rows = RowBuckets(settings.buckets + 1)
        # By granularity, the first one in front.
        self._pyramids = [
            Pyramid(self._pool, self._technique, self._granularities.height(granularity))
            for granularity in range(1, definition.depth + 1)
        ]
        self._growing = GrowingZone(definition, self._technique, self._pool)
        self.now_ms: int | None = None
        self._known = _Known()
        # Zones of granularity 1 that ended, by reason.
        self.ended: dict[Cut, int] = dict.fromkeys(CUTS[1:], 0)

    # -- what comes and goes

    def enter(self, values: Column, timestamp: Int64Array, first: int) -> None:
        """Take in the rows first, first + 1, ... with these values and ascending timestamps, ms.

        O(rows t). Raises ValueError: other rows are next.
        """
        if not len(values):
            return
        if self._rows.floor >= self._rows.next:  # none of the rows is left
            self._settle()
        if self._rows.first == self._rows.next:
            self._rows.begin(first)
        if first != self._rows.next:
            raise ValueError(f"row {self._rows.next} is next, not {first}")
        self._known.zones = self._known.leaves_ms = None
        at = 0
        while at < len(values):
            stop = self.bucketing.end_of_layout(timestamp, at)
            self._enter(values.slice(at, stop), timestamp[at:stop], first + at)
            at = stop

    def advance(self, now_ms: int) -> None:
        """NOW is this instant: zones move to the granularities they belong to, or are gone. O(what moves)."""
        self.now_ms = now_ms
        if self._known.leaves_ms is None:
            leave = (self._granularities.leaves_ms(one.zones[0]) for one in self._pyramids if one.zones)
            self._known.leaves_ms = min(leave, default=NEVER)
        if now_ms < self._known.leaves_ms:
            return
        self._settle()
        self._changed()
        for pyramid in self._pyramids:  # a zone passes through all granularities, whatever NOW skips
            while pyramid.zones and self._granularities.leaves_ms(pyramid.zones[0]) <= now_ms:
                self._move(pyramid)
        oldest = next((one for one in reversed(self._pyramids) if one.zones), None)
        self._rows.drop_below(self._rows.next if oldest is None else oldest.zones[0].first)

    def drop_below(self, ordinal: int) -> None:
        """Retention let go the rows before this ordinal. Counters of a zone that has others stay.

        The rows go when somebody looks, or when they are many: nobody can tell.
        """
        ordinal = min(ordinal, self._rows.next)
        if ordinal > max(self._rows.first, self._rows.floor):
            self._rows.floor, self._known.zones = ordinal, None
            if ordinal - self._rows.first >= DROPPED_ROWS_MAX:
                self._settle()

    def _settle(self) -> None:
        """Let go of the rows below the floor."""
        ordinal = self._rows.floor
        if ordinal <= self._rows.first:
            return
        for pyramid in reversed(self._pyramids):
            while pyramid.zones and pyramid.zones[0].first < ordinal:
                zone = pyramid.zones[0]
                if zone.end > ordinal or zone is self._growing.zone:
                    pyramid.reduce(zone, self._rows.counts(zone.first, ordinal))
                    zone.first = min(ordinal, zone.end)
                    break
                self._changed()
                self._pool.free(pyramid.leave().slot)
        self._rows.drop_below(ordinal)

    # -- what it tells

    @property
    def capacities(self) -> Capacities:
        """What it began with, and what is kept beside it."""
        return self._pool.capacities

    @property
    def zones(self) -> Zones:
        """The zones that have retained rows."""
        if self._known.zones is None:
            self._settle()
            self._known.zones = self._columns()
        return self._known.zones

    def estimate(self, keys: ValueKeys, zones: Int64Array) -> Int32Array:
        """int32[keys, zones]: the estimated rows of each value in its cell of each zone, 0..rows of the cell.

        zones: places in ``zones``. O(keys zones t).
        """
        slots, ordered = self.zones.slot[zones], self.zones.layout[zones]
        if len(self.bucketing.layouts) == 1 or ordered.all():
            return self._technique.estimate(self._pool.cells, self.bucketing.places(keys, -1), slots)
        found = np.zeros((len(keys.hash), len(zones)), np.int32)
        for layout in range(len(self.bucketing.layouts)):
            of_it = np.flatnonzero(ordered == layout)
            places = self.bucketing.places(keys, layout)
            found[:, of_it] = self._technique.estimate(self._pool.cells, places, slots[of_it])
        return found

    def candidates(self, keys: ValueKeys, from_ms: int) -> CandidateCells:
        """Where each value may be found in zones that meet [from_ms, NOW]. O(candidates t)."""
        zones = self.zones
        wanted = zones.end_ms > from_ms
        parts = [self._candidates(keys, layout, wanted) for layout in range(len(self.bucketing.layouts))]
        parts = [part for part in parts if len(part.key)] or parts[-1:]
        if len(parts) == 1:
            return parts[0]
        by_key = np.argsort(np.concatenate([part.key for part in parts]), kind="stable")
        key, zone, bucket, estimate, pruned = (
            np.concatenate(columns)[by_key] for columns in zip(*parts, strict=True)
        )
        return CandidateCells(key, zone, bucket, estimate, pruned.astype(np.bool_))

    def rows_of(self, bucket: int, first: int, end: int) -> Int64Array:
        """Ordinals of the bucket's rows in first <= ordinal < end, ascending."""
        self._settle()
        ends = np.array([[first], [end]], np.int64)
        return self._rows.lists(np.array([bucket], np.int32), ends[0], ends[1]).rows

    def rows_of_many(self, bucket: Int32Array, first: Int64Array, end: Int64Array) -> OrdinalLists:
        """As :meth:`rows_of`, for n buckets and ranges at once."""
        self._settle()
        return self._rows.lists(bucket, first, end)

    def buckets_of(self, first: int, end: int) -> Int32Array:
        """int32[end - first]: the bucket of each row; of rows that it doesn't hold the last."""
        self._settle()
        return self._rows.buckets_of(first, end)

    def cell_rows(self, zones: Int64Array) -> Int32Array:
        """int32[zones, buckets + 1]: retained rows of each cell; the last, those without a value."""
        return self._pool.cells.rows[self.zones.slot[zones]]

    def top(self, zone: int, bucket: int) -> TopValues:
        """The values of a cell with the largest estimates, up to 32. zone: place in ``zones``."""
        return top_lists.listed(self._top(zone), bucket)

    def tops(self, zone: int) -> list[TopValues]:
        """As :meth:`top`, of all cells of a zone, by bucket."""
        top = self._top(zone)
        return [top_lists.listed(top, bucket) for bucket in range(self.definition.settings.buckets)]

    @property
    def lists_values(self) -> bool:
        """Whether it keeps lists of the most frequent values, which :meth:`top` tells."""
        return self._growing.chunk is not None

    def list_values(self, values_of: Callable[[int, int], Column] | None, first: int) -> None:
        """Keep lists from now on. Those of the zones that are there are made of their rows from the ordinal
        ``first`` on, by the counters as they are now.

        values_of: the attribute of the rows of a range of ordinals, all taken in. None: keep
        no lists. O(rows t).
        """
        self._settle()
        growing = self._growing
        growing.chunk = None
        for zone in self._held():
            zone.top = None
            if values_of is not None:
                zone.top = top_lists.empty_top(self.definition.settings.buckets, self._technique.depth)
        if values_of is None:
            return
        growing.chunk = UnlistedRows(self._technique.depth)
        for zone in self._held():
            cells, top = self._pool.of(zone.slot), zone.top
            assert top is not None
            growing.chunk.count = 0
            for at in range(max(first, zone.first), zone.end, CHUNK):
                end = min(at + CHUNK, zone.end)
                keys = self.bucketing.keys(values_of(at, end))
                places = self.bucketing.places(keys, zone.layout)
                growing.chunk.take(keys.hash, places, slice(0, end - at), at, cells, top)
            if zone is not growing.zone:
                growing.chunk.end(cells, top)

    def error_bounds(self) -> Float64Array:
        """float64[zones]: sqrt(F2 / b) of the zone's cell in which it is largest, in rows: the standard
        deviation of one sketch row's estimate is at most that.
        """
        cells = self._pool.cells.counters[self.zones.slot]
        squares = np.zeros(cells.shape[:2], np.int64)
        sketches.squared(cells, self._technique.depth, squares)
        width = self._technique.size // self._technique.depth
        bounds: Float64Array = np.sqrt(squares.max(axis=1, initial=0) / width)
        return bounds

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        tops = sum(array.nbytes for zone in self._held() if zone.top is not None for array in zone.top)
        chunk = 0 if self._growing.chunk is None else self._growing.chunk.nbytes
        return self._pool.nbytes + self._rows.nbytes + tops + chunk

    def alter(self, *, theta: float | None = None, zone_rows_min: int | None = None) -> None:
        """For the rows that follow. Raises ValueError: not a theta in [0, 1], or no row."""
        settings = self.definition.settings
        theta = settings.theta if theta is None else theta
        rows_min = settings.zone_rows_min if zone_rows_min is None else zone_rows_min
        if not 0 <= theta <= 1 or rows_min < 1:
            raise ValueError(f"theta {theta}, zone_rows_min {rows_min}")
        settings = replace(settings, theta=theta, zone_rows_min=rows_min)
        self.definition = self._growing.definition = replace(self.definition, settings=settings)

    # -- what is saved

    def state(self) -> SummaryState:
        """All that the next calls depend on; copies."""
        self._settle()
        rows = self._rows
        layouts, learning = self.bucketing.layouts, self.bucketing.learning
        return SummaryState(
            self.now_ms,
            rows.first,
            rows.buckets_of(rows.first, rows.next).astype(np.uint16),
            zones_state(self._pyramids, self._pool, listing=self.lists_values),
            growing_state(self._growing),
            None if learning is None else learning_state(learning),
            layouts[1] if len(layouts) > 1 else None,
            np.array([self.ended[cut] for cut in CUTS[1:]], np.int64),
        )

    @classmethod
    def restored(
        cls,
        definition: SummaryDefinition,
        type_: Type,
        state: SummaryState,
        capacities: Capacities = USUAL,
    ) -> Self:
        """The summary that had this state."""
        summary = cls(definition, type_, capacities)
        summary.now_ms = state.now_ms
        summary._rows.begin(state.first)
        summary._rows.append(state.buckets)
        zone = restore_zones(state.zones, summary._pyramids, summary._pool)
        restore_growing(state.growing, zone, summary._growing)
        bucketing = summary.bucketing
        if bucketing.learning is not None:
            bucketing.learning = (
                None
                if state.learning is None
                else restored_learning(state.learning, definition.granularity_ms)
            )
        if state.layout is not None:
            bucketing.layouts += (state.layout,)
        summary.ended = dict(zip(CUTS[1:], state.ended.tolist(), strict=True))
        return summary

    # -- how it works

    def _held(self) -> list[SummaryZone]:
        """All zones, oldest first."""
        return list(chain.from_iterable(one.zones for one in reversed(self._pyramids)))

    def _top(self, zone: int) -> Top:
        """The lists of a zone, all its rows in them."""
        held = next(one for one in self._held() if one.slot == self.zones.slot[zone])
        if held.top is None:
            raise ValueError("no lists are kept")
        return self._growing.shown() if held is self._growing.zone else held.top

    def _changed(self) -> None:
        self._known = _Known()

    def _enter(self, values: Column, timestamp: Int64Array, first: int) -> None:
        """Rows of one layout."""
        keys = self.bucketing.keys(values)
        self.bucketing.learn(keys)
        self._rows.append(keys.bucket)
        at = 0
        while at < len(values):
            growing, begin_ms = self._growing, int(timestamp[at])
            if growing.zone is not None and not growing.takes(begin_ms):
                self._end(growing.reason(begin_ms))
            if growing.zone is None:
                self._known.trees = None
                zone = growing.begin(begin_ms, first + at, len(self.bucketing.layouts) - 1)
                self._pyramids[0].append(zone, growing.begun)
            at, fell = growing.enter(keys, self.bucketing.layouts[-1], timestamp, first, at)
            if fell:
                self._end("change")

    def _end(self, cut: Cut) -> None:
        """The open zone ends."""
        self._pyramids[0].index(self._growing.end(cut))
        self.ended[cut] += 1
        self._known.trees = None

    def _move(self, pyramid: Pyramid) -> None:
        """The oldest zone of a granularity comes to the next one; from the last one it is gone."""
        if pyramid.zones[0] is self._growing.zone:
            self._end("granularity")
        zone = pyramid.leave()
        to = zone.granularity + 1
        if to > self.definition.depth:
            self._pool.free(zone.slot)
            return
        covering, number = self._pyramids[to - 1], self._granularities.number_of(to, zone.begin_ms)
        into = covering.zones[-1] if covering.zones else None
        if into is None or (into.layout, into.number) != (zone.layout, number):
            zone.granularity = to
            covering.append(zone, number)
            covering.index(zone)
            return
        covering.join(into, zone.slot)
        if into.top is not None and zone.top is not None:
            top_lists.join(self._pool.of(into.slot), into.top, zone.top)
        into.end, into.last_ms = zone.end, zone.last_ms
        into.confidence = min(into.confidence, zone.confidence)
        self._pool.free(zone.slot)

    def _candidates(self, keys: ValueKeys, layout: int, wanted: BoolArray) -> CandidateCells:
        """The candidates in zones of one layout. wanted: bool[zones]."""
        if self._known.trees is None:
            self._known.trees = Trees.of(self._pyramids)
        forest, slots = forest_of(self._known.trees, layout, self.zones, wanted)
        places = self.bucketing.places(keys, layout)
        filled = np.zeros(self.definition.settings.buckets + 1, np.int64)
        filled[:-1] = (self._pool.cells.rows[slots, :-1] > 0).sum(axis=0)
        room = int(filled[places.bucket].sum())
        out = CandidateRoom(*(np.empty(room, np.int32) for _ in CandidateRoom._fields))
        count = self._technique.search(self._pool.cells, places, forest, out) if room else 0
        key, zone, bucket, estimate = (column[:count] for column in out)
        return CandidateCells(key, zone, bucket, estimate, estimate == 0)

    def _columns(self) -> Zones:
        held = [zone for zone in self._held() if zone.first < zone.end]
        slot = np.array([zone.slot for zone in held], np.int64)
        confidence = np.array([zone.confidence for zone in held], np.float64)
        if held and held[-1] is self._growing.zone:
            confidence[-1] = self._growing.confidence
        return Zones(
            np.array([zone.granularity for zone in held], np.int32),
            np.array([zone.begin_ms for zone in held], np.int64),
            np.array([zone.last_ms + 1 for zone in held], np.int64),
            np.array([zone.first for zone in held], np.int64),
            np.array([zone.end for zone in held], np.int64),
            self._pool.cells.rows[slot, :-1].sum(axis=1, dtype=np.int64),
            confidence,
            np.array([CUTS.index(zone.cut) for zone in held], np.int32),
            np.array([zone.layout for zone in held], np.int32),
            slot,
        )

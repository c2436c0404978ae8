"""What is saved of a summary: plain arrays and numbers, from which it goes on to the bit.

The cells of pyramids are not saved: they are sums of the zones'.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.kernels.sketches import ZoneTally
from engine.kernels.top_values import Top
from engine.model.batch import Int32Array, Int64Array
from engine.summaries.cells import CellPool
from engine.summaries.growing_zone import GrowingZone
from engine.summaries.layouts import Layout, Learning
from engine.summaries.pyramid import Pyramid
from engine.summaries.summary_type import Float64Array, HashArray, Places
from engine.summaries.top_lists import UnlistedRows
from engine.summaries.zones import CUTS, SummaryZone

_WHOLE = ("granularity", "begin_ms", "last_ms", "first", "end", "layout", "number")


@dataclass(frozen=True, slots=True)
class ZonesState:
    """Zones, oldest first, as columns."""

    # int64[z, 8]: the fields of _WHOLE and the place of ``cut`` in CUTS.
    numbers: Int64Array
    # float64[z].
    confidence: Float64Array
    # int32[z, buckets, size], the counters of the cells.
    counters: Int32Array
    # int32[z, buckets + 1], the rows of the cells.
    rows: Int32Array
    # The lists of each zone: uint64, int64, int32, int32[z, buckets, 32] and int32[z, buckets, 32, t].
    # None where no lists are kept.
    top: Top | None


@dataclass(frozen=True, slots=True)
class GrowingState:
    """The zone that grows, besides its cells."""

    # See Tally.
    tally: ZoneTally
    # The multiple of T1 it began in, and zones in that which ended because of a change.
    t1: int
    changes: int
    # Zones of granularity 1 that began.
    begun: int
    # Ordinal of the first row that its lists don't know of.
    first: int
    # Hashes and places of those rows, uint64[n] and Places; None: no lists are kept.
    hash: HashArray | None
    places: Places | None


@dataclass(frozen=True, slots=True)
class LearningState:
    """What a layout is being learned from."""

    until_ms: int | None
    seen: int
    stride: int
    # float64[n], uint64[n]: of the rows that are learned from.
    positions: Float64Array
    hashes: HashArray


@dataclass(frozen=True, slots=True)
class SummaryState:
    """All that the next calls depend on besides the definition."""

    now_ms: int | None
    # Rows of the zones: the ordinal of the first, and uint16[n], the bucket of each.
    first: int
    buckets: npt.NDArray[np.uint16]
    zones: ZonesState
    growing: GrowingState
    # What the next layout is learned from; None: there is nothing to learn any more.
    learning: LearningState | None
    # The layout that was learned.
    layout: Layout | None
    # int64[3], zones that ended by reason, as in CUTS.
    ended: Int64Array


def zones_state(pyramids: list[Pyramid], pool: CellPool, *, listing: bool) -> ZonesState:
    """The state of the zones of all granularities, the oldest zone first. listing: whether lists are kept."""
    held = [zone for pyramid in reversed(pyramids) for zone in pyramid.zones]
    slots = np.array([zone.slot for zone in held], np.int64)
    numbers = [[*(getattr(zone, name) for name in _WHOLE), CUTS.index(zone.cut)] for zone in held]
    counters, rows = pool.cells
    return ZonesState(
        np.array(numbers, np.int64).reshape(-1, len(_WHOLE) + 1),
        np.array([zone.confidence for zone in held], np.float64),
        counters[slots],
        rows[slots],
        _together([zone.top for zone in held if zone.top is not None]) if listing else None,
    )


def _together(tops: list[Top]) -> Top:
    """Lists of z zones, one array of each kind."""
    return Top(
        np.array([top.hash for top in tops], np.uint64),
        np.array([top.row for top in tops], np.int64),
        np.array([top.estimate for top in tops], np.int32),
        np.array([top.share for top in tops], np.int32),
        np.array([top.places for top in tops], np.int32),
    )


def restore_zones(state: ZonesState, pyramids: list[Pyramid], pool: CellPool) -> SummaryZone | None:
    """Put zones back into pyramids that have none; returns the open one."""
    for at, row in enumerate(state.numbers.tolist()):
        granularity, begin_ms, last_ms, first, end, layout, number, cut = row
        slot = pool.take()
        cells = pool.of(slot)
        cells.counters[0], cells.rows[0] = state.counters[at], state.rows[at]
        top = None if state.top is None else Top(*(array[at].copy() for array in state.top))
        zone = SummaryZone(granularity, begin_ms, last_ms, first, end, slot, layout, top)
        zone.cut, zone.confidence = CUTS[cut], float(state.confidence[at])
        pyramid = pyramids[granularity - 1]
        pyramid.append(zone, number)
        if zone.cut == "open":
            return zone
        pyramid.index(zone)
    return None


def copied_tally(tally: ZoneTally) -> ZoneTally:
    """Another one of the same numbers."""
    return ZoneTally(
        tally.squares.copy(), tally.progress.copy(), tally.before.copy(), tally.before_squares.copy()
    )


def growing_state(growing: GrowingZone) -> GrowingState:
    """Copies of what it holds."""
    chunk, tally = growing.chunk, growing.tally
    numbers = (copied_tally(tally), growing.t1, growing.changes, growing.begun)
    if chunk is None:
        return GrowingState(*numbers, 0, None, None)
    of_rows = slice(0, chunk.count)
    places = Places(
        chunk.places.counters[of_rows].copy(),
        chunk.places.bucket[of_rows].copy(),
        chunk.places.share[of_rows].copy(),
    )
    return GrowingState(*numbers, chunk.first, chunk.hash[of_rows].copy(), places)


def restore_growing(state: GrowingState, zone: SummaryZone | None, growing: GrowingZone) -> None:
    """zone: the open one."""
    growing.zone, growing.begun = zone, state.begun
    growing.t1, growing.changes = state.t1, state.changes
    growing.tally = copied_tally(state.tally)
    growing.chunk = None
    if state.hash is not None and state.places is not None:
        growing.chunk = UnlistedRows(len(state.tally.squares))
        growing.chunk.hold(state.hash, state.places, state.first)


def learning_state(learning: Learning) -> LearningState:
    """The state of what a layout has seen."""
    return LearningState(
        learning.until_ms, learning.seen, learning.stride, learning.positions, learning.hashes
    )


def restored_learning(state: LearningState, granularity_ms: int) -> Learning:
    """The inverse of :func:`learning_state`."""
    learning = Learning(granularity_ms)
    learning.until_ms, learning.seen, learning.stride = state.until_ms, state.seen, state.stride
    learning.positions, learning.hashes = state.positions, state.hashes
    return learning

"""Rows that are there, looked through for queries that just came: by indexes of their own, or one by one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from engine.domains.batch_keys import BatchKeys
from engine.domains.domain import Domain
from engine.kernels import bitmaps, intervals
from engine.model.batch import BATCH_ROWS_MAX, Batch, BoolArray, Column, Int64Array
from engine.model.types import Kind
from engine.stems.cuts import CutsPool
from engine.stems.grouped_filter import BLOCK_SLOTS, BLOCK_WORDS, SlotBlock, compile_block
from engine.stems.new_places import NewPlaces
from engine.stems.region_store import NULL_TOO, Intervals, RegionStore
from engine.stems.selective_index import SelectiveIndex
from engine.store.matches.row_slots import NO_PAIRS, RowSlots
from engine.store.matches.segment_bits import Matrix


class IndexProbe:
    """Many share indexes that are made for them."""

    def __init__(self, store: RegionStore, domains: Mapping[int, Domain], places: NewPlaces) -> None:
        self._domains = domains
        self._scratch = np.empty(bitmaps.BLOCK_ROWS, np.uint64)
        self._blocks: list[SlotBlock] = []
        pool, words = CutsPool(), len(places.words)
        slot_at = np.full(64 * words, -1, np.int64)
        slot_at[places.local] = places.dense
        for first in range(0, words, BLOCK_WORDS):
            block = slot_at[64 * first : 64 * first + BLOCK_SLOTS]
            number = first // BLOCK_WORDS
            self._blocks.append(compile_block(store, block, number, len(block) >> 6, pool))
        self._index = SelectiveIndex(max(domains, default=-1) + 1, store)
        if len(places.selective):
            self._index.add(places.selective.astype(np.int64))

    def match(self, rows: Batch, first: int, bits: bitmaps.Words, possible: BoolArray) -> RowSlots:
        """The pairs of rows first .. n, and the bits: uint64[words, n], all written; none of rows
        before. possible: not asked here.
        """
        bits[:, :first] = 0
        found: list[RowSlots] = []
        out = Matrix(bits)
        for begin in range(first, len(rows), BATCH_ROWS_MAX):
            batch = BatchKeys(rows.slice(begin, min(len(rows), begin + BATCH_ROWS_MAX)), self._domains)
            for block in self._blocks:
                block.apply(batch, out, begin, self._scratch)
            pairs = self._index.match(batch)
            found.append(RowSlots(pairs.rows + np.uint16(begin), pairs.slots))
        return RowSlots(np.concatenate([p.rows for p in found]), np.concatenate([p.slots for p in found]))


class ScanProbe:
    """Few are scanned for, each interval of each in a pass over its column."""

    def __init__(self, store: RegionStore, domains: Mapping[int, Domain], places: NewPlaces) -> None:
        self._store = store
        self._domains = domains
        self._places = places

    def match(self, rows: Batch, first: int, bits: bitmaps.Words, possible: BoolArray) -> RowSlots:
        """As :meth:`IndexProbe.match`; possible: bool[slots], which of them are looked for."""
        n = len(rows)
        bits[:] = 0
        batch = BatchKeys(rows, self._domains)
        flags = np.empty(n, np.uint8)
        found: list[RowSlots] = []
        local = dict(zip(self._places.dense.tolist(), self._places.local.tolist(), strict=True))
        for slot, may in zip(self._places.slots.tolist(), possible.tolist(), strict=True):
            if not may:
                continue
            self._scan_for(slot, batch, flags)
            flags[:first] = 0
            place = local.get(slot)
            if place is not None:
                bitmaps.put_bit(flags, place & 63, bits[place >> 6])
            else:
                where = np.flatnonzero(flags).astype(np.uint16)
                found.append(RowSlots(where, np.full(len(where), slot, np.int32)))
        if not found:
            return NO_PAIRS
        return RowSlots(np.concatenate([p.rows for p in found]), np.concatenate([p.slots for p in found]))

    def _scan_for(self, slot: int, batch: BatchKeys, out: npt.NDArray[np.uint8]) -> None:
        """out[row] = 1 where some term of the slot holds."""
        regions = self._store.of_slot(slot)
        terms = int(self._store.terms[slot])
        if terms == 1:
            self._scan_term(regions, batch, out)
            return
        out[:] = 0
        term = np.empty_like(out)
        for number in range(terms):
            self._scan_term(regions.take(np.flatnonzero(regions.term == number)), batch, term)
            out |= term

    def _scan_term(self, regions: Intervals, batch: BatchKeys, out: npt.NDArray[np.uint8]) -> None:
        begun = False
        for index in dict.fromkeys(regions.attribute.tolist()):
            mine = np.flatnonzero(regions.attribute == index)
            column = batch.column(index)
            values = _scannable(column)
            if values is None:
                values = batch.keys(index)
            if len(mine) == 1 and (column.valid is None or not regions.flags[mine[0]]):
                low, last = int(regions.low[mine[0]]), int(regions.last[mine[0]])
                intervals.within(values, low, last, not begun, out)
                if column.valid is not None:
                    out &= column.valid.view(np.uint8)
            else:
                inside = _inside(batch.keys(index), regions.low[mine], regions.last[mine])
                if column.valid is not None:
                    inside = np.where(column.valid, inside, regions.flags[mine[0]] & NULL_TOO > 0)
                out[:] = inside if not begun else out & inside
            begun = True
        if not begun:
            out[:] = 1


def _scannable(column: Column) -> npt.NDArray[np.integer] | None:
    """The values themselves where they are their own keys."""
    kind = column.type.kind
    if kind in (Kind.STRING, Kind.DOUBLE, Kind.BOOLEAN):
        return None
    return column.values


def _inside(keys: Int64Array, low: Int64Array, last: Int64Array) -> npt.NDArray[np.bool_]:
    """Which keys are in one of the intervals, ascending and disjoint."""
    holds = low <= last
    low, last = low[holds], last[holds]
    if not len(low):
        return np.zeros(len(keys), np.bool_)
    place = np.searchsorted(low, keys, "right") - 1
    return (place >= 0) & (keys <= last[np.maximum(place, 0)])

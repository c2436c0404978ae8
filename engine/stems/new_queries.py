"""Queries that just came, applied to rows that are there: the probe of PSoup's build-then-probe.

Few are scanned for, each interval of each in a pass over its column; many are put into indexes of their own
that all of them share. Segments whose zones rule a query out are passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.domains.batch_keys import BatchKeys
from engine.domains.domain import KEY_MAX, KEY_MIN, Domain
from engine.eddy.eddy import Eddy
from engine.eddy.flight import Flight
from engine.kernels import bitmaps, intervals
from engine.model.batch import BATCH_ROWS_MAX, Batch, BoolArray, Column, Int32Array, Int64Array
from engine.model.expressions import reads_made
from engine.model.types import Kind
from engine.stems.cuts import CutsPool
from engine.stems.grouped_filter import BLOCK_SLOTS, BLOCK_WORDS, SlotBlock, compile_block
from engine.stems.region_store import NULL_TOO, Intervals, RegionStore
from engine.stems.residual import ResidualPredicate
from engine.stems.selective_index import SelectiveIndex
from engine.stems.zone import SegmentZone
from engine.store.matches.cohorts import SELECTIVE
from engine.store.matches.row_slots import NO_PAIRS, RowSlots
from engine.store.matches.segment_bits import Matrix
from engine.store.matches.slot_lists import SlotLists, lists_of

SCANNED_MAX = 16
"""More queries than this share indexes."""


@dataclass(frozen=True, slots=True)
class _Regions:
    """The new queries' rows of the store, and where terms and attributes begin.

    attributes: those they speak of; which: of each row, its place among them. groups: where a (slot, term,
    attribute) begins among the rows; terms: where a (slot, term) begins among the groups; owner: of each
    term, the place of its slot. possible: slots with a term that speaks of nothing.
    """

    rows: Intervals
    attributes: list[int]
    which: Int64Array
    null_too: BoolArray
    groups: Int64Array
    terms: Int64Array
    owner: Int64Array
    possible: BoolArray

    @classmethod
    def of(cls, store: RegionStore, slots: Int64Array) -> _Regions:
        counts = store.count[slots].astype(np.int64)
        _, rows = store.of(slots)
        attributes, which = np.unique(rows.attribute, return_inverse=True)
        owner = np.repeat(np.arange(len(slots)), counts)
        first = np.ones(len(rows), np.bool_)
        first[1:] = (owner[1:] != owner[:-1]) | (rows.term[1:] != rows.term[:-1])
        begins = first.copy()
        begins[1:] |= which[1:] != which[:-1]
        groups, terms = np.flatnonzero(begins), np.flatnonzero(first)
        with_rows = np.bincount(owner[terms], minlength=len(slots))
        return cls(
            rows,
            attributes.tolist(),
            which,
            (rows.flags & NULL_TOO) > 0,
            groups,
            np.searchsorted(groups, terms),
            owner[terms],
            with_rows < store.terms[slots],
        )


@dataclass(frozen=True, slots=True)
class NewMatches:
    """bits: uint64[words, n], of the new queries alone, overwritten by the next. lists: of selective ones."""

    bits: bitmaps.Words
    lists: SlotLists


class NewQueries:
    """slots: ascending. words: those that hold a new query, ascending; masks: which bits of each. selective:
    slots of them.
    """

    def __init__(
        self,
        store: RegionStore,
        domains: Mapping[int, Domain],
        places: Int32Array,
        slots: Sequence[int],
        modules: Sequence[ResidualPredicate],
        eddy: Eddy,
        count_errors: Callable[[dict[int, int]], None],
        standing: BoolArray,
    ) -> None:
        self.standing = standing
        self._store = store
        self._domains = domains
        self._eddy = eddy
        self._count_errors = count_errors
        mine = np.array(sorted(slots), np.int64)
        self.slots = mine
        place = places[mine]
        self._dense = mine[place != SELECTIVE]
        self.selective = mine[place == SELECTIVE].astype(np.int32)
        bits = place[place != SELECTIVE].astype(np.int64)
        words, which = np.unique(bits >> 6, return_inverse=True)
        self.words: list[int] = words.tolist()
        self._local = which << 6 | bits & 63
        self.masks = np.zeros(len(words), np.uint64)
        np.bitwise_or.at(self.masks, which, np.uint64(1) << (bits & 63).astype(np.uint64))
        self._regions = _Regions.of(store, mine)
        self._bits = np.empty((len(words), 0), np.uint64)
        self._blocks: list[SlotBlock] = []
        self._index: SelectiveIndex | None = None
        self._scratch = np.empty(bitmaps.BLOCK_ROWS, np.uint64)
        if len(mine) > SCANNED_MAX:
            self._make_indexes(len(places), len(words))
        self._modules, self._places = self._own_modules(modules, len(places))

    def _make_indexes(self, slots: int, words: int) -> None:
        pool = CutsPool()
        slot_at = np.full(64 * words, -1, np.int64)
        slot_at[self._local] = self._dense
        for first in range(0, words, BLOCK_WORDS):
            block = slot_at[64 * first : 64 * first + BLOCK_SLOTS]
            number = first // BLOCK_WORDS
            self._blocks.append(compile_block(self._store, block, number, len(block) >> 6, pool))
        columns = max(self._domains, default=-1) + 1
        self._index = SelectiveIndex(columns, self._store)
        if len(self.selective):
            self._index.add(self.selective.astype(np.int64))

    def _own_modules(
        self, modules: Sequence[ResidualPredicate], slots: int
    ) -> tuple[list[ResidualPredicate], Int32Array]:
        """The residuals with the new sharers alone, at the places they have here."""
        if not modules:
            return [], np.zeros(0, np.int32)
        places = np.full(slots, SELECTIVE, np.int32)
        places[self._dense] = self._local
        dense, selective = set(self._dense.tolist()), set(self.selective.tolist())
        mine = []
        for module in modules:
            sharers = module.dense | module.selective  # rows may be kept in the other cohort
            mine.append(
                ResidualPredicate(module.name, module.predicate, sharers & dense, sharers & selective)
            )
        return mine, places

    @property
    def has_residuals(self) -> bool:
        """Whether some have conditions that no index holds."""
        return bool(self._modules)

    # --- zones ------------------------------------------------------------------------------------

    def may_match(self, zones: Sequence[SegmentZone | None]) -> bool:
        """Whether a segment with these zones can hold a row for any of them."""
        return bool(self._possible(zones).any())

    def _possible(self, zones: Sequence[SegmentZone | None]) -> BoolArray:
        """Which of the slots may accept a row of such a segment. O(intervals)."""
        regions = self._regions
        if not len(regions.rows):
            return regions.possible
        held = [zones[index] if index < len(zones) else None for index in regions.attributes]
        low = np.array([KEY_MIN if zone is None else zone.low for zone in held], np.int64)
        high = np.array([KEY_MAX if zone is None else zone.high for zone in held], np.int64)
        null = np.array([zone is None or zone.null for zone in held], np.bool_)
        which, rows = regions.which, regions.rows
        passes = (rows.low <= high[which]) & (rows.last >= low[which]) & (rows.low <= rows.last)
        passes |= regions.null_too & null[which]
        of_group = np.logical_or.reduceat(passes, regions.groups)
        of_term = np.logical_and.reduceat(of_group, regions.terms)
        possible = regions.possible.copy()
        possible[regions.owner[of_term]] = True
        return possible

    # --- rows -------------------------------------------------------------------------------------

    def read_made(self, stored: int) -> bool:
        """Whether they look at one of the columns that are made, which stand behind the stored ones."""
        return any(place >= stored for place in self._regions.attributes) or any(
            reads_made(module.predicate, stored) for module in self._modules
        )

    def match(self, rows: Batch, first: int, zones: Sequence[SegmentZone | None] = ()) -> NewMatches:
        """The matches among rows first .. n of at most 65,536; those before match nothing.

        Predicate errors are counted.
        """
        bits, pairs = self.meet(rows, first, zones)
        return NewMatches(bits, lists_of(pairs.rows, pairs.slots, self.selective, len(rows)))

    def meet(
        self, rows: Batch, first: int, zones: Sequence[SegmentZone | None] = ()
    ) -> tuple[bitmaps.Words, RowSlots]:
        """The matches that :meth:`match` gives, as bits, which the next call overwrites, and pairs of
        selective queries.
        """
        n = len(rows)
        if not len(self.slots):
            return self._bits, NO_PAIRS
        if self._bits.shape[1] < n:
            self._bits = np.empty((len(self.words), n), np.uint64)
        bits = self._bits[:, :n]
        if self._index is None:
            pairs = self._scan(rows, first, bits, zones)
        elif first == n or (zones and not self.may_match(zones)):
            bits[:] = 0
            pairs = NO_PAIRS
        else:
            pairs = self._look_up(rows, first, bits)
        if self._modules:
            flight = Flight(rows, bits, pairs, self._places, np.arange(len(self.words)))
            self._eddy.route(flight, self._modules)
            self._count_errors(flight.settle_errors())
            pairs = flight.surviving()
        return bits, pairs

    def _look_up(self, rows: Batch, first: int, bits: bitmaps.Words) -> RowSlots:
        assert self._index is not None
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

    def _scan(
        self, rows: Batch, first: int, bits: bitmaps.Words, zones: Sequence[SegmentZone | None]
    ) -> RowSlots:
        bits[:] = 0
        n = len(rows)
        if first == n:
            return NO_PAIRS
        possible = self._possible(zones) if zones else np.ones(len(self.slots), np.bool_)
        batch = BatchKeys(rows, self._domains)
        flags = np.empty(n, np.uint8)
        found: list[RowSlots] = []
        local = dict(zip(self._dense.tolist(), self._local.tolist(), strict=True))
        for slot, may in zip(self.slots.tolist(), possible.tolist(), strict=True):
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

"""Grouped filters: one index over the constants of all queries' predicates on one attribute.

The constants cut the attribute's domain into pieces; for each piece a bitmap tells which queries accept it
(CACQ section 3.1; PSoup's query SteM). A row finds its piece once, for all queries; the bitmaps of several
attributes are combined in one pass by :func:`engine.kernels.bitmaps.intersect`. Small attributes
are fused two by two into one table.

A filter is *compiled* for a set of query slots into dense arrays; adding queries marks it stale and the next
use compiles it again, so queries that arrive together pay once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.kernels import bitmaps, intervals
from engine.model.batch import Batch, Column, Int64Array
from engine.model.types import Kind, Type
from engine.stems.regions import ABOVE, BELOW, Key, Region
from engine.stems.zone import Zone

LOOKUP_SPAN_MAX = 1 << 18
"""Integer attributes whose constants lie within this span are mapped by a lookup table."""

FUSED_PIECES_MAX = 1_024
"""Two attributes share a table of at most so many pieces: 8 KiB a word stay in the first cache."""

CODES_MAX = 1 << 16
MEMO_MAX = 65_536


@dataclass(frozen=True, slots=True)
class CompiledAttribute:
    """One attribute's filter for a set of slots.

    starts: ascending, numeric attributes: int64 or float64 [pieces - 2]; strings: a list.
    table: uint64[words, pieces]; the last piece is NULL's.
    """

    index: int
    type: Type
    starts: npt.NDArray[np.int64] | npt.NDArray[np.float64] | list[str]
    table: bitmaps.Words
    lookup: npt.NDArray[np.uint16] | None
    lowest: int
    memo: dict[str, int]

    @property
    def pieces(self) -> int:
        return int(self.table.shape[1])

    def codes(self, column: Column) -> npt.NDArray[np.int32] | npt.NDArray[np.uint16]:
        """The piece of each row: integers [n]. O(n), O(n log starts) without a lookup table."""
        n = len(column)
        if self.type.kind is Kind.STRING:
            codes = self._string_codes(column)
        elif self.lookup is not None:
            narrow = np.empty(n, np.uint16)
            intervals.pieces_by_lookup(_integers(column), self.lowest, self.lookup, narrow)
            if column.valid is None:
                return narrow
            codes = narrow.astype(np.int32)
        else:
            codes = np.empty(n, np.int32)
            starts = self.starts
            assert not isinstance(starts, list)
            if self.type.kind is Kind.DOUBLE:
                intervals.pieces_of_floats(column.values, starts.astype(np.float64, copy=False), codes)
            else:
                intervals.pieces_of_integers(_integers(column), starts.astype(np.int64, copy=False), codes)
        if column.valid is not None:
            codes[~column.valid] = self.pieces - 1
        return codes

    def reachable(self, zone: Zone) -> bitmaps.Words:
        """uint64[words]: the slots that accept some value of this zone."""
        low, high = self.codes(zone.ends).tolist()
        slots: bitmaps.Words = np.bitwise_or.reduce(self.table[:, low : high + 1], axis=1)
        return slots | self.table[:, -1] if zone.null else slots

    def _string_codes(self, column: Column) -> npt.NDArray[np.int32]:
        assert column.dictionary is not None
        if not len(column.dictionary):
            return np.zeros(len(column), np.int32)
        memo = self.memo
        values = column.dictionary.to_pylist()
        pieces = np.fromiter((memo.get(value, -1) for value in values), np.int32, len(values))
        for place in np.flatnonzero(pieces < 0):
            pieces[place] = self._piece_of(values[place])
        codes: npt.NDArray[np.int32] = pieces[column.values]
        return codes

    def _piece_of(self, value: str) -> int:
        starts = self.starts
        assert isinstance(starts, list)
        if len(self.memo) >= MEMO_MAX:
            self.memo.clear()
        piece = self.memo[value] = bisect_right(starts, value)
        return piece


def _integers(column: Column) -> Int64Array:
    if column.values.dtype == np.bool_:
        return column.values.view(np.int8)
    return column.values


class AttributeFilter:
    """The predicates of all slots on one attribute, growing and shrinking.

    Regions are held as flat columns (start, stop, slot), so that compiling is a few array passes. A slot
    without a region accepts everything.
    """

    def __init__(self, index: int, type_: Type) -> None:
        self.index = index
        self.type = type_
        self.regions: dict[int, Region] = {}

    def put(self, slot: int, region: Region) -> None:
        self.regions[slot] = region

    def drop(self, slot: int) -> None:
        self.regions.pop(slot, None)

    def __len__(self) -> int:
        return len(self.regions)

    def compile(self, word_of: dict[int, int], words: int) -> CompiledAttribute | None:
        """For the slots whose word (slot >> 6) is in word_of: dense arrays of that many words.

        None: none of these slots has a predicate here. O(intervals * (log + pieces)).
        """
        slots: list[int] = []
        lows: list[Key] = []
        highs: list[Key] = []
        null_slots: list[int] = []
        constrained: list[int] = []
        for slot, region in self.regions.items():
            if slot >> 6 not in word_of:
                continue
            constrained.append(slot)
            if region.null:
                null_slots.append(slot)
            for low, high in region.intervals:
                slots.append(slot)
                lows.append(low)
                highs.append(high)
        if not constrained:
            return None
        starts, first, last = self._cut(lows, highs)
        pieces = len(starts) + 2
        table = np.full((words, pieces), np.uint64(2**64 - 1), np.uint64)
        word, bit = _places(constrained, word_of)
        clear = np.zeros(words, np.uint64)
        np.bitwise_or.at(clear, word, bit)
        table &= ~clear[:, None]
        word, bit = _places(slots, word_of)
        intervals.fill_table(first, last, word, bit, table)
        if null_slots:
            word, bit = _places(null_slots, word_of)
            np.bitwise_or.at(table[:, pieces - 1], word, bit)
        lookup, lowest = self._lookup(starts)
        return CompiledAttribute(self.index, self.type, starts, table, lookup, lowest, {})

    def _cut(
        self, lows: Sequence[Key], highs: Sequence[Key]
    ) -> tuple[
        npt.NDArray[np.int64] | npt.NDArray[np.float64] | list[str],
        npt.NDArray[np.int32],
        npt.NDArray[np.int32],
    ]:
        """The starts of pieces, and each interval as pieces first .. last-1."""
        n = len(lows)
        below = np.fromiter((low is BELOW for low in lows), np.bool_, n)
        above = np.fromiter((high is ABOVE for high in highs), np.bool_, n)
        if self.type.kind is Kind.STRING:
            cuts = sorted({low for low in lows if low is not BELOW} | {h for h in highs if h is not ABOVE})
            place = {cut: i + 1 for i, cut in enumerate(cuts)}
            first = np.fromiter((0 if low is BELOW else place[low] for low in lows), np.int32, n)
            last = np.fromiter(
                (len(cuts) + 1 if high is ABOVE else place[high] for high in highs), np.int32, n
            )
            return cuts, first, last
        dtype = np.float64 if self.type.kind is Kind.DOUBLE else np.int64
        low_keys = np.array([0 if low is BELOW else low for low in lows], dtype)
        high_keys = np.array([0 if high is ABOVE else high for high in highs], dtype)
        starts = np.unique(np.concatenate([low_keys[~below], high_keys[~above]]))
        first = np.where(below, 0, np.searchsorted(starts, low_keys, "left") + 1).astype(np.int32)
        last = np.where(above, len(starts) + 1, np.searchsorted(starts, high_keys, "left") + 1).astype(
            np.int32
        )
        return starts, first, last

    def _lookup(
        self, starts: npt.NDArray[np.int64] | npt.NDArray[np.float64] | list[str]
    ) -> tuple[npt.NDArray[np.uint16] | None, int]:
        if isinstance(starts, list) or self.type.kind is Kind.DOUBLE or len(starts) + 2 > CODES_MAX:
            return None, 0
        if not len(starts):
            return np.zeros(1, np.uint16), 0
        lowest, highest = int(starts[0]) - 1, int(starts[-1])
        if highest - lowest > LOOKUP_SPAN_MAX or lowest < -(2**62):
            return None, 0
        span = np.arange(lowest, highest + 1)
        return np.searchsorted(starts, span, "right").astype(np.uint16), lowest


def _places(
    slots: Sequence[int], word_of: dict[int, int]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint64]]:
    """For each slot the word it has here and its bit in it."""
    n = len(slots)
    word = np.fromiter((word_of[slot >> 6] for slot in slots), np.int32, n)
    bit = np.uint64(1) << (np.fromiter(slots, np.int64, n) & 63).astype(np.uint64)
    return word, bit


class CompiledFilters:
    """All attributes of a set of slots, ready for one fused pass over a batch."""

    def __init__(self, attributes: Iterable[CompiledAttribute], live: bitmaps.Words) -> None:
        """live: uint64[words], the slots that stand."""
        self.live = live
        self.attributes = tuple(attributes)
        ordered = sorted(self.attributes, key=lambda a: a.pieces)
        self.groups: list[tuple[CompiledAttribute, ...]] = []
        tables: list[bitmaps.Words] = []
        while ordered:
            first = ordered.pop(0)
            partner = next(
                (a for a in reversed(ordered) if a.pieces * first.pieces <= FUSED_PIECES_MAX), None
            )
            if partner is None:
                self.groups.append((first,))
                tables.append(first.table)
                continue
            ordered.remove(partner)
            fused = np.empty((len(live), first.pieces * partner.pieces), np.uint64)
            intervals.fuse_tables(first.table, partner.table, fused)
            self.groups.append((first, partner))
            tables.append(fused)
        self.pieces = np.array([table.shape[1] for table in tables], np.int64)
        sizes = [table.size for table in tables]
        self.offsets = (
            np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64) if sizes else np.zeros(0, np.int64)
        )
        self.tables = np.concatenate([t.ravel() for t in tables]) if tables else np.zeros(0, np.uint64)
        self._code_type = np.uint16 if not sizes or self.pieces.max() <= CODES_MAX else np.int32

    def may_match(self, zones: Sequence[Zone | None]) -> bool:
        """Whether some slot may accept a row of a segment with these zones, one a column."""
        slots = self.live.copy()
        for attribute in self.attributes:
            zone = zones[attribute.index]
            if zone is not None:
                slots &= attribute.reachable(zone)
        return bool(slots.any())

    def apply(self, batch: Batch, out: bitmaps.Words, start: int) -> None:
        """Write the match bits of the batch's rows into columns start .. start+n of out.

        out: uint64[>= words, >= start + n]. O(rows * words * groups).
        """
        codes = np.empty((len(self.groups), len(batch)), self._code_type)
        for g, group in enumerate(self.groups):
            code = group[0].codes(batch.columns[group[0].index])
            if len(group) == 2:
                second = group[1].codes(batch.columns[group[1].index])
                np.multiply(code, group[1].pieces, out=codes[g], casting="unsafe")
                codes[g] += second.astype(self._code_type, copy=False)
            else:
                codes[g] = code
        bitmaps.intersect(codes, self.tables, self.offsets, self.pieces, self.live, out, start)

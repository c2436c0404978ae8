"""Grouped filters of a block of slots: bitmaps over the constants of all their predicates.

The constants of a block's predicates on an attribute cut its domain into pieces; for each piece a bitmap
tells which queries accept it (CACQ section 3.1; PSoup's query SteM). A row finds its piece once for all of
them, and the bitmaps of several attributes are combined in one pass by
:func:`engine.kernels.bitmaps.intersect`.

A block has 512 slots, so its tables stay in the first caches whatever the constants are: with 10,000 distinct
ones an attribute a block has 1,024 of them, 8 KiB a word of slots. A change compiles one block anew, which
is what bounds the time that a registration takes from the data. Predicates of several terms have a bitmap
for each term in *layers* that are ORed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.domains.batch_keys import BatchKeys
from engine.domains.domain import KEY_MAX, KEY_MIN
from engine.kernels import bitmaps, intervals
from engine.kernels.intervals import Pieces
from engine.model.batch import Int64Array
from engine.stems.cuts import Cuts, CutsPool
from engine.stems.region_store import NULL_TOO, Intervals, RegionStore
from engine.store.matches.segment_bits import BitTarget

BLOCK_WORDS = 8
BLOCK_SLOTS = 64 * BLOCK_WORDS
BLOCK_INTERVALS_MAX = 8_192
"""So that pieces fit 16 bits and a table stays below 1 MiB."""

FUSED_PIECES_MAX = 1_024
"""Two attributes share a table of at most so many pieces: 8 KiB a word stay in the first cache."""

WORD_WORK = 0.5
"""Combining a word of bits of a row with another, in work of about a nanosecond."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One term of each predicate of a block. live: uint64[words], the slots that have such a term."""

    groups: tuple[tuple[Cuts, ...], ...]
    tables: bitmaps.Words
    offsets: Int64Array
    pieces: Int64Array
    live: bitmaps.Words

    def codes(self, batch: BatchKeys) -> Pieces:
        """uint16[groups, n]: the piece of each row in each group's table."""
        codes = batch.codes.get(self.groups)
        if codes is None:
            codes = np.empty((len(self.groups), batch.n), np.uint16)
            for g, group in enumerate(self.groups):
                if len(group) == 2:
                    np.multiply(group[0].codes(batch), group[1].pieces, out=codes[g], casting="unsafe")
                    codes[g] += group[1].codes(batch)
                else:
                    codes[g] = group[0].codes(batch)
            batch.codes[self.groups] = codes
        return codes


@dataclass(frozen=True, slots=True)
class SlotBlock:
    """Compiled: slots number * BLOCK_SLOTS on."""

    number: int
    layers: tuple[Layer, ...]
    work: float
    """The work for a row, in about nanoseconds."""

    def drop(self, place: int) -> None:
        """A slot (its place among the block's) accepts nothing from now on; it may have come after this."""
        for layer in self.layers:
            if place >> 6 < len(layer.live):
                layer.live[place >> 6] &= ~(np.uint64(1) << np.uint64(place & 63))

    def apply(self, batch: BatchKeys, out: BitTarget, start: int, scratch: bitmaps.Words) -> None:
        """Write the block's words of rows start .. start+n of out. O(rows * words * groups)."""
        at, rows = out.room(self.number, start, batch.n, len(self.layers[0].live))
        for number, layer in enumerate(self.layers):
            bitmaps.intersect(
                layer.codes(batch),
                layer.tables,
                layer.offsets,
                layer.pieces,
                layer.live,
                at,
                rows,
                start,
                scratch,
                number > 0,
            )

    def attributes(self) -> set[int]:
        """Places of the columns that it looks at."""
        return {cuts.index for layer in self.layers for group in layer.groups for cuts in group}

    def nbytes(self) -> int:
        return sum(layer.tables.nbytes for layer in self.layers)


def compile_block(
    store: RegionStore, slots: Int64Array, number: int, words: int, pool: CutsPool
) -> SlotBlock:
    """The filters of these slots, at places 0, 1, ...; -1: nobody's. A few array passes an attribute.

    slots: int64[<= 64 * words].
    """
    places = np.flatnonzero(slots >= 0)
    held = slots[places]
    counts = store.count[held]
    _, rows = store.of(held)
    row_places = np.repeat(places, counts)
    terms = store.terms[held]
    layers = []
    for term in range(max(1, int(terms.max(initial=0)))):
        live = bits_at(places[terms > term], words)
        if term == 0 and int(terms.max(initial=0)) <= 1:
            layers.append(_layer(rows, row_places, live, pool))
        else:
            mine = rows.term == term
            layers.append(_layer(rows.take(mine), row_places[mine], live, pool))
    work = sum(cuts.work for cuts in {cuts for each in layers for group in each.groups for cuts in group})
    work += WORD_WORK * words * sum(len(each.groups) for each in layers)
    return SlotBlock(number, tuple(layers), work)


def _layer(rows: Intervals, places: Int64Array, live: bitmaps.Words, pool: CutsPool) -> Layer:
    return _fused(filters_of(rows, places, len(live), pool), live)


def filters_of(
    rows: Intervals, places: Int64Array, words: int, pool: CutsPool
) -> list[tuple[Cuts, bitmaps.Words]]:
    """Compile a filter for each attribute, ascending: its cuts, and its table, uint64[words, pieces], which
    tells who accepts each piece.

    places: the bit of each row of the store. Who does not speak of an attribute accepts all of it.
    """
    filters: list[tuple[Cuts, bitmaps.Words]] = []
    indices = np.unique(rows.attribute).tolist()
    for index in indices:
        if len(indices) == 1:
            filters.append(_filter(index, rows, places, words, pool))
        else:
            mine = rows.attribute == index
            filters.append(_filter(index, rows.take(mine), places[mine], words, pool))
    return filters


def _filter(
    index: int, rows: Intervals, places: Int64Array, words: int, pool: CutsPool
) -> tuple[Cuts, bitmaps.Words]:
    """One attribute's cuts and its table, uint64[words, pieces]; the last piece is NULL's."""
    low, last = rows.low, rows.last
    holds = low <= last
    if not holds.all():
        low, last, inner = low[holds], last[holds], places[holds]
    else:
        inner = places
    above = last[last < KEY_MAX] + 1
    starts = np.unique(np.concatenate([low[low > KEY_MIN], above]))
    first = np.where(low > KEY_MIN, np.searchsorted(starts, low) + 1, 0)
    after = np.where(
        last < KEY_MAX, np.searchsorted(starts, np.minimum(last, KEY_MAX - 1) + 1) + 1, len(starts) + 1
    )
    cuts = pool.cuts(index, starts)
    table = np.zeros((words, cuts.pieces), np.uint64)
    intervals.fill_table(first, after, inner, table)
    table[:, -1] = bits_at(places[(rows.flags & NULL_TOO) > 0], words)
    table |= ~bits_at(places, words)[:, None]
    return cuts, table


def bits_at(places: npt.NDArray[np.integer], words: int) -> bitmaps.Words:
    """uint64[words] with these bits set."""
    flags = np.zeros(64 * words, np.bool_)
    flags[places] = True
    return np.packbits(flags, bitorder="little").view(np.uint64)


def _fused(filters: Sequence[tuple[Cuts, bitmaps.Words]], live: bitmaps.Words) -> Layer:
    """Small attributes two by two in one table."""
    ordered = sorted(filters, key=lambda each: each[0].pieces)
    groups: list[tuple[Cuts, ...]] = []
    tables: list[bitmaps.Words] = []
    while ordered:
        cuts, table = ordered.pop(0)
        partner = next(
            (i for i, other in enumerate(ordered) if other[0].pieces * cuts.pieces <= FUSED_PIECES_MAX), None
        )
        if partner is None:
            groups.append((cuts,))
            tables.append(table)
            continue
        other, right = ordered.pop(partner)
        fused = np.empty((len(live), cuts.pieces * other.pieces), np.uint64)
        intervals.fuse_tables(table, right, fused)
        groups.append((cuts, other))
        tables.append(fused)
    pieces = np.array([table.shape[1] for table in tables], np.int64)
    sizes = np.array([table.size for table in tables], np.int64)
    offsets = np.cumsum(sizes) - sizes
    flat = np.concatenate([t.ravel() for t in tables]) if tables else np.zeros(0, np.uint64)
    return Layer(tuple(groups), flat, offsets, pieces, live)

"""The dense cohort's grouped filters as modules of the eddy: one for each attribute, of all its queries.

What :mod:`engine.stems.dense_filters` does in one pass over all rows, visit by visit: a row's piece of an
attribute is found when it comes to that attribute's module, which most rows may never do (CACQ section 3.2).
A query's terms are alternatives, each with a column of bits of its own (section 3.2.7); a row is the query's
if any of them is left when it lands.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.domains.batch_keys import BatchKeys
from engine.eddy.flight import Flight, FlightRows, Needs
from engine.eddy.policies import Visit
from engine.kernels import bitmaps, lineage
from engine.model.batch import MATCHED_ROWS_MAX, Batch, Int32Array, Int64Array
from engine.model.source import Schema
from engine.stems.cuts import Cuts, CutsPool
from engine.stems.dense_filters import DenseFilters
from engine.stems.grouped_filter import BLOCK_SLOTS, BLOCK_WORDS, WORD_WORK, bits_at, filters_of
from engine.stems.region_store import RegionStore
from engine.store.matches.row_slots import RowSlots

VISITED_WORK = 6.0
"""A word of a visit in words of the fused pass: who wants is read first, and what is left is looked at."""


@dataclass(frozen=True, slots=True)
class BlockPart:
    """One attribute of one alternative of a block. table: uint64[columns, pieces], ones but for masks."""

    cuts: Cuts
    table: bitmaps.Words
    columns: Int64Array
    masks: bitmaps.Words


class GroupedFilter:
    """All predicates on one attribute, as a module."""

    __slots__ = ("_needs", "_parts", "_work", "name", "queries")

    def __init__(self, name: str, parts: Sequence[BlockPart], queries: int) -> None:
        self.name = name
        self.queries = queries
        self._parts = parts
        columns = np.concatenate([part.columns for part in parts])
        self._needs = columns, np.concatenate([part.masks for part in parts])
        self._work = sum(part.cuts.work for part in parts) + VISITED_WORK * WORD_WORK * len(columns)

    @property
    def expected_ns(self) -> None:
        """A row takes about as much as with other filters."""

    def needs(self, flight: Flight) -> Needs:
        """The bits of the queries that speak of the attribute."""
        return self._needs

    def wanting(self, flight: Flight) -> Int64Array:
        """Places in the batch, ascending."""
        return flight.places_of(flight.wanting(self._needs))

    def visit(self, flight: Flight) -> Visit:
        """Clear the bits of queries that do not accept a row's piece."""
        assert flight.way is not None
        assert flight.way.keys is not None
        rows = flight.wanting(self._needs)
        places = flight.places_of(rows)
        whole = flight.way.keys
        keys = whole if len(rows) == whole.n else whole.part(places)
        left = np.zeros(len(rows), np.bool_)
        ended = 0
        for part in self._parts:
            codes = part.cuts.codes(keys)
            ended += lineage.restrict(flight.wanted, part.columns, part.masks, part.table, codes, rows, left)
        return Visit(len(rows), int(np.count_nonzero(left)), ended, self._work * len(rows))


class SplitFilters:
    """Modules of a state of the dense filters; made anew when that changed."""

    def __init__(self, schema: Schema, store: RegionStore, dense: DenseFilters) -> None:
        self.modules: tuple[GroupedFilter, ...] = ()
        self._schema = schema
        self._store = store
        self._dense = dense
        self._version = -1
        self._live: list[bitmaps.Words] = []
        self._words = np.zeros(0, np.int64)
        self._pool = CutsPool()
        self._wanted = np.empty((0, MATCHED_ROWS_MAX), np.uint64)

    def refresh(self) -> None:
        """Bring the modules up to date. O(1) where nothing changed, else what compiling the blocks costs."""
        self._dense.compile()
        if self._version == self._dense.version:
            return
        self._version = self._dense.version
        parts: dict[int, list[BlockPart]] = defaultdict(list)
        queries: dict[int, set[int]] = defaultdict(set)
        self._live = []
        words: list[int] = []
        for number, block in self._dense.blocks():
            slots = self._dense.slot_at[number * BLOCK_SLOTS : (number + 1) * BLOCK_SLOTS].astype(np.int64)
            places = np.flatnonzero(slots >= 0)
            _, rows = self._store.of(slots[places])
            row_places = np.repeat(places, self._store.count[slots[places]])
            for term, layer in enumerate(block.layers):
                width = len(layer.live)
                mine = np.flatnonzero(rows.term == term)
                for cuts, table in filters_of(rows.take(mine), row_places[mine], width, self._pool):
                    of_attribute = row_places[mine][rows.attribute[mine] == cuts.index]
                    masks = bits_at(of_attribute, width)
                    used = np.flatnonzero(masks)
                    parts[cuts.index].append(
                        BlockPart(cuts, np.ascontiguousarray(table[used]), len(words) + used, masks[used])
                    )
                    queries[cuts.index].update((number * BLOCK_SLOTS + of_attribute).tolist())
                words.extend(range(number * BLOCK_WORDS, number * BLOCK_WORDS + width))
                self._live.append(layer.live)
        self._words = np.array(words, np.int64)
        self.modules = tuple(
            GroupedFilter(f"filter on {self._schema.field(index).name}", held, len(queries[index]))
            for index, held in sorted(parts.items())
        )
        if len(words) > len(self._wanted):
            self._wanted = np.empty((len(words), MATCHED_ROWS_MAX), np.uint64)

    def take_off(self, rows: Batch, keys: BatchKeys, pairs: RowSlots, places: Int32Array) -> Flight:
        """A flight of all rows, wanted by every dense query. It lands in an array of its own."""
        n = len(rows)
        words = np.arange(self._dense.words)
        wanted = self._wanted[: len(self._words), :n]
        live = np.concatenate(self._live) if self._live else np.zeros(0, np.uint64)
        lineage.begin(live, wanted)
        landing = np.zeros((len(words), n), np.uint64)
        return Flight(
            rows, wanted, pairs, places, words, FlightRows(keys, self._words, np.arange(n), landing, 0)
        )

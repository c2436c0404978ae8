"""Queries that just came, applied to rows that are there: the probe of PSoup's build-then-probe.

Few are scanned for, many are put into indexes of their own that all of them share
(:mod:`engine.stems.new_query_probes`). Segments whose zones rule a query out are passed over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from engine.domains.domain import Domain
from engine.eddy.eddy import Eddy
from engine.eddy.flight import Flight
from engine.kernels import bitmaps
from engine.model.batch import Batch, Int32Array
from engine.model.expressions import reads_made
from engine.stems.new_places import NewPlaces
from engine.stems.new_query_probes import IndexProbe, ScanProbe
from engine.stems.new_regions import NewRegions
from engine.stems.predicate_slots import PredicateSlots
from engine.stems.region_store import RegionStore
from engine.stems.residual import ResidualPredicate
from engine.stems.zone import SegmentZone
from engine.store.matches.cohorts import SELECTIVE
from engine.store.matches.row_slots import NO_PAIRS, RowSlots
from engine.store.matches.slot_lists import SlotLists, lists_of

SCANNED_MAX = 16
"""More queries than this share indexes."""


@dataclass(frozen=True, slots=True)
class NewMatches:
    """bits: uint64[words, n], of the new queries alone, overwritten by the next. lists: of selective ones."""

    bits: bitmaps.Words
    lists: SlotLists


class NewQueries:
    """See the module."""

    def __init__(
        self,
        store: RegionStore,
        domains: Mapping[int, Domain],
        places: Int32Array,
        slots: Sequence[int],
        modules: Sequence[ResidualPredicate],
        eddy: Eddy,
        standing: PredicateSlots,
    ) -> None:
        """places: by slot, its bit or SELECTIVE. slots: the new ones. standing: of all that stand."""
        mine = np.array(sorted(slots), np.int64)
        self.places = NewPlaces.of(mine, places, standing.holders > 0)
        self._count_errors = standing.count_errors
        self._eddy = eddy
        self._regions = NewRegions.of(store, mine)
        self._bits = np.empty((len(self.places.words), 0), np.uint64)
        probe = IndexProbe if len(mine) > SCANNED_MAX else ScanProbe
        self._probe = probe(store, domains, self.places)
        self._modules, self._module_places = self._own_modules(modules, len(places))

    def _own_modules(
        self, modules: Sequence[ResidualPredicate], slots: int
    ) -> tuple[list[ResidualPredicate], Int32Array]:
        """The residuals with the new sharers alone, at the places they have here."""
        if not modules:
            return [], np.zeros(0, np.int32)
        places = np.full(slots, SELECTIVE, np.int32)
        places[self.places.dense] = self.places.local
        dense, selective = set(self.places.dense.tolist()), set(self.places.selective.tolist())
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
        return bool(self._regions.possible_in(zones).any())

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
        return NewMatches(bits, lists_of(pairs.rows, pairs.slots, self.places.selective, len(rows)))

    def meet(
        self, rows: Batch, first: int, zones: Sequence[SegmentZone | None] = ()
    ) -> tuple[bitmaps.Words, RowSlots]:
        """The matches that :meth:`match` gives, as bits, which the next call overwrites, and pairs of
        selective queries.
        """
        n = len(rows)
        if not len(self.places.slots):
            return self._bits, NO_PAIRS
        if self._bits.shape[1] < n:
            self._bits = np.empty((len(self.places.words), n), np.uint64)
        bits = self._bits[:, :n]
        possible = self._regions.possible_in(zones) if zones else np.ones(len(self.places.slots), np.bool_)
        if first == n or not possible.any():
            bits[:] = 0
            pairs = NO_PAIRS
        else:
            pairs = self._probe.match(rows, first, bits, possible)
        if self._modules:
            flight = Flight(rows, bits, pairs, self._module_places, np.arange(len(self.places.words)))
            self._eddy.route(flight, self._modules)
            self._count_errors(flight.settle_errors())
            pairs = flight.surviving()
        return bits, pairs

"""How a batch goes through the predicates of a Query SteM: index, grouped filters, residuals.

Where a row's keys lead to few predicates these come first, as pairs. Then grouped filters, all in one pass or
as modules of the eddy, whichever measured cheaper (:mod:`engine.eddy.fusing`), and residual predicates as
modules.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from engine.domains.batch_keys import BatchKeys
from engine.eddy.eddy import Eddy
from engine.eddy.flight import Flight
from engine.eddy.statistics import ModuleStatistics
from engine.model.batch import Batch, Int32Array, Int64Array
from engine.model.source import Schema
from engine.stems.dense_filters import DenseFilters
from engine.stems.region_store import RegionStore
from engine.stems.residual import ResidualPredicate
from engine.stems.residual_set import ResidualSet
from engine.stems.selective_index import SelectiveIndex
from engine.stems.split_filters import SplitFilters
from engine.store.matches.row_slots import RowSlots
from engine.store.matches.segment_bits import BitTarget

FUSED = "grouped filters"
"""The name of all of them in one pass."""

SAMPLED_ROWS = 256
SAMPLED_EVERY = 16
"""Rows are sampled, SAMPLED_ROWS of every SAMPLED_EVERY batches, to tell what share of rows survives."""

CALLS_WORK = 60_000.0
"""What the calls of a visit take, whatever its rows, in about nanoseconds."""

_NO_WORDS = np.zeros(0, np.int64)


class Routing:
    """See the module."""

    def __init__(
        self,
        schema: Schema,
        store: RegionStore,
        dense: DenseFilters,
        selective: SelectiveIndex,
        residuals: ResidualSet,
    ) -> None:
        self.eddy = Eddy()
        self._dense = dense
        self._selective = selective
        self._residuals = residuals
        self._split = SplitFilters(schema, store, dense)
        self._batches = 0
        self._fused = 0
        self._fused_rows = 0
        self._fused_killed = 0.0
        self._fused_ns = 0.0

    def match(
        self,
        rows: Batch,
        keys: BatchKeys,
        places: Int32Array,
        out: BitTarget,
        start: int,
        later: Collection[ResidualPredicate] = (),
    ) -> tuple[RowSlots, dict[int, int]]:
        """(pairs, errors by slot); the dense cohort's bits are written to rows start .. start+n of out.

        later: residuals that are left out, unless another one errs for a query that shares it: FALSE
        outweighs an error.
        """
        eddy, dense = self.eddy, self._dense
        split = eddy.fusing.splits(len(rows), dense.words, dense.cost.attributes)
        pairs = self._selective.match(keys)
        began = eddy.timer() if eddy.timer is not None else 0
        errors: dict[int, int] = {}
        if split:
            self._refresh()
            flight = self._split.take_off(rows, keys, pairs, places)
            work = eddy.route(flight, [*self._split.modules, *self._needed(pairs, later)])
            work += CALLS_WORK * len(self._split.modules)
            errors, pairs = self._land(flight, out, start, later)
        else:
            dense.apply(keys, out, start)
            work = self._count_fused(len(rows), began)
            if len(self._residuals):
                modules = self._needed(pairs, later)
                words = words_of([*modules, *later], places)
                flight = Flight(rows, out.words_at(words, start, len(rows)), pairs, places, words)
                work += eddy.route(flight, modules)
                errors, pairs = self._land(flight, out, start, later)
        if dense.count:
            cost = work if eddy.timer is None else float(eddy.timer() - began)
            eddy.fusing.observe(split, len(rows), cost)
            if self._batches % SAMPLED_EVERY == 0:
                eddy.fusing.surviving = _surviving(out, start, len(rows))
            self._batches += 1
        return pairs, errors

    def _needed(self, pairs: RowSlots, later: Collection[ResidualPredicate]) -> list[ResidualPredicate]:
        modules = self._residuals.needed(pairs)
        return [module for module in modules if module not in later] if later else modules

    def _land(
        self, flight: Flight, out: BitTarget, start: int, later: Collection[ResidualPredicate]
    ) -> tuple[dict[int, int], RowSlots]:
        if later and flight.erring:
            self.eddy.route(flight, [one for one in later if not one.dense.isdisjoint(flight.erring)])
        errors = flight.settle_errors()
        out.put_words(flight.words, start, flight.wanted)
        return errors, flight.surviving()

    def _count_fused(self, rows: int, began: int) -> float:
        """The pass is over; returns its work."""
        timer = self.eddy.timer
        work = self._dense.cost.work * rows
        self._fused += 1
        self._fused_rows += rows
        self._fused_killed += rows * (1.0 - self.eddy.fusing.surviving)
        self._fused_ns += work if timer is None else timer() - began
        return work

    def statistics(self) -> tuple[ModuleStatistics, ...]:
        """Statistics of the fused pass, if there was one (killed rows: estimated), and of the eddy."""
        if not self._fused:
            return self.eddy.statistics()
        fused = ModuleStatistics(
            FUSED,
            self._dense.count,
            None,
            self._fused,
            self._fused_rows,
            round(self._fused_killed),
            self._fused_ns,
        )
        return fused, *self.eddy.statistics()

    def _refresh(self) -> None:
        before = self._split.modules
        self._split.refresh()
        if self._split.modules is not before:
            names = {module.name for module in self._split.modules}
            for module in before:
                if module.name not in names:
                    self.eddy.forget(module.name)


def _surviving(out: BitTarget, start: int, n: int) -> float:
    """The share of rows with a bit set, of some."""
    some = out.some(start, n, max(1, n // SAMPLED_ROWS))
    return float(np.count_nonzero(some) / max(1, len(some)))


def words_of(modules: Sequence[ResidualPredicate], places: Int32Array) -> Int64Array:
    """The words of bits that residuals may clear, ascending."""
    return np.unique(np.concatenate([module.bits(places)[0] for module in modules] or [_NO_WORDS]))

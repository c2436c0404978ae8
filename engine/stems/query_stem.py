"""The Query SteM of a stream: all standing predicates over it, as one index that a row meets once.

A predicate lives in a *slot*, reused when it goes, lowest first; the generation tells owners of one slot
apart. It is taken apart into terms and residuals (:mod:`engine.stems.factors`); the terms' regions are kept
in one store, and from it one of two cohorts serves the slot:

    dense      a bit for every row, computed for all slots in one pass   (engine.stems.dense_filters)
    selective  reached from the row's keys, matches as pairs             (engine.stems.selective_index)

Which of them is decided, and looked at again, in :mod:`engine.stems.placement`.

Equal predicates share a slot, counted, and with it their matches and their count of errors: predicates
without residuals, which cannot err, where their regions are equal, others where they are the same expression.

Build then probe: a predicate is put in (build) and then applied to the rows that are there (probe), while new
rows are matched with the predicates that are there, so that each pair meets once (PSoup section 3).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.domains.batch_keys import BatchKeys
from engine.eddy.eddy import Eddy, Timer
from engine.eddy.flight import Flight
from engine.eddy.statistics import ModuleStatistics
from engine.kernels.bitmaps import Words
from engine.model import expressions as ex
from engine.model.attributes import Attribute
from engine.model.batch import Batch, Int32Array, Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.model.source import MADE, Schema
from engine.model.usage import Stopwatch, Usage
from engine.stems.factors import Factors, factors
from engine.stems.facts import facts_of
from engine.stems.new_queries import NewQueries
from engine.stems.placement import Placement
from engine.stems.postponing import Postponing
from engine.stems.predicate_domains import PredicateDomains
from engine.stems.predicate_slots import PredicateSlots
from engine.stems.region_store import Intervals, RegionStore, Row
from engine.stems.residual import ResidualPredicate
from engine.stems.residual_set import ResidualSet
from engine.stems.routing import Routing
from engine.stems.shared_predicates import SharedPredicates
from engine.store.matches.cohorts import SELECTIVE, Cohorts
from engine.store.matches.row_slots import NO_PAIRS, RowSlots
from engine.store.matches.segment_bits import BitTarget


@dataclass(frozen=True, slots=True)
class Added:
    """slots: one for each predicate given. fresh: those that were made for them: old rows lack their bits."""

    slots: tuple[int, ...]
    fresh: tuple[int, ...]


class QueryStem:
    """See the module. Not thread-safe: one engine, one owner."""

    def __init__(
        self,
        schema: Schema,
        timer: Timer | None = None,
        watch: Stopwatch | None = None,
        capacities: Capacities = USUAL,
    ) -> None:
        self.schema = schema
        self.usage = Usage()
        self._watch = watch or Stopwatch()
        self.slots = PredicateSlots(capacities)
        self.store = RegionStore(capacities)
        self.domains = PredicateDomains(schema, self.store, capacities)
        attributes = len(schema) + len(MADE)
        self.placement = Placement(self.slots, self.store, self.domains.sample, attributes)
        self.residuals = ResidualSet()
        dense, selective = self.placement.dense, self.placement.selective
        self._routing = Routing(schema, self.store, dense, selective, self.residuals)
        self._routing.eddy.timer = timer
        self._shared = SharedPredicates(capacities)
        self.postponing = Postponing(self.slots, self.residuals, self.eddy)

    @property
    def eddy(self) -> Eddy:
        """What routes new rows."""
        return self._routing.eddy

    @property
    def words(self) -> int:
        """How many word columns the dense cohort takes."""
        return self.placement.dense.words

    @property
    def cohorts(self) -> Cohorts:
        """Where matches of each slot are kept from now on."""
        return self.placement.now

    # --- build ------------------------------------------------------------------------------------

    def add(self, predicates: Sequence[ex.Expression | Factors]) -> Added:
        """Put predicates in, those without residuals perhaps taken apart already. O(predicates), and what
        their constants cost the indexes.
        """
        taken = [
            predicate if isinstance(predicate, Factors) else factors(predicate) for predicate in predicates
        ]
        if self.domains.name(taken):
            self.placement.dense.mark_all()
            self.placement.selective.rebuild()
        slots: list[int] = []
        fresh: list[int] = []
        rows: list[Row] = []
        counts: list[int] = []
        terms: list[int] = []
        coming: dict[tuple[int, tuple[Row, ...]], int] = {}
        for predicate, each in zip(predicates, taken, strict=True):
            mine = self.domains.rows_of(each)
            regions = len(each.terms), mine
            slot = coming.get(regions) if not each.residuals else None
            if slot is None:
                slot = self._standing(predicate, each, mine)
            if slot is not None:
                self.slots.holders[slot] += 1
            else:
                slot = self.slots.take()
                fresh.append(slot)
                rows.extend(mine)
                counts.append(len(mine))
                terms.append(len(each.terms))
                if each.residuals:
                    assert not isinstance(predicate, Factors)
                    self.residuals.share(slot, predicate, each.residuals)
                else:
                    coming[regions] = slot
            slots.append(slot)
        if fresh:
            made, sizes, alternatives = (np.array(each, np.int64) for each in (fresh, counts, terms))
            intervals = Intervals.of(rows)
            self.slots.clear_errors(made)
            self.store.put(made, sizes, alternatives, intervals)
            for regions, slot in coming.items():  # once the store has them: others may have the same hash
                self._shared.add(hash(regions), slot)
            self.placement.put(made, sizes, alternatives, intervals)
            self.residuals.place(fresh, self.cohorts.place)
        return Added(tuple(slots), tuple(fresh))

    def _standing(
        self, predicate: ex.Expression | Factors, each: Factors, rows: tuple[Row, ...]
    ) -> int | None:
        """The slot of a predicate that means the same, if one stands."""
        if each.residuals:
            assert not isinstance(predicate, Factors)
            return self.residuals.slot_of(predicate)
        terms = len(each.terms)
        for slot in self._shared.find(hash((terms, rows))):
            if self.store.terms[slot] == terms and self.store.is_of(slot, rows):
                return slot
        return None

    def holders_of(self, predicate: ex.Expression, each: Factors) -> int:
        """How many queries hold a predicate that means the same; 0 where there is none. Nothing changes.
        each: the predicate taken apart. O(its constants).
        """
        try:
            slot = self._standing(predicate, each, () if each.residuals else self.domains.rows_of(each))
        except KeyError:  # an attribute, or a string, that no predicate names
            return 0
        return 0 if slot is None else int(self.slots.holders[slot])

    def remove(self, slots: Sequence[int]) -> None:
        """One holder of each of these lets go; a slot without holders may be used again."""
        for slot in slots:
            self.slots.holders[slot] -= 1
            if not self.slots.holders[slot]:
                self._take_out(slot)

    def _take_out(self, slot: int) -> None:
        self.placement.drop(slot)
        self.store.drop(slot)
        if not self.residuals.drop(slot, self._gone):
            self._shared.drop(slot)
        self.postponing.forget(slot)
        self.slots.free(slot)
        self.domains.sweep(self.slots)

    def _gone(self, module: str) -> None:
        """Nobody shares a residual any more."""
        self.eddy.forget(module)
        self.postponing.gone(module)

    # --- probe ------------------------------------------------------------------------------------

    def match(
        self, rows: Batch, out: BitTarget, start: int, later: Collection[ResidualPredicate] = ()
    ) -> RowSlots:
        """Match new rows (at most MATCHED_ROWS_MAX) with all queries.

        Writes the dense cohort's bits of rows start .. start+n of out, and returns the selective one's pairs.
        Rows whose predicate ends as an error are counted. later: residuals that are not looked at yet.
        """
        with self._watch.on(self.usage):
            self.domains.sample.observe(rows)
            batch = BatchKeys(rows, self.domains.by_index)
            pairs, errors = self._routing.match(rows, batch, self.cohorts.place, out, start, later)
            self.slots.count_errors(errors)
        self.usage.rows_in += len(rows)
        return pairs

    def meet_later(
        self,
        rows: Batch,
        wanted: Words,
        places: Int32Array,
        words: Int64Array,
        modules: Sequence[ResidualPredicate],
    ) -> tuple[Words, Collection[int]]:
        """Rows meet residuals that they did not meet when they came. wanted: uint64[words, rows], their bits.

        Returns the bits that are left, and the slots of those whose predicate ends as an error, which are
        counted.
        """
        with self._watch.on(self.usage):
            flight = Flight(rows, wanted, NO_PAIRS, places, words)
            self.eddy.route(flight, modules)
            errors = flight.settle_errors()
            self.slots.count_errors(errors)
        return flight.wanted, errors.keys()

    def probe(self, slots: Collection[int], cohorts: Cohorts) -> NewQueries:
        """The queries of those of these slots that stand, to be applied to rows that are there. cohorts: of
        those rows.
        """
        mine = [slot for slot in slots if self.slots.holders[slot]]
        modules = {m.name: m for slot in mine for m in self.residuals.of(slot)}
        return NewQueries(
            self.store,
            self.domains.by_index,
            cohorts.place,
            mine,
            list(modules.values()),
            self.eddy.aside() if modules else self.eddy,
            self.slots,
        )

    def may_err(self, slot: int) -> bool:
        """Whether a slot's predicate may end as an error."""
        return bool(self.residuals.of(slot))

    def revise(self, oldest_epoch: int) -> None:
        """As :meth:`engine.stems.placement.Placement.revise`."""
        self.residuals.place(self.placement.revise(oldest_epoch), self.cohorts.place)

    # --- what can be read -------------------------------------------------------------------------

    def explain(self, slot: int) -> dict[str, Any]:
        """How a slot's predicate is served, and what that costs."""
        return facts_of(self, slot, self.residuals.of(slot))

    def statistics(self) -> tuple[ModuleStatistics, ...]:
        """Statistics of the modules that rows go through."""
        return self._routing.statistics()

    def nbytes(self) -> int:
        """Bytes of all that is kept of predicates, but for residuals and strings."""
        return self.slots.nbytes + self.store.nbytes() + self.placement.nbytes() + self._shared.nbytes()

    def attributes(self) -> tuple[Attribute, ...]:
        """What can be read of this module, and set."""
        dense, selective = self.placement.dense, self.placement.selective
        return (
            Attribute("predicates", len(self.slots), "distinct standing predicates"),
            Attribute("slots", self.slots.used, "query slots ever used at once"),
            Attribute("dense", dense.count, "predicates with a bit for every row"),
            Attribute("selective", selective.count, "predicates reached from the rows' keys"),
            Attribute("words", self.words, "words of bits a row takes"),
            Attribute("access_paths", len(selective.paths), "indexes of the selective predicates"),
            Attribute("index_bytes", self.nbytes(), "bytes of all indexes"),
            Attribute("residual_predicates", len(self.residuals), "distinct predicates outside the index"),
            Attribute("compilations", dense.compilations, "blocks of grouped filters compiled"),
            *self.eddy.attributes(),
        )

    def _check(self) -> None:
        self.slots._check()
        standing = set(self.slots.held(0, self.slots.used).tolist())
        self.store._check()
        assert set(np.flatnonzero(self.store.terms).tolist()) <= standing
        assert set(np.flatnonzero(self.store.count).tolist()) <= standing
        place, filters = self.cohorts.place, self.placement.dense
        dense = {slot for slot in standing if place[slot] != SELECTIVE}
        filters._check()
        assert all(filters.slot_at[place[slot]] == slot for slot in dense)
        assert filters.count == len(dense)
        self.placement.selective._check(standing - dense, self.domains.by_index)
        shared = self._shared.slots()
        with_residuals = set(self.residuals.slots())
        assert shared == sorted(standing - with_residuals)
        assert len(self._shared) == len(shared)
        assert with_residuals <= standing
        self.residuals._check(dense)
        self.domains._check()

"""The Query SteM of a stream: all standing predicates over it, as one index that a row meets once.

A predicate lives in a *slot*, reused when it goes, lowest first; the generation tells owners of one slot
apart. It is taken apart into terms and residuals (:mod:`engine.stems.factors`); the terms' regions are kept
in one store, and from it one of two cohorts serves the slot:

    dense      a bit for every row, computed for all slots in one pass   (engine.stems.dense_filters)
    selective  reached from the row's keys, matches as pairs             (engine.stems.selective_index)

Which of them is decided by the share of rows that the best attribute lets through
(:mod:`engine.stems.selectivity`), and looked at again, some slots each time a segment is sealed.

Equal predicates share a slot, counted, and with it their matches and their count of errors: predicates
without residuals, which cannot err, where their regions are equal, others where they are the same expression.

Build then probe: a predicate is put in (build) and then applied to the rows that are there (probe), while new
rows are matched with the predicates that are there, so that each pair meets once (PSoup section 3).
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.domains.batch_keys import BatchKeys
from engine.domains.domain import Domain, StringDomain, domain_of, moved_bounds
from engine.eddy.eddy import Eddy, Timer
from engine.eddy.statistics import ModuleStatistics
from engine.model import expressions as ex
from engine.model.attributes import Attribute
from engine.model.batch import Batch, BoolArray, Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.model.source import MADE, Schema
from engine.model.usage import Stopwatch, Usage
from engine.stems.dense_filters import DenseFilters
from engine.stems.factors import Factors, factors
from engine.stems.facts import facts_of
from engine.stems.new_queries import NewQueries
from engine.stems.region_store import NULL_TOO, Intervals, RegionStore, Row
from engine.stems.residual_set import ResidualSet
from engine.stems.routing import Routing
from engine.stems.selective_index import SelectiveIndex
from engine.stems.selectivity import SHARE_MAX, AccessChoice, BatchSample
from engine.stems.shared_predicates import SharedPredicates
from engine.store.matches.cohorts import SELECTIVE, Cohorts
from engine.store.matches.row_slots import RowSlots
from engine.store.matches.segment_bits import BitTarget

REVISED_SLOTS = 2_048
"""Slots whose cohort is looked at again at a time."""

REVISED_EVERY = 32
"""Segments between two looks, once all slots were seen with a good sample."""

SLOTS_MIN = 64
"""Queries that there is room for at first."""
PATH_MIN = 512
"""Fewer predicates than this are not worth a look-up for every row: as bits they cost it less."""

EPOCHS_MAX = 16
REVISION_GAIN = 4.0
SAMPLE_MIN = 512


@dataclass(frozen=True, slots=True)
class Added:
    """slots: one for each predicate given. fresh: those that were made for them: old rows lack their bits."""

    slots: tuple[int, ...]
    fresh: tuple[int, ...]


class QueryStem:
    """See the module. Not thread-safe: one engine, one owner. ``errors``, ``generations``: int64, by slot."""

    def __init__(
        self,
        schema: Schema,
        timer: Timer | None = None,
        watch: Stopwatch | None = None,
        capacities: Capacities = USUAL,
    ) -> None:
        self._capacities = capacities
        slots = capacities.first(SLOTS_MIN)
        self.schema = schema
        self.usage = Usage()
        self._watch = watch or Stopwatch()
        self.errors = np.zeros(slots, np.int64)
        self.generations = np.zeros(slots, np.int64)
        self.holders = np.zeros(slots, np.int32)
        self.domains: dict[int, Domain] = {}
        self.store = RegionStore(capacities)
        self.dense = DenseFilters(self.store)
        self.selective = SelectiveIndex(len(schema) + len(MADE), self.store)
        self.sample = BatchSample(self.domains)
        self.residuals = ResidualSet()
        self._routing = Routing(schema, self.store, self.dense, self.selective, self.residuals)
        self._routing.eddy.timer = timer
        self._prints = np.zeros(slots, np.int64)
        self._shared = SharedPredicates(capacities)
        self._with_residuals: dict[ex.Expression, int] = {}
        self._predicate_of: dict[int, ex.Expression] = {}
        self._slots_used = 0
        self._free: list[int] = []
        self._epochs = [Cohorts(0, np.full(slots, SELECTIVE, np.int32))]
        self._withheld: list[int] = []
        self._revised = 0
        self._unseen = 0
        self._waiting: Counter[tuple[int, bool]] = Counter()
        self._seals = 0

    @property
    def eddy(self) -> Eddy:
        """What routes new rows."""
        return self._routing.eddy

    @property
    def words(self) -> int:
        """How many word columns the dense cohort takes."""
        return self.dense.words

    @property
    def cohorts(self) -> Cohorts:
        """Where matches of each slot are kept from now on."""
        return self._epochs[-1]

    # --- build ------------------------------------------------------------------------------------

    def add(self, predicates: Sequence[ex.Expression | Factors]) -> Added:
        """Put predicates in, those without residuals perhaps taken apart already. O(predicates), and what
        their constants cost the indexes.
        """
        taken = [
            predicate if isinstance(predicate, Factors) else factors(predicate) for predicate in predicates
        ]
        self._name_constants(taken)
        slots: list[int] = []
        fresh: list[int] = []
        rows: list[Row] = []
        counts: list[int] = []
        terms: list[int] = []
        coming: dict[tuple[int, tuple[Row, ...]], int] = {}
        for predicate, each in zip(predicates, taken, strict=True):
            mine = self._rows_of(each)
            meaning = len(each.terms), mine
            fingerprint = hash(meaning)
            if each.residuals and not isinstance(predicate, Factors):
                slot = self._with_residuals.get(predicate)
            else:
                slot = coming.get(meaning)
            if slot is None and not each.residuals:
                slot = self._shared_slot(fingerprint, len(each.terms), mine)
            if slot is not None:
                self.holders[slot] += 1
            else:
                slot = self._take_slot()
                fresh.append(slot)
                rows.extend(mine)
                counts.append(len(mine))
                terms.append(len(each.terms))
                if each.residuals and not isinstance(predicate, Factors):
                    self._with_residuals[predicate] = slot
                    self._predicate_of[slot] = predicate
                    self.residuals.share(slot, each.residuals)
                else:
                    coming[meaning] = slot
                    self._prints[slot] = fingerprint
                    self._shared.add(fingerprint, slot)
            slots.append(slot)
        if fresh:
            self._settle(np.array(fresh, np.int64), counts, terms, Intervals.of(rows))
            self.dense.compile_full()
        return Added(tuple(slots), tuple(fresh))

    def _name_constants(self, taken: Sequence[Factors]) -> None:
        """Let domains know all constants before any is used, since a new one may move others."""
        moved = False
        for each in taken:
            for term in each.terms:
                for index, region in term.items():
                    domain = self.domains.get(index)
                    if domain is None:
                        domain = self.domains[index] = domain_of(
                            self.schema.field(index).type, self._capacities
                        )
                    if isinstance(domain, StringDomain):
                        domain.name(region)
        for index, domain in self.domains.items():
            if isinstance(domain, StringDomain):
                moved |= self._follow(index, domain)
        if moved:
            self.dense.mark_all()
            self.selective.rebuild()

    def _follow(self, index: int, domain: StringDomain) -> bool:
        """Whether the domain's keys moved; the store then holds the new ones."""
        moved = domain.moved()
        self.sample.keys_moved()
        if moved is None:
            return False
        rows = self.store.rows
        mine = np.flatnonzero(rows.attribute[: self.store.used] == index)
        if len(mine):
            rows.low[mine] = moved_bounds(rows.low[mine], *moved)
            last = rows.last[mine]
            inner = last != 2**63 - 1
            rows.last[mine[inner]] = moved_bounds(last[inner] + 1, *moved) - 1
        return True

    def _rows_of(self, each: Factors) -> tuple[Row, ...]:
        rows: list[Row] = []
        for number, term in enumerate(each.terms):
            for index in sorted(term):
                region = term[index]
                flags = NULL_TOO if region.null else 0
                intervals = self.domains[index].intervals(region)
                if not intervals:
                    rows.append((index, number, flags, 1, 0))
                for low, last in intervals:
                    rows.append((index, number, flags, low, last))
                    flags = 0
        return tuple(rows)

    def _shared_slot(self, fingerprint: int, terms: int, rows: tuple[Row, ...]) -> int | None:
        for slot in self._shared.find(fingerprint):
            if self.store.terms[slot] == terms and self.store.is_of(slot, rows):
                return slot
        return None

    def holders_of(self, predicate: ex.Expression, each: Factors) -> int:
        """How many queries hold a predicate that means the same; 0 where there is none. Nothing changes.
        each: the predicate taken apart. O(its constants).
        """
        if each.residuals:
            slot = self._with_residuals.get(predicate)
        else:
            try:
                rows = self._rows_of(each)
            except KeyError:  # an attribute, or a string, that no predicate names
                return 0
            slot = self._shared_slot(hash((len(each.terms), rows)), len(each.terms), rows)
        return 0 if slot is None else int(self.holders[slot])

    def _take_slot(self) -> int:
        if self._free:
            slot = heapq.heappop(self._free)
            self.generations[slot] += 1  # before its matches change: readers of the former owner look again
        else:
            slot = self._slots_used
            self._slots_used += 1
            if slot == len(self.errors):
                self.errors = np.concatenate([self.errors, np.zeros_like(self.errors)])
                self.generations = np.concatenate([self.generations, np.zeros_like(self.generations)])
                self.holders = np.concatenate([self.holders, np.zeros_like(self.holders)])
                self._prints = np.concatenate([self._prints, np.zeros_like(self._prints)])
        self.holders[slot] = 1
        return slot

    def _settle(self, fresh: Int64Array, counts: list[int], terms: list[int], rows: Intervals) -> None:
        """New slots get their rows, their cohort and their place."""
        sizes, alternatives = np.array(counts, np.int64), np.array(terms, np.int64)
        self.errors = self.errors.copy()
        self.errors[fresh] = 0
        self.store.put(fresh, sizes, alternatives, rows)
        choice = self.sample.choose(sizes, alternatives, rows)
        if len(self.sample) < SAMPLE_MIN:
            self._unseen = self._slots_used
        selective = self._worthwhile(choice.share <= SHARE_MAX, choice, sizes, rows)
        places = np.full(len(fresh), SELECTIVE, np.int32)
        for i in np.flatnonzero(~selective).tolist():
            places[i] = self.dense.add(int(fresh[i]))
        for cohorts in self._epochs:
            cohorts.make_room(self._slots_used)
            cohorts.place[fresh] = places
        if selective.any():
            self.store.mark(fresh[selective], choice.ways_in[np.repeat(selective, sizes)])
            self.selective.add(fresh[selective])
        self.residuals.place(fresh.tolist(), self.cohorts.place)

    def _worthwhile(
        self, selective: BoolArray, choice: AccessChoice, sizes: Int64Array, rows: Intervals
    ) -> BoolArray:
        """bool[n]: which of the selective slots have a path that has, or gets, enough of them.

        The others wait in the dense cohort and are called when they are many.
        """
        attribute, point = choice.paths(sizes, rows)
        kept = selective.copy()
        for name in set(zip(attribute[selective].tolist(), point[selective].tolist(), strict=True)):
            mine = selective & (attribute == name[0]) & (point == name[1])
            if name in self.selective.paths or name[0] < 0:
                continue
            self._waiting[name] += int(mine.sum())
            if self._waiting[name] < PATH_MIN:
                kept &= ~mine
            else:
                self._unseen = self._slots_used
        return kept

    def remove(self, slots: Sequence[int]) -> None:
        """One holder of each of these lets go; a slot without holders may be used again."""
        for slot in slots:
            self.holders[slot] -= 1
            if not self.holders[slot]:
                self._take_out(slot)

    def _take_out(self, slot: int) -> None:
        place = self.cohorts.of(slot)
        if place == SELECTIVE:
            self.selective.drop(slot)
        else:
            self.dense.drop(place, int(self.store.count[slot]))
        self.store.drop(slot)
        if self.residuals.drop(slot, self.eddy.forget):
            del self._with_residuals[self._predicate_of.pop(slot)]
        else:
            self._shared.drop(int(self._prints[slot]), slot)
        heapq.heappush(self._free, slot)
        self._sweep_constants()

    def _sweep_constants(self) -> None:
        for index, domain in self.domains.items():
            if domain.wants_sweep and isinstance(domain, StringDomain):
                _, rows = self.store.of(np.flatnonzero(self.holders).astype(np.int64))
                mine = rows.attribute == index
                last = rows.last[mine]
                ends = np.where(last == 2**63 - 1, last, last + 1)
                domain.forget_but(np.unique(np.concatenate([rows.low[mine], ends])).tolist())
                self.sample.keys_moved()

    # --- probe ------------------------------------------------------------------------------------

    def match(self, rows: Batch, out: BitTarget, start: int) -> RowSlots:
        """Match new rows (at most MATCHED_ROWS_MAX) with all queries.

        Writes the dense cohort's bits of rows start .. start+n of out, and returns the selective one's pairs.
        Rows whose predicate ends as an error are counted.
        """
        with self._watch.on(self.usage):
            self.sample.observe(rows)
            batch = BatchKeys(rows, self.domains)
            pairs, errors = self._routing.match(rows, batch, self.cohorts.place, out, start)
            self.count_errors(errors)
        self.usage.rows_in += len(rows)
        return pairs

    def count_errors(self, counts: dict[int, int]) -> None:
        """Add to the errors by slot; arrays that views hold stay as they are."""
        if counts:
            self.errors = self.errors.copy()
            for slot, count in counts.items():
                self.errors[slot] += count

    def probe(self, slots: Collection[int], cohorts: Cohorts) -> NewQueries:
        """The queries of those of these slots that stand, to be applied to rows that are there. cohorts: of
        those rows.
        """
        mine = [slot for slot in slots if self.holders[slot]]
        modules = {m.name: m for slot in mine for m in self.residuals.of(slot)}
        return NewQueries(
            self.store,
            self.domains,
            cohorts.place,
            mine,
            list(modules.values()),
            self.eddy.aside() if modules else self.eddy,
            self.count_errors,
            self.holders > 0,
        )

    def may_err(self, slot: int) -> bool:
        """Whether a slot's predicate may end as an error."""
        return bool(self.residuals.of(slot))

    # --- revision ---------------------------------------------------------------------------------

    def revise(self, oldest_epoch: int) -> None:
        """Change the cohort of some slots between two segments, as the rows that came suggest.

        Slots that came before there was a sample to measure them by are looked at first, then all in turn,
        seldom. oldest_epoch: of the segments that are kept. O(REVISED_SLOTS * log sample).
        """
        self._seals += 1
        self._epochs = [held for held in self._epochs if held.epoch >= oldest_epoch or held is self.cohorts]
        if len(self._epochs) == 1:
            for place in self._withheld:
                self.dense.release(place)
            self._withheld.clear()
        due = self._unseen > 0 or self._seals % REVISED_EVERY == 0
        if due and len(self.sample) >= SAMPLE_MIN and len(self._epochs) < EPOCHS_MAX:
            first = self._revised if self._revised < self._slots_used else 0
            self._revised = first + REVISED_SLOTS
            self._unseen = max(0, self._unseen - REVISED_SLOTS)
            if not self._unseen:
                self._waiting.clear()
            held = self.holders[first : min(self._revised, self._slots_used)]
            self._move(first + np.flatnonzero(held).astype(np.int64))
        self.dense.trim()

    def _move(self, slots: Int64Array) -> None:
        if not len(slots):
            return
        sizes = self.store.count[slots].astype(np.int64)
        _, rows = self.store.of(slots)
        choice = self.sample.choose(sizes, self.store.terms[slots].astype(np.int64), rows)
        sparse = self.cohorts.place[slots] == SELECTIVE
        leave = sparse & (choice.share > REVISION_GAIN * SHARE_MAX)
        enter = ~sparse & (choice.share * REVISION_GAIN < SHARE_MAX)
        attribute, point = choice.paths(sizes, rows)
        for name in set(zip(attribute[enter].tolist(), point[enter].tolist(), strict=True)):
            mine = enter & (attribute == name[0]) & (point == name[1])
            if name not in self.selective.paths and max(self._waiting[name], mine.sum()) < PATH_MIN:
                enter &= ~mine
        if not leave.any() and not enter.any():
            return
        before = self.cohorts
        now = Cohorts(before.epoch + 1, before.place.copy())
        for slot in slots[leave].tolist():
            self.selective.drop(slot)
            now.place[slot] = self.dense.add(slot)
        for slot in slots[enter].tolist():
            place = int(before.place[slot])
            self.dense.drop(place, int(self.store.count[slot]), free=False)
            self._withheld.append(place)
            now.place[slot] = SELECTIVE
        self.store.mark(slots[enter], choice.ways_in[np.repeat(enter, sizes)])
        self.selective.add(slots[enter])
        self._epochs.append(now)
        moved = slots[enter | leave].tolist()
        self.residuals.place(moved, now.place)

    # --- what can be read -------------------------------------------------------------------------

    def explain(self, slot: int) -> dict[str, Any]:
        """How a slot's predicate is served, and what that costs."""
        return facts_of(self, slot, self.residuals.of(slot))

    def statistics(self) -> tuple[ModuleStatistics, ...]:
        """Statistics of the modules that rows go through."""
        return self._routing.statistics()

    def nbytes(self) -> int:
        """Bytes of all that is kept of predicates, but for residuals and strings."""
        arrays: list[npt.NDArray[Any]] = [self.errors, self.generations, self.holders, self._prints]
        arrays += [held.place for held in self._epochs]
        parts = self.store.nbytes() + self.dense.nbytes() + self.selective.nbytes() + self._shared.nbytes()
        return sum(array.nbytes for array in arrays) + parts

    def attributes(self) -> tuple[Attribute, ...]:
        """What can be read of this module, and set."""
        return (
            Attribute("predicates", self._slots_used - len(self._free), "distinct standing predicates"),
            Attribute("slots", self._slots_used, "query slots ever used at once"),
            Attribute("dense", self.dense.count, "predicates with a bit for every row"),
            Attribute("selective", self.selective.count, "predicates reached from the rows' keys"),
            Attribute("words", self.words, "words of bits a row takes"),
            Attribute("access_paths", len(self.selective.paths), "indexes of the selective predicates"),
            Attribute("index_bytes", self.nbytes(), "bytes of all indexes"),
            Attribute("residual_predicates", len(self.residuals), "distinct predicates outside the index"),
            Attribute("compilations", self.dense.compilations, "blocks of grouped filters compiled"),
            *self.eddy.attributes(),
        )

    def _check(self) -> None:
        standing = set(np.flatnonzero(self.holders[: self._slots_used]).tolist())
        assert sorted([*standing, *self._free]) == list(range(self._slots_used))
        assert (self.holders >= 0).all()
        self.store._check()
        assert set(np.flatnonzero(self.store.terms).tolist()) <= standing
        assert set(np.flatnonzero(self.store.count).tolist()) <= standing
        place = self.cohorts.place
        dense = {slot for slot in standing if place[slot] != SELECTIVE}
        self.dense._check()
        assert all(self.dense.slot_at[place[slot]] == slot for slot in dense)
        assert self.dense.count == len(dense)
        self.selective._check(standing - dense, self.domains)
        shared = self._shared.slots()
        with_residuals = set(self.residuals.slots())
        assert shared == sorted(standing - with_residuals)
        assert len(self._shared) == len(shared)
        assert with_residuals <= standing
        assert with_residuals == self._predicate_of.keys()
        assert self._with_residuals == {one: slot for slot, one in self._predicate_of.items()}
        self.residuals._check(dense)
        for domain in self.domains.values():
            if isinstance(domain, StringDomain):
                domain._check()

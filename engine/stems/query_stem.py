"""The Query SteM of a stream: the predicates of all standing queries over it, as one index that a row meets
once.

A predicate lives in a *slot*: bit (slot & 63) of word (slot >> 6) of every match column. Slots are reused,
lowest first; the generation tells owners of one slot apart. A predicate is split at its top-level
ANDs: what speaks of one attribute goes to that attribute's grouped filter, the rest to shared residuals.
Equal predicates share a slot, counted, and with it their matches and their count of errors.

Build then probe: a predicate is put in (build) and then applied to the rows that are there (probe), while new
rows are matched with the predicates that are there, so that each pair meets once (PSoup section 3).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engine.eddy.eddy import Eddy, MostSelective
from engine.eddy.flight import Flight
from engine.kernels import bitmaps
from engine.language import expressions as ex
from engine.model.attributes import Attribute
from engine.model.batch import Batch
from engine.model.source import Schema
from engine.stems.grouped_filter import AttributeFilter, CompiledFilters
from engine.stems.regions import Region, intersect, region_of
from engine.stems.residual import ResidualPredicate
from engine.stems.zone import Zone


@dataclass(frozen=True, slots=True)
class Added:
    """slots: one for each predicate given. fresh: those that were made for them: old rows lack their bits."""

    slots: tuple[int, ...]
    fresh: tuple[int, ...]


@dataclass(slots=True)
class _Owned:
    """What a slot holds, and how many hold it."""

    predicate: ex.Expression
    attributes: tuple[int, ...]
    residuals: tuple[ex.Expression, ...]
    holders: int = 1


@dataclass(slots=True)
class _Split:
    """A predicate as the filters take it."""

    regions: dict[int, tuple[ex.Column, Region]] = field(default_factory=dict)
    residuals: list[ex.Expression] = field(default_factory=list)


def split(predicate: ex.Expression | None) -> _Split:
    """Top-level conjuncts: regions by attribute, and the others."""
    parts = _Split()
    pending = [] if predicate is None else [predicate]
    while pending:
        conjunct = pending.pop()
        if isinstance(conjunct, ex.And):
            pending.extend(reversed(conjunct.operands))
            continue
        if isinstance(conjunct, ex.Literal) and conjunct.value is True:
            continue
        found = region_of(conjunct)
        if found is None:
            parts.residuals.append(conjunct)
            continue
        column, region = found
        held = parts.regions.get(column.index)
        parts.regions[column.index] = (column, region if held is None else intersect(held[1], region))
    return parts


class QueryStem:
    """See the module. Not thread-safe: one engine, one owner."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.errors = np.zeros(64, np.int64)
        self.generations = np.zeros(64, np.int64)
        self.eddy = Eddy(MostSelective())
        self._owned: dict[int, _Owned] = {}
        self._shared: dict[ex.Expression, int] = {}
        self._live = np.zeros(1, np.uint64)
        self._slots_used = 0
        self._free: list[int] = []
        self._filters: dict[int, AttributeFilter] = {}
        self._residuals: dict[ex.Expression, ResidualPredicate] = {}
        self._residual_names = 0
        self._compiled: CompiledFilters | None = None
        self.compilations = 0

    @property
    def words(self) -> int:
        """How many word columns the slots so far take."""
        return (self._slots_used + 63) >> 6

    # --- build ------------------------------------------------------------------------------------

    def add(self, predicates: Sequence[ex.Expression]) -> Added:
        """Put predicates in. O(predicates)."""
        slots, fresh = [], []
        for predicate in predicates:
            slot = self._shared.get(predicate)
            if slot is not None:
                self._owned[slot].holders += 1
            else:
                slot = self._put(predicate)
                fresh.append(slot)
            slots.append(slot)
        self.errors = self.errors.copy()
        self.errors[fresh] = 0
        if fresh:
            self._compiled = None
        return Added(tuple(slots), tuple(fresh))

    def _put(self, predicate: ex.Expression) -> int:
        slot = self._used_slot() if self._free else self._new_slot()
        parts = split(predicate)
        self._owned[slot] = _Owned(predicate, tuple(parts.regions), tuple(parts.residuals))
        self._shared[predicate] = slot
        self._live[slot >> 6] |= np.uint64(1 << (slot & 63))
        for index, (column, region) in parts.regions.items():
            if index not in self._filters:
                self._filters[index] = AttributeFilter(index, column.type)
            self._filters[index].put(slot, region)
        for residual in parts.residuals:
            self._share(residual, slot)
        return slot

    def _used_slot(self) -> int:
        slot = heapq.heappop(self._free)
        self.generations[slot] += 1  # before its bits change: readers of the former owner look again
        return slot

    def _new_slot(self) -> int:
        slot = self._slots_used
        self._slots_used += 1
        if slot == len(self.errors):
            self.errors = np.concatenate([self.errors, np.zeros_like(self.errors)])
            self.generations = np.concatenate([self.generations, np.zeros_like(self.generations)])
        if slot >> 6 >= len(self._live):
            self._live = np.concatenate([self._live, np.zeros_like(self._live)])
        return slot

    def _share(self, predicate: ex.Expression, slot: int) -> None:
        module = self._residuals.get(predicate)
        if module is None:
            self._residual_names += 1
            module = ResidualPredicate(f"residual-{self._residual_names}", predicate)
            self._residuals[predicate] = module
        module.slots.add(slot)

    def remove(self, slots: Sequence[int]) -> None:
        """One holder of each of these lets go; a slot without holders may be used again."""
        for slot in slots:
            owned = self._owned[slot]
            owned.holders -= 1
            if not owned.holders:
                del self._owned[slot]
                self._shared.pop(owned.predicate, None)
                self._take_out(slot, owned)

    def _take_out(self, slot: int, owned: _Owned) -> None:
        self._live[slot >> 6] &= np.uint64(~(1 << (slot & 63)) & (2**64 - 1))
        heapq.heappush(self._free, slot)
        for index in owned.attributes:
            self._filters[index].drop(slot)
            if not len(self._filters[index]):
                del self._filters[index]
                self._compiled = None
        for predicate in dict.fromkeys(owned.residuals):
            module = self._residuals[predicate]
            module.slots.discard(slot)
            if not module.slots:
                del self._residuals[predicate]
                self.eddy.policy.forget(module.name)

    # --- probe ------------------------------------------------------------------------------------

    def match(self, rows: Batch, out: bitmaps.Words, start: int) -> None:
        """Match new rows with all queries: write columns start .. start+n of out.

        out: uint64[>= words, >= start + n]. Rows whose predicate ends as an error are counted.
        """
        if self._compiled is None:
            self._compiled = self._compile(range(self.words))
        self._compiled.apply(rows, out, start)
        self._finish(rows, out[: self.words, start : start + len(rows)], list(self._residuals.values()))

    def _finish(self, rows: Batch, wanted: bitmaps.Words, modules: Sequence[ResidualPredicate]) -> None:
        if not modules:
            return
        flight = Flight(rows, wanted)
        self.eddy.route(flight, modules)
        self.count_errors(flight.settle_errors())

    def count_errors(self, counts: dict[int, int]) -> None:
        """Add to the errors by slot; arrays that views hold stay as they are."""
        if counts:
            self.errors = self.errors.copy()
            for slot, count in counts.items():
                self.errors[slot] += count

    def probe(self, slots: Sequence[int]) -> NewQueries:
        """These slots alone, to be applied to the rows that are there."""
        return NewQueries(self, slots)

    def explain(self, slot: int) -> dict[str, Any]:
        """How a slot's predicate is served."""
        owned = self._owned[slot]
        return {
            "holders": owned.holders,
            "grouped_filters": [self.schema.fields[index].name for index in owned.attributes],
            "residual_modules": [self._residuals[predicate].name for predicate in owned.residuals],
        }

    def _compile(self, words: Sequence[int], live: bitmaps.Words | None = None) -> CompiledFilters:
        self.compilations += 1
        word_of = {word: place for place, word in enumerate(words)}
        compiled = [f.compile(word_of, len(words)) for f in self._filters.values()]
        held = self._live[: self.words] if live is None else live
        return CompiledFilters([c for c in compiled if c is not None], held)

    def attributes(self) -> tuple[Attribute, ...]:
        """What can be read of this module, and set."""
        return (
            Attribute("predicates", len(self._owned), "distinct standing predicates"),
            Attribute("slots", self._slots_used, "query slots ever used at once"),
            Attribute("grouped_filters", len(self._filters), "columns with an index over constants"),
            Attribute("residual_predicates", len(self._residuals), "distinct predicates outside the index"),
            Attribute("compilations", self.compilations, "how often the index was made anew"),
            *self.eddy.attributes(),
        )

    def _check(self) -> None:
        slots = list(self._owned)
        assert sorted(slots + self._free) == list(range(self._slots_used))
        assert all(owned.holders > 0 for owned in self._owned.values())
        assert all(self._owned[slot].predicate == predicate for predicate, slot in self._shared.items())
        for slot in range(self._slots_used):
            live = bool(int(self._live[slot >> 6]) >> (slot & 63) & 1)
            assert live == (slot in set(slots))
        for held in self._filters.values():
            assert held.regions.keys() <= set(slots)
            assert len(held)
            for region in held.regions.values():
                region._check()
        for module in self._residuals.values():
            assert module.slots
            assert module.slots <= set(slots)


class NewQueries:
    """Queries that just came, compiled apart, so that only their words are computed over old rows."""

    def __init__(self, stem: QueryStem, slots: Sequence[int]) -> None:
        self._stem = stem
        masks: dict[int, int] = {}
        for slot in slots:
            masks[slot >> 6] = masks.get(slot >> 6, 0) | (1 << (slot & 63))
        self.words = sorted(masks)
        """The words that hold a new query, ascending."""
        self.masks = np.array([masks[w] for w in self.words], np.uint64)
        self._compiled = stem._compile(self.words, self.masks)
        new_slots = set(slots)
        place = {word: i for i, word in enumerate(self.words)}
        self._modules = []
        self._slot_of: dict[int, int] = {}
        for module in stem._residuals.values():
            shared = module.slots & new_slots
            if shared:
                here = {(place[slot >> 6] << 6) | (slot & 63): slot for slot in shared}
                self._slot_of.update(here)
                self._modules.append(ResidualPredicate(module.name, module.predicate, set(here)))

    def may_match(self, zones: Sequence[Zone | None]) -> bool:
        """Whether a segment with these zones can hold a row for any of them."""
        return self._compiled.may_match(zones)

    def match(self, rows: Batch) -> bitmaps.Words:
        """uint64[len(words), n]: bits of new queries alone; predicate errors are counted."""
        out = np.empty((len(self.words), len(rows)), np.uint64)
        self._compiled.apply(rows, out, 0)
        if self._modules:
            flight = Flight(rows, out)
            self._stem.eddy.route(flight, self._modules)
            counts = flight.settle_errors()
            self._stem.count_errors({self._slot_of[slot]: count for slot, count in counts.items()})
        return out

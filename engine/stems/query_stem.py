"""The Query SteM of a stream: all standing queries over it, as one index that a row meets once.

A query lives in a *slot*: bit (slot & 63) of word (slot >> 6) of every match column. Slots are reused,
lowest first; the generation tells owners of one slot apart. A query's predicate is split at its top-level
ANDs: what speaks of one attribute goes to that attribute's grouped filter, the rest to shared residuals.

Build then probe: a query is put in (build) and then applied to the rows that are there (probe), while new
rows are matched with the queries that are there, so that each pair meets once (PSoup section 3).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.eddy.eddy import Eddy, MostSelective
from engine.eddy.flight import Flight
from engine.kernels import bitmaps
from engine.language import expressions as ex
from engine.language.query import Selection
from engine.model.attributes import Attribute
from engine.model.batch import Batch
from engine.model.source import Schema
from engine.model.step import Position, Registration
from engine.stems.grouped_filter import AttributeFilter, CompiledFilters
from engine.stems.regions import Region, intersect, region_of
from engine.stems.residual import ResidualPredicate
from engine.stems.zone import Zone


@dataclass(frozen=True, slots=True)
class StandingQuery:
    """A registered query and where its matches are."""

    registration: Registration
    selection: Selection
    born: Position
    slot: int
    generation: int
    attributes: tuple[int, ...]
    residuals: tuple[ex.Expression, ...]

    @property
    def query_id(self) -> str:
        return self.registration.query_id


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
        self.queries: dict[str, StandingQuery] = {}
        self.errors = np.zeros(64, np.int64)
        self.generations = np.zeros(64, np.int64)
        self.eddy = Eddy(MostSelective())
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

    def add(self, queries: Sequence[tuple[Registration, Selection]], born: Position) -> list[StandingQuery]:
        """Put queries in. Their ids must be new. O(predicates)."""
        added = []
        for registration, selection in queries:
            slot = self._used_slot() if self._free else self._new_slot()
            parts = split(selection.predicate)
            query = StandingQuery(
                registration,
                selection,
                born,
                slot,
                int(self.generations[slot]),
                tuple(parts.regions),
                tuple(parts.residuals),
            )
            self.queries[registration.query_id] = query
            self._live[slot >> 6] |= np.uint64(1 << (slot & 63))
            for index, (column, region) in parts.regions.items():
                if index not in self._filters:
                    self._filters[index] = AttributeFilter(index, column.type)
                self._filters[index].put(slot, region)
            for predicate in parts.residuals:
                self._share(predicate, slot)
            added.append(query)
        self.errors = self.errors.copy()
        self.errors[[query.slot for query in added]] = 0
        self._compiled = None
        return added

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

    def remove(self, query_id: str) -> StandingQuery | None:
        """Take a query out; its slot may be used again. O(log slots + its predicates)."""
        query = self.queries.pop(query_id, None)
        if query is None:
            return None
        slot = query.slot
        self._live[slot >> 6] &= np.uint64(~(1 << (slot & 63)) & (2**64 - 1))
        heapq.heappush(self._free, slot)
        for index in query.attributes:
            self._filters[index].drop(slot)
            if not len(self._filters[index]):
                del self._filters[index]
                self._compiled = None
        for predicate in dict.fromkeys(query.residuals):
            module = self._residuals[predicate]
            module.slots.discard(slot)
            if not module.slots:
                del self._residuals[predicate]
                self.eddy.policy.forget(module.name)
        return query

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

    def probe(self, added: Sequence[StandingQuery]) -> NewQueries:
        """These queries alone, to be applied to the rows that are there."""
        return NewQueries(self, added)

    def _compile(self, words: Sequence[int], live: bitmaps.Words | None = None) -> CompiledFilters:
        self.compilations += 1
        word_of = {word: place for place, word in enumerate(words)}
        compiled = [f.compile(word_of, len(words)) for f in self._filters.values()]
        held = self._live[: self.words] if live is None else live
        return CompiledFilters([c for c in compiled if c is not None], held)

    def attributes(self) -> tuple[Attribute, ...]:
        """What can be read of this module, and set."""
        return (
            Attribute("queries", len(self.queries), "standing queries"),
            Attribute("slots", self._slots_used, "query slots ever used at once"),
            Attribute("grouped_filters", len(self._filters), "columns with an index over constants"),
            Attribute("residual_predicates", len(self._residuals), "distinct predicates outside the index"),
            Attribute("compilations", self.compilations, "how often the index was made anew"),
            *self.eddy.attributes(),
        )

    def _check(self) -> None:
        slots = [query.slot for query in self.queries.values()]
        assert len(set(slots)) == len(slots)
        assert sorted(slots + self._free) == list(range(self._slots_used))
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

    def __init__(self, stem: QueryStem, added: Sequence[StandingQuery]) -> None:
        self._stem = stem
        masks: dict[int, int] = {}
        for query in added:
            masks[query.slot >> 6] = masks.get(query.slot >> 6, 0) | (1 << (query.slot & 63))
        self.words = sorted(masks)
        """The words that hold a new query, ascending."""
        self.masks = np.array([masks[w] for w in self.words], np.uint64)
        self._compiled = stem._compile(self.words, self.masks)
        new_slots = {query.slot for query in added}
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

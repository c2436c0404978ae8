"""The attributes that standing predicates name, and the regions of the predicates as intervals of their keys.

The keys of strings move when constants come between those that are there (:mod:`engine.domains.domain`): then
the intervals that are stored move along.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.domains.domain import Domain, StringDomain, domain_of, moved_bounds
from engine.model.capacities import USUAL, Capacities
from engine.model.source import Schema
from engine.stems.factors import Factors
from engine.stems.predicate_slots import PredicateSlots
from engine.stems.region_store import NULL_TOO, RegionStore, Row
from engine.stems.selectivity import BatchSample


class PredicateDomains:
    """``by_index``: by the place of an attribute. ``sample``: of rows, by their keys."""

    def __init__(self, schema: Schema, store: RegionStore, capacities: Capacities = USUAL) -> None:
        self.schema = schema
        self._store = store
        self._capacities = capacities
        self.by_index: dict[int, Domain] = {}
        self.sample = BatchSample(self.by_index)

    def name(self, coming: Sequence[Factors]) -> bool:
        """Let domains know all constants before any is used, since a new one may move others. Returns whether
        keys moved; the store then holds the new ones.
        """
        moved = False
        for each in coming:
            for term in each.terms:
                for index, region in term.items():
                    domain = self.by_index.get(index)
                    if domain is None:
                        made = domain_of(self.schema.field(index).type, self._capacities)
                        domain = self.by_index[index] = made
                    if isinstance(domain, StringDomain):
                        domain.name(region)
        for index, domain in self.by_index.items():
            if isinstance(domain, StringDomain):
                moved |= self._follow(index, domain)
        return moved

    def _follow(self, index: int, domain: StringDomain) -> bool:
        """Whether the domain's keys moved."""
        moved = domain.moved()
        self.sample.keys_moved()
        if moved is None:
            return False
        rows = self._store.rows
        mine = np.flatnonzero(rows.attribute[: self._store.used] == index)
        if len(mine):
            rows.low[mine] = moved_bounds(rows.low[mine], *moved)
            last = rows.last[mine]
            inner = last != 2**63 - 1
            rows.last[mine[inner]] = moved_bounds(last[inner] + 1, *moved) - 1
        return True

    def rows_of(self, each: Factors) -> tuple[Row, ...]:
        """The intervals of a predicate's terms. Raises KeyError for an attribute, or a string, that no
        predicate names.
        """
        rows: list[Row] = []
        for number, term in enumerate(each.terms):
            for index in sorted(term):
                region = term[index]
                flags = NULL_TOO if region.null else 0
                intervals = self.by_index[index].intervals(region)
                if not intervals:
                    rows.append((index, number, flags, 1, 0))
                for low, last in intervals:
                    rows.append((index, number, flags, low, last))
                    flags = 0
        return tuple(rows)

    def sweep(self, slots: PredicateSlots) -> None:
        """Forget constants that are in no predicate any more, where they are many."""
        for index, domain in self.by_index.items():
            if domain.wants_sweep and isinstance(domain, StringDomain):
                _, rows = self._store.of(slots.held(0, slots.used))
                mine = rows.attribute == index
                last = rows.last[mine]
                ends = np.where(last == 2**63 - 1, last, last + 1)
                domain.forget_but(np.unique(np.concatenate([rows.low[mine], ends])).tolist())
                self.sample.keys_moved()

    def _check(self) -> None:
        for domain in self.by_index.values():
            if isinstance(domain, StringDomain):
                domain._check()

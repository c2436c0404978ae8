"""Matching apart from the data: which standing queries would a row satisfy.

A matcher is a Query SteM of its own over the predicates of one stream's queries, whatever their maintenance,
so that asking never waits for the engine nor delays it, and counts no errors there. It follows a view: only
what came and went since the last one is put in and taken out.

A query is satisfied where the predicate of its scan is TRUE; windows, and what it does above the scan, do not
count. Paused queries are passed over.

Cost: O(queries that came and went), building their trees, tens of microseconds each; then one pass of the
Query SteM, as for the same rows of the stream, and O(queries told). Memory: another index over the
predicates, and about 200 bytes a query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np

from engine.model.batch import Batch
from engine.model.source import SourceName
from engine.model.step import Registration
from engine.standing import StandingQuery
from engine.stems.query_stem import QueryStem


@dataclass(frozen=True, slots=True)
class Satisfied:
    """The queries that a row satisfies: how many, and the ids of some of them."""

    query_ids: tuple[str, ...]
    total: int


class Matcher:
    """Of one stream; one caller at a time."""

    def __init__(self, source: SourceName, stem: QueryStem) -> None:
        """``stem``: empty, and this matcher's alone."""
        self._source = source
        self._stem = stem
        self._seen: Mapping[str, StandingQuery] = {}
        self._known: dict[str, tuple[Registration, int | None]] = {}
        self._holders: dict[int, dict[str, None]] = {}
        self._everything: dict[str, None] = {}

    def follow(self, queries: Mapping[str, StandingQuery]) -> None:
        """Match these from now on; a mapping never changes after it was given."""
        if queries is self._seen:
            return
        wanted = {
            query_id: query
            for query_id, query in queries.items()
            if query.source == self._source and not query.paused
        }
        gone = [
            query_id
            for query_id, (registration, _) in self._known.items()
            if query_id not in wanted or wanted[query_id].registration is not registration
        ]
        self._take_out(gone)
        self._put_in([query for query_id, query in wanted.items() if query_id not in self._known])
        self._seen = queries

    def _take_out(self, query_ids: list[str]) -> None:
        slots = []
        for query_id in query_ids:
            _, slot = self._known.pop(query_id)
            if slot is None:
                del self._everything[query_id]
                continue
            slots.append(slot)
            del self._holders[slot][query_id]
            if not self._holders[slot]:
                del self._holders[slot]
        self._stem.remove(slots)

    def _put_in(self, queries: list[StandingQuery]) -> None:
        predicates = [query.query.scan.predicate for query in queries]
        slots = iter(self._stem.add([one for one in predicates if one is not None]).slots)
        for query, predicate in zip(queries, predicates, strict=True):
            slot = None if predicate is None else next(slots)
            self._known[query.query_id] = (query.registration, slot)
            holders = self._everything if slot is None else self._holders.setdefault(slot, {})
            holders[query.query_id] = None

    def match(self, rows: Batch, ids_max: int) -> list[Satisfied]:
        """For each row what it satisfies; at most ``ids_max`` ids each."""
        out = np.zeros((self._stem.words, len(rows)), np.uint64)
        if len(rows) and self._stem.words:
            self._stem.match(rows, out, 0)
        bits = np.unpackbits(out.T.copy().view(np.uint8), axis=1, bitorder="little")
        found = []
        for row in range(len(rows)):
            slots = np.flatnonzero(bits[row]).tolist()
            total = len(self._everything) + sum(len(self._holders[slot]) for slot in slots)
            found.append(Satisfied(tuple(islice(self._ids(slots), ids_max)), total))
        return found

    def _ids(self, slots: list[int]) -> Iterator[str]:
        yield from self._everything
        for slot in slots:
            yield from self._holders[slot]

    def _check(self) -> None:
        self._stem._check()
        held = {query_id for holders in self._holders.values() for query_id in holders}
        assert held.isdisjoint(self._everything)
        assert held | self._everything.keys() == self._known.keys()
        assert all(self._holders.values())

"""The standing queries by id, and what views show of them.

A map in parts by the hash of the key. :meth:`StandingQueries.shown` gives what is there for good: it shares
the parts, and a part is copied when it is changed the next time. So a registration among a million queries
costs a copy of some hundreds of them, not of all.

Both go through their keys in the order in which these came, as a dictionary does.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, MutableMapping
from itertools import chain

from engine.standing.query import StandingQuery

PARTS = 4_096


class QueryMapPart:
    """A part of the map. queries: by id, in the order in which they came; arrivals: the number of each."""

    __slots__ = ("arrivals", "queries")

    def __init__(self, queries: dict[str, StandingQuery], arrivals: array[int]) -> None:
        self.queries = queries
        self.arrivals = arrivals

    def copy(self) -> QueryMapPart:
        """O(queries)."""
        return QueryMapPart(self.queries.copy(), self.arrivals[:])

    def remove(self, query_id: str) -> None:
        """O(queries)."""
        del self.arrivals[list(self.queries).index(query_id)]
        del self.queries[query_id]


class ShownQueries(Mapping[str, StandingQuery]):
    """Queries as they stood. Look-ups cost O(1), iteration in order O(queries * log queries)."""

    __slots__ = ("_count", "_parts")

    def __init__(self, parts: list[QueryMapPart], count: int) -> None:
        """parts: PARTS of them, which nobody changes any more."""
        self._parts = parts
        self._count = count

    def __getitem__(self, query_id: str) -> StandingQuery:
        return self._parts[hash(query_id) % PARTS].queries[query_id]

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        there = chain.from_iterable(zip(part.arrivals, part.queries, strict=True) for part in self._parts)
        return (name for _, name in sorted(there))

    def changed_since(self, before: ShownQueries | None) -> Iterator[StandingQuery]:
        """The queries that may be others than they were, and some that are not; before: None for all. It
        tells nothing of queries that went. O(parts + queries of parts that were changed).
        """
        if before is None:
            yield from self.in_any_order()
            return
        for part, was in zip(self._parts, before._parts, strict=True):
            if part is not was:
                yield from part.queries.values()

    def in_any_order(self) -> Iterator[StandingQuery]:
        """All queries. O(queries)."""
        return (query for part in self._parts for query in part.queries.values())


class StandingQueries(MutableMapping[str, StandingQuery]):
    """The queries that come and go. A key that is set again keeps its place."""

    def __init__(self) -> None:
        self._parts: list[QueryMapPart] = [QueryMapPart({}, array("q"))] * PARTS
        self._own: set[int] = set()
        """Parts that no view shows."""
        self._count = 0
        self._arrivals = 0
        self._shown: ShownQueries | None = None

    def shown(self) -> ShownQueries:
        """What is there now; the same object until something changes. O(parts)."""
        if self._shown is None:
            self._shown = ShownQueries(self._parts.copy(), self._count)
            self._own.clear()
        return self._shown

    def __getitem__(self, query_id: str) -> StandingQuery:
        return self._parts[hash(query_id) % PARTS].queries[query_id]

    def __setitem__(self, query_id: str, query: StandingQuery) -> None:
        part = self._changing(query_id)
        if query_id not in part.queries:
            self._count += 1
            self._arrivals += 1
            part.arrivals.append(self._arrivals)
        part.queries[query_id] = query

    def __delitem__(self, query_id: str) -> None:
        if query_id not in self:
            raise KeyError(query_id)
        self._changing(query_id).remove(query_id)
        self._count -= 1

    def _changing(self, query_id: str) -> QueryMapPart:
        number = hash(query_id) % PARTS
        if number not in self._own:
            self._own.add(number)
            self._parts[number] = self._parts[number].copy()
        self._shown = None
        return self._parts[number]

    def __contains__(self, query_id: object) -> bool:
        return query_id in self._parts[hash(query_id) % PARTS].queries

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        return iter(self.shown())

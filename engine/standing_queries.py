"""The standing queries by id, and what views show of them.

A map in parts by the hash of the key. :meth:`StandingQueries.shown` gives what is there for good: it shares
the parts, and a part is copied when it is changed the next time. So a registration among a million queries
costs a copy of a thousandth of them, not of all.

Both go through their keys in the order in which these came, as a dictionary does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from itertools import chain

from engine.standing import StandingQuery

PARTS = 1_024

Part = dict[str, tuple[int, StandingQuery]]
"""By id the number of the arrival, and the query."""


class ShownQueries(Mapping[str, StandingQuery]):
    """Queries as they stood. Look-ups cost O(1), iteration in order O(queries * log parts)."""

    __slots__ = ("_count", "_parts")

    def __init__(self, parts: list[Part], count: int) -> None:
        """parts: PARTS of them, which nobody changes any more."""
        self._parts = parts
        self._count = count

    def __getitem__(self, query_id: str) -> StandingQuery:
        return self._parts[hash(query_id) % PARTS][query_id][1]

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        there = chain.from_iterable(part.items() for part in self._parts)
        return (name for name, _ in sorted(there, key=_arrival))

    def in_any_order(self) -> Iterator[StandingQuery]:
        """All queries. O(queries)."""
        return (query for part in self._parts for _, query in part.values())


class StandingQueries(MutableMapping[str, StandingQuery]):
    """The queries that come and go. A key that is set again keeps its place."""

    def __init__(self) -> None:
        self._parts: list[Part] = [{}] * PARTS
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
        return self._parts[hash(query_id) % PARTS][query_id][1]

    def __setitem__(self, query_id: str, query: StandingQuery) -> None:
        part = self._changing(query_id)
        before = part.get(query_id)
        if before is None:
            self._count += 1
            self._arrivals += 1
        part[query_id] = self._arrivals if before is None else before[0], query

    def __delitem__(self, query_id: str) -> None:
        if query_id not in self:
            raise KeyError(query_id)
        del self._changing(query_id)[query_id]
        self._count -= 1

    def _changing(self, query_id: str) -> Part:
        number = hash(query_id) % PARTS
        if number not in self._own:
            self._own.add(number)
            self._parts[number] = self._parts[number].copy()
        self._shown = None
        return self._parts[number]

    def __contains__(self, query_id: object) -> bool:
        return query_id in self._parts[hash(query_id) % PARTS]

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        return iter(self.shown())


def _arrival(entry: tuple[str, tuple[int, StandingQuery]]) -> int:
    return entry[1][0]

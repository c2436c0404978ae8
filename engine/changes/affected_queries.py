"""Which of many followed queries a step may concern, found in one pass for all that scan alike.

A query is affected where a row that may come into one of its scans in the interval, or leave it, satisfies
that scan's predicate. The others' answers did not change, and are not looked at. Cost: O(rows that came or
went * words) for each kind of scan, a word for 64 predicates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from engine.changes.ranges import affected_ranges
from engine.changes.transition import Transition
from engine.language.query import Query, Scan
from engine.operators.maintained.match_columns import MatchColumns
from engine.standing.query import StandingQuery


class _Slots:
    """Slots that are asked for together. masks: those of each word. holders: the queries of each slot."""

    def __init__(self, slots: Mapping[str, int]) -> None:
        """slots: by query id."""
        self.masks: dict[int, int] = {}
        self.holders: dict[int, list[str]] = {}
        for query_id, slot in slots.items():
            self.masks[slot >> 6] = self.masks.get(slot >> 6, 0) | 1 << (slot & 63)
            self.holders.setdefault(slot, []).append(query_id)
        self.matches = MatchColumns(self.masks)


@dataclass(slots=True)
class _Alike:
    """Queries with a scan of the same source and windows. slots: of the predicate, by query id; those without
    one, or whose matches are not kept, are in ``every``. asked: the slots; None: others came or went.
    """

    scan: Scan
    slots: dict[str, int] = field(default_factory=dict)
    every: set[str] = field(default_factory=set)
    asked: _Slots | None = None


class AffectedQueries:
    """Queries over one set of sources."""

    def __init__(self) -> None:
        self._kinds: dict[Scan, _Alike] = {}
        self._streaming: set[str] = set()
        """Those with streams of subqueries, whose elements come and go when no row of a scan does."""
        self._of: dict[str, list[Scan]] = {}

    def put(self, standing: StandingQuery, query: Query) -> None:
        """A query comes, or keeps its matches elsewhere."""
        query_id = standing.query_id
        self.remove(query_id)
        if query.has_streams:
            self._streaming.add(query_id)
        kinds = self._of[query_id] = []
        for scan in query.scans():
            kind = Scan(scan.source, scan.window, None, scan.assignment, scan.history)
            alike = self._kinds.setdefault(kind, _Alike(kind))
            slot = None if scan.predicate is None else standing.slot_of(scan.source, scan.predicate)
            if slot is None or query_id in alike.slots:  # two such scans in one query: not worth a pass
                alike.every.add(query_id)
            else:
                alike.slots[query_id] = slot
            alike.asked = None
            kinds.append(kind)

    def remove(self, query_id: str) -> None:
        """A query goes; passed over where it is not there."""
        self._streaming.discard(query_id)
        for kind in self._of.pop(query_id, ()):
            alike = self._kinds.get(kind)
            if alike is None:
                continue
            alike.slots.pop(query_id, None)
            alike.every.discard(query_id)
            alike.asked = None
            if not alike.slots and not alike.every:
                del self._kinds[kind]

    def affected(self, transition: Transition) -> set[str]:
        """Every query whose answer changed in the interval, and perhaps others."""
        found = set(self._streaming)
        for alike in self._kinds.values():
            found.update(_affected(alike, transition))
        return found


def _affected(alike: _Alike, transition: Transition) -> Iterable[str]:
    at_source = transition.by_source[alike.scan.source]
    ranges = affected_ranges(alike.scan, transition, at_source)
    if ranges is None:
        return [*alike.slots, *alike.every]
    parts = [part for start, stop in ranges for part in at_source.at.rows.ranges(start, stop)]
    if not parts:
        return ()
    asked = alike.asked = alike.asked or _Slots(alike.slots)
    found, left = set(alike.every), dict(asked.masks)
    for part, first, last in parts:
        for word, column in asked.matches.of(part, first, last).items():
            met = int(np.bitwise_or.reduce(column)) & left[word]
            left[word] ^= met
            for bit in range(met.bit_length()):
                if met >> bit & 1:
                    found.update(asked.holders[word << 6 | bit])
    return found

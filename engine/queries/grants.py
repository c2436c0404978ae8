"""Grants of work: the groups of all sets take turns, by the weights of their queries.

A grant is units, one for a stored row that is visited; a step says how many (DESIGN 2.2). The engine spends
exactly these, or less where nothing is left to do, so that a replay finds the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.queries.promising import Numbered
from engine.queries.source_set import SourceSet
from engine.queries.source_sets import SourceSets


class Grants:
    """One owner, as the engine."""

    def __init__(self, sets: SourceSets) -> None:
        self._sets = sets

    def spend(self, units: int) -> tuple[int, list[SourceSet]]:
        """Spend a grant; (units used, sets of which groups used some). O(groups, and what they do)."""
        used, moved = 0, list[SourceSet]()
        for over, numbered in self._in_order():
            group = numbered.group
            if used == units or group is None or not group.left:
                continue
            spent = group.spend(units - used, over.stands())
            if spent:
                used += spent
                over.spent(numbered)
                moved.append(over)
        return used, moved

    def _in_order(self) -> list[tuple[SourceSet, Numbered]]:
        """All groups with their sets, as they came."""
        pairs = [(over, one) for over in self._sets.preferring() for one in over.promising]
        return sorted(pairs, key=lambda pair: pair[1].number)

    def groups(self) -> Iterator[tuple[SourceSet, Numbered]]:
        """The same, for those who look."""
        yield from self._in_order()

    def work(self) -> int:
        """How many units there is work for at least; 0: for none."""
        return sum(over.promising.work() for over in self._sets.preferring())

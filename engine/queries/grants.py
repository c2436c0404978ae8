"""Grants of work: the groups of all sets take turns, by the weights of their queries.

A grant is units, one for a stored row that is visited; a step says how many (DESIGN 2.2). The engine spends
exactly these, or less where nothing is left to do, so that a replay finds the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from engine.promising.group import PromisingGroup
from engine.promising.turns import Turns
from engine.queries.promising import Numbered
from engine.queries.source_set import SourceSet
from engine.queries.source_sets import SourceSets


@dataclass(frozen=True, slots=True)
class _Taker:
    """A group as turns see it, over the sources of its set as they stand. One that fails has nothing left."""

    over: SourceSet
    numbered: Numbered
    group: PromisingGroup

    @property
    def weight(self) -> float:
        return self.group.weight

    @property
    def left(self) -> bool:
        return self.numbered.group is not None and self._of_group(lambda: int(self.group.left)) > 0

    def spend(self, units: int) -> int:
        return self._of_group(lambda: self.group.spend(units, self.over.now.at))

    def _of_group(self, found: Callable[[], int]) -> int:
        """What the group says; 0 where it fails."""
        try:
            return found()
        except Exception as defect:  # noqa: BLE001  (its queries end)
            self.over.promising.failed(self.numbered, defect)
            return 0


class Grants:
    """One owner, as the engine."""

    def __init__(self, sets: SourceSets) -> None:
        self._sets = sets
        self.turns = Turns()

    def spend(self, units: int) -> tuple[int, list[SourceSet]]:
        """Spend a grant; (units used, sets of which groups used some). O(groups, and what they do)."""
        moved = list[SourceSet]()
        in_order = self._in_order()
        takers = {one.number: _Taker(over, one, one.group) for over, one in in_order if one.group is not None}
        used = self.turns.spend(units, takers)
        for over, one in in_order:
            if used.get(one.number):
                over.spent(one)
                moved.append(over)
        return sum(used.values()), moved

    def _in_order(self) -> list[tuple[SourceSet, Numbered]]:
        """All groups with their sets, as they came."""
        pairs = [(over, one) for over in self._sets.preferring() for one in over.promising]
        return sorted(pairs, key=lambda pair: pair[1].number)

    def groups(self) -> Iterator[tuple[SourceSet, Numbered]]:
        """Yields all groups with their sets, as they came, for those who inspect the engine."""
        yield from self._in_order()

    def work(self) -> int:
        """How many units there is work for at least; 0: for none."""
        return sum(over.promising.work() for over in self._sets.preferring())

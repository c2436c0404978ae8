"""Turns: groups share the units of a grant by deficit round robin, in proportion to their weights.

A group's quantum is in proportion to the sum of its queries' weights; what a turn leaves of it because units
ran out is kept for the next grant, and a group that has nothing left to visit keeps nothing. So over time
groups that always have something left get units in the ratio of their weights, whatever the grants are, and
cutting a grant into several changes nothing. (The paper has round robin over queries.)

Source: Shreedhar, Varghese, *Efficient fair queuing using deficit round robin*; Ali, Aref, ElTabakh,
*Scalability via Summaries*, section 4.1.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from engine.model.source import SourceName
from engine.operators.scan import ScanAt
from engine.promising.group import PromisingGroup

QUANTUM = 4_096
"""Units of a turn of the group with the least weight."""


@dataclass(frozen=True, slots=True)
class TurnsState:
    """What is saved of turns. deficits: units, one a group, in the order of the groups. turn: the place of
    the group whose turn it is; begun: whether it got its quantum already.
    """

    deficits: tuple[float, ...]
    turn: int
    begun: bool


class Turns:
    """Of groups in the order in which they came."""

    def __init__(self, quantum: int = QUANTUM) -> None:
        self.quantum = quantum
        self._groups: list[PromisingGroup] = []
        self._deficits: list[float] = []
        self._turn = 0
        self._begun = False

    def __iter__(self) -> Iterator[PromisingGroup]:
        return iter(self._groups)

    def __len__(self) -> int:
        return len(self._groups)

    def add(self, group: PromisingGroup) -> None:
        """A group comes, behind the others."""
        self._groups.append(group)
        self._deficits.append(0.0)

    def remove(self, group: PromisingGroup) -> None:
        """It goes."""
        place = next(number for number, each in enumerate(self._groups) if each is group)
        del self._groups[place], self._deficits[place]
        if place == self._turn:
            self._begun = False
        elif place < self._turn:
            self._turn -= 1
        if self._turn >= len(self._groups):
            self._turn = 0

    @property
    def left(self) -> bool:
        """Whether there is anything to spend units on."""
        return any(group.left for group in self._groups)

    def spend(self, units: int, at: Mapping[SourceName, ScanAt]) -> int:
        """Let groups visit rows, one after another; returns the units that were used: all of them, or less
        and no group has anything left. at: how the sources of all groups stand.
        """
        used, idle = 0, 0
        lightest = min((group.weight for group in self._groups if group.weight > 0), default=1.0)
        while used < units and idle < len(self._groups):
            group = self._groups[self._turn]
            if not group.left:
                self._deficits[self._turn] = 0.0
                self._next()
                idle += 1
                continue
            idle = 0
            if not self._begun:
                self._deficits[self._turn] += self.quantum * max(group.weight, lightest) / lightest
                self._begun = True
            may = min(int(self._deficits[self._turn]), units - used)
            spent = group.spend(may, at)
            used += spent
            self._deficits[self._turn] -= spent
            if int(self._deficits[self._turn]) <= 0 or not group.left:
                self._next()
        return used

    def _next(self) -> None:
        if not self._groups[self._turn].left:
            self._deficits[self._turn] = 0.0
        self._turn = (self._turn + 1) % len(self._groups)
        self._begun = False

    def state(self) -> TurnsState:
        """All that the next turns depend on, besides the groups."""
        return TurnsState(tuple(self._deficits), self._turn, self._begun)

    def restore(self, state: TurnsState) -> None:
        """The same groups, in the same order, go on where they were."""
        assert len(state.deficits) == len(self._groups)
        self._deficits = list(state.deficits)
        self._turn, self._begun = state.turn, state.begun

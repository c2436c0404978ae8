"""Turns: groups share the units of a grant by deficit round robin, in proportion to their weights.

A group's quantum is in proportion to the sum of its queries' weights; what a turn leaves of it because units
ran out is kept for the next grant, and a group that has nothing left to visit keeps nothing. So over time
groups that always have something left get units in the ratio of their weights, whatever the grants are, and
cutting a grant into several changes nothing. (The paper has round robin over queries.)

Source: Shreedhar, Varghese, *Efficient fair queuing using deficit round robin*; Ali, Aref, ElTabakh,
*Scalability via Summaries*, section 4.1.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

QUANTUM = 4_096
"""Units of a turn of the group with the least weight."""


class TurnTaker(Protocol):
    """A group, as turns see it."""

    @property
    def weight(self) -> float: ...

    @property
    def left(self) -> bool:
        """Whether it has anything to spend units on."""
        ...

    def spend(self, units: int) -> int:
        """Use units; returns how many: all of them, or less and nothing is left."""
        ...


@dataclass(frozen=True, slots=True)
class TurnsState:
    """What is saved of turns. deficits: units that a group kept, by its number; of others 0. turn: the number
    of the group whose turn it is, or that of the next one from there on; begun: whether it got its quantum.
    """

    deficits: Mapping[int, float]
    turn: int = 0
    begun: bool = False


class Turns:
    """The turns of groups, each with a number; numbers ascend in the order in which groups came."""

    def __init__(self, quantum: int = QUANTUM) -> None:
        self.quantum = quantum
        self._deficits: dict[int, float] = {}
        self._turn = 0
        self._begun = False

    def spend(self, units: int, groups: Mapping[int, TurnTaker]) -> dict[int, int]:
        """Let groups use units, one after another; returns what each used, by its number. Together it is all
        units, or less and no group has anything left. groups: all there are; others are forgotten.
        """
        order = sorted(groups)
        self._deficits = {number: self._deficits.get(number, 0.0) for number in order}
        used = dict.fromkeys(order, 0)
        lightest = min((group.weight for group in groups.values() if group.weight > 0), default=1.0)
        left, idle = units, 0
        while left and idle < len(order):
            number = self._whose(order)
            group = groups[number]
            if not group.left:
                self._pass_on(number, keeps=False)
                idle += 1
                continue
            idle = 0
            if not self._begun:
                self._deficits[number] += self.quantum * max(group.weight, lightest) / lightest
                self._begun = True
            spent = group.spend(min(int(self._deficits[number]), left))
            used[number] += spent
            left -= spent
            self._deficits[number] -= spent
            if not groups[number].left:
                self._pass_on(number, keeps=False)
            elif self._deficits[number] < 1.0:
                self._pass_on(number, keeps=True)
        return used

    def _whose(self, order: list[int]) -> int:
        """The number of the group whose turn it is."""
        number = next((each for each in order if each >= self._turn), order[0])
        if number != self._turn:
            self._turn, self._begun = number, False
        return number

    def _pass_on(self, number: int, *, keeps: bool) -> None:
        """A group's turn is over. keeps: what is left of its units, less than one."""
        if not keeps:
            self._deficits[number] = 0.0
        self._turn, self._begun = number + 1, False

    def state(self) -> TurnsState:
        """All that the next turns depend on, besides the groups."""
        return TurnsState(dict(self._deficits), self._turn, self._begun)

    def restore(self, state: TurnsState) -> None:
        """Go on from there."""
        self._deficits = dict(state.deficits)
        self._turn, self._begun = state.turn, state.begun

"""Progress charts: how fast a batch that waits at a module gets smaller, if it is run from there on.

A plan's chart has a point after each module: the time spent so far and the size that is left. Chain
scheduling (Babcock, Babu, Datar, Motwani: *Chain*, SIGMOD 2003; Motwani et al., CIDR 2003, section 4.2) goes
by its lower envelope: from a point the steepest line to a later one is a *segment*, its modules a chain, and
the slope of the segment, what it takes away in a unit of time, is the priority of all of them.

A module with several consumers makes the chart a tree. There the segment is the subtree from the module on
that takes away most in a unit of time (Horn, *Single-machine job sequencing with treelike precedence
ordering*, 1972): the steepest segment below is taken in as long as it is no flatter than what there is. For a
module with one consumer this is the lower envelope. A join is one module for each input, so it has a chart
for each.

Pure. Sizes may be of any unit, and grow: a join may let out more than comes in, slopes are negative then.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Generic, TypeVar

Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True, slots=True)
class ProgressPoint:
    """spent: time since the batch came, in any unit. left: its size then, in any unit; both at least 0."""

    spent: float
    left: float


@dataclass(frozen=True, slots=True)
class Segment:
    """Modules first <= m < after are one chain. slope: size that goes in a unit of time; the more the
    steeper, below 0 where size is added.
    """

    first: int
    after: int
    slope: float


def points_of(modules: Sequence[tuple[float, float]], size: float = 1.0) -> tuple[ProgressPoint, ...]:
    """The chart of modules in a row, by (time a batch of ``size`` takes there, selectivity).

    What the last one puts out is the result, which waits nowhere: it counts 0. Raises ValueError for a time
    or a selectivity below 0 or not finite.
    """
    points, spent = [ProgressPoint(0.0, size)], 0.0
    for number, (time, selectivity) in enumerate(modules, 1):
        if not (0 <= time < math.inf and 0 <= selectivity < math.inf):
            raise ValueError(f"module {number} takes {time} and lets pass {selectivity}")
        spent += time
        size *= selectivity
        points.append(ProgressPoint(spent, 0.0 if number == len(modules) else size))
    return tuple(points)


def segments_of(points: Sequence[ProgressPoint]) -> tuple[Segment, ...]:
    """The lower envelope of a chart. O(points ** 2). Raises ValueError where time goes back.

    >>> [(s.first, s.after, round(s.slope, 3)) for s in segments_of(points_of([(1, 0.9), (1, 0.2), (1, 0)]))]
    [(0, 2, 0.41), (2, 3, 0.18)]
    """
    if any(later.spent < earlier.spent for earlier, later in pairwise(points)):
        raise ValueError("time goes back in a progress chart")
    segments: list[Segment] = []
    first, last = 0, len(points) - 1
    while first < last:
        after, steepest = first + 1, -math.inf
        for to in range(first + 1, last + 1):
            slope = steepness(points[first].left - points[to].left, points[to].spent - points[first].spent)
            if slope >= steepest:  # the longest of those that are equal
                after, steepest = to, slope
        segments.append(Segment(first, after, steepest))
        first = after
    return tuple(segments)


def steepness(taken: float, spent: float) -> float:
    """Size taken away in a unit of time; what takes no time is as steep as can be."""
    if spent > 0:
        return taken / spent
    return math.copysign(math.inf, taken) if taken else 0.0


@dataclass(frozen=True, slots=True)
class Stage(Generic[Name]):
    """A module, by a unit of size that comes in. cost: the time it takes. outputs: who consumes what it puts
    out, and how much of that there is; none: it puts out results, which wait nowhere.
    """

    cost: float
    outputs: tuple[tuple[Name, float], ...] = ()

    @property
    def taken(self) -> float:
        """Size that its own step takes away; below 0 where it adds some."""
        return 1.0 - sum(share for _, share in self.outputs)


class _Block:
    """A subtree that is run as one, by a unit of size at its root. below: (-slope, order, share, block) of
    the subtrees that stand under it, a heap.
    """

    __slots__ = ("below", "cost", "taken")

    def __init__(self, cost: float, taken: float, below: list[tuple[float, int, float, _Block]]) -> None:
        self.cost = cost
        self.taken = taken
        self.below = below
        heapify(below)
        order = max((one[1] for one in below), default=-1) + 1
        while below and -below[0][0] >= steepness(self.taken, self.cost):
            _, _, share, block = heappop(below)
            self.cost += share * block.cost
            self.taken += share * block.taken
            for slope, _, lesser, under in block.below:
                heappush(below, (slope, order, share * lesser, under))
                order += 1

    @property
    def slope(self) -> float:
        return steepness(self.taken, self.cost)


class ChartSlopes(Generic[Name]):
    """The slope of the segment that begins at each module, and the time from there to the results.

    Kept for modules that come, change and go; :meth:`redo` works out again what changed modules concern.
    """

    def __init__(self) -> None:
        self._blocks: dict[Name, _Block] = {}
        self._remaining: dict[Name, float] = {}

    def of(self, name: Name) -> float:
        """The slope at a module. Raises KeyError."""
        return self._blocks[name].slope

    def remaining(self, name: Name) -> float:
        """The time that a unit of size takes from this module on, to all results. Raises KeyError."""
        return self._remaining[name]

    def forget(self, name: Name) -> None:
        """A module is gone."""
        self._blocks.pop(name, None)
        self._remaining.pop(name, None)

    def redo(self, changed: Sequence[Name], stages: Mapping[Name, Stage[Name]]) -> None:
        """Modules changed, came, or have other consumers; those above them are to be named too, each behind
        all that stand below it. stages: of all modules; consumers that are not there count as results.

        O(consumers of these * log consumers).
        """
        for name in changed:
            stage = stages[name]
            below = []
            remaining = stage.cost
            for order, (consumer, share) in enumerate(stage.outputs):
                block = self._blocks.get(consumer)
                if block is not None and share > 0:
                    below.append((-block.slope, order, share, block))
                    remaining += share * self._remaining[consumer]
            self._blocks[name] = _Block(stage.cost, stage.taken, below)
            self._remaining[name] = remaining

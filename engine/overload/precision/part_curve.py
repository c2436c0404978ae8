"""The curve of one part: its least loss at each cost, as far as it was solved.

It begins with the points of the last allocation, else with the ends and some points between; then the part is
solved with the shares that the split of the budget gives it. Cost: a local solve a point.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from engine.overload.precision.grouping import VariablePart
from engine.overload.precision.part_functions import PartFunctions
from engine.overload.precision.part_solver import (
    BROKEN,
    ROUNDING,
    Effort,
    LinearLimit,
    Solution,
    best_of,
    cheapest,
    slope_at,
)
from engine.overload.precision.precision import FloatArray
from engine.overload.precision.problem import (
    Curve,
    EntityId,
    Solved,
)
from engine.overload.precision.solver_settings import SolverSettings
from engine.overload.precision.split import between, hull_of

MEMORY_MAX = 12
"""So many solved points of a part are remembered."""

SEEDS = (0.5, 0.75, 0.25)
"""Shares of what lies between the least and the greatest cost of a part, at which it is solved first."""

NARROW = 0.6
"""On segments up to this share of a part's costs, what lies between two solved points needs no solving."""

BESIDE = 1e-3
"""A point that costs less than the share of a part by so much of its costs is taken for solved with it."""

WIDE = 0.05
"""A segment of this share of a part's costs is worth looking into."""


class PartCurve:
    """Holds what is known of one part while a problem is solved: loss against cost, at the points solved."""

    def __init__(
        self, functions: PartFunctions, last: Mapping[EntityId, float] | None, settings: SolverSettings
    ) -> None:
        """last: shares of the last allocation, at which solves start where all of the part's are there."""
        self.functions = functions
        # Points at which solves start.
        self.begin = _begin(functions.part, last)
        # Whether all solves so far ended by themselves.
        self.converged = True
        self._settings = settings
        self._points: list[Solved] = []
        # What a byte and a ns cost in these points.
        self._unit: tuple[float, float] | None = None
        # The points come from the last allocation and the part is unchanged: it need not be solved again.
        self._known = False

    @property
    def part(self) -> VariablePart:
        """What it is the curve of."""
        return self.functions.part

    def hull(self) -> list[Solved]:
        """The vertices of the lower convex hull of the points."""
        return hull_of(self._points)

    def start(self, limit: LinearLimit, memory: Mapping[Hashable, Curve]) -> None:
        """Find the points to begin with: those of the last time; else the ends, which need no solving, and
        some between. memory: of the last allocation.
        """
        self._find_ends(limit, memory)
        self._unit = limit.unit

    def _find_ends(self, limit: LinearLimit, memory: Mapping[Hashable, Curve]) -> None:
        functions = self.functions
        part = functions.part
        known = memory.get(part.key)
        if known is not None and known.unit == limit.unit and not functions.bounded and not self._points:
            self._points = list(known.points)
            self._known = True
            return
        near = known or memory.get(part.entities)
        least = part.low
        if functions.bounded and functions.excess(least[:, None])[0] > BROKEN:
            least = cheapest(functions, limit, self.begin, self._settings.effort_many).x
        points = [least, part.high] if np.any(part.high > least) else [least]
        slopes = [slope_at(functions, limit, one) for one in points]
        for solved in (*self._points, *(() if near is None else near.points)):
            if len(solved.x) == part.variables:
                points.append(np.clip(np.array(solved.x), least, part.high))
                slopes.append(slope_at(functions, limit, points[-1]))
        x = np.stack(points, axis=1)
        costs, losses = limit.cost(functions, x), functions.loss(x)
        kept = functions.excess(x) <= BROKEN
        kept[0] = True
        self._points = [
            Solved(float(cost), float(loss), slope, tuple(map(float, one)))
            for cost, loss, slope, one, keeps in zip(costs, losses, slopes, points, kept, strict=True)
            if keeps
        ]
        self._known = False
        if len(points) == 2 and len(self._points) == 2:
            self._begin_curve(limit)

    def _begin_curve(self, limit: LinearLimit) -> None:
        """Some points between the ends, the others from the first: a chord hides what is convex below it."""
        least, most = self._points[0].cost, self._points[1].cost
        if most <= least:
            return
        middle = None
        for share in SEEDS:
            begin = self.begin if middle is None else (np.array(middle.x),)
            found = self._solve_at(limit, least + share * (most - least), begin, many=middle is None)
            middle = middle or found

    def at(self, hull: Sequence[Solved], limit: LinearLimit, share: float) -> Solved:
        """The part with its share: solved, or one of its points."""
        for place, vertex in enumerate(hull):
            if abs(vertex.cost - share) <= 1e-9 * max(1.0, share):
                self._look_beside(hull, limit, place)
                return vertex
        functions = self.functions
        x, chord, width = between(hull, share)
        if self._known and width <= NARROW * (hull[-1].cost - hull[0].cost):
            # The split divides at most one segment that is concave; there the part gets less than its share.
            begun = x[:, None]
            loss = float(functions.loss(begun)[0])
            fitting = limit.cost(functions, begun)[0] <= share * (1.0 + ROUNDING)
            if fitting and loss <= chord + 1e-9 + self._settings.gain_min * abs(chord):
                return Solved(share, loss, 0.0, tuple(map(float, x)))
        span = hull[-1].cost - hull[0].cost
        solved = [one for one in self._points if 0.0 <= share - one.cost <= BESIDE * span]
        if solved:
            return min(solved, key=lambda one: one.loss)
        return self._solve_at(limit, share, (x,), many=False)

    def best(self, limits: Sequence[LinearLimit], begin: Sequence[FloatArray], effort: Effort) -> Solution:
        """The part solved within limits."""
        found = best_of(self.functions, limits, begin, effort)
        if not found.converged and effort.starts == 1:
            more = replace(effort, starts=self._settings.effort.starts)
            found = best_of(self.functions, limits, begin, more)
        self.converged &= found.converged
        return found

    def remembered(self, x: FloatArray) -> Curve | None:
        """What the next time begins with: the ends of the curve, and what is next to the present point, x.
        None: the part was not solved.
        """
        if self._unit is None:
            return None
        hull = self.hull()
        if len(hull) > MEMORY_MAX:
            here = float(LinearLimit(*self._unit, 0.0).cost(self.functions, x[:, None])[0])
            inner = sorted(hull[1:-1], key=lambda one: abs(one.cost - here))[: MEMORY_MAX - 2]
            hull = [hull[0], *inner, hull[-1]]
        return Curve(self._unit, tuple(hull))

    def _solve_at(
        self, limit: LinearLimit, share: float, begin: Sequence[FloatArray], *, many: bool
    ) -> Solved:
        """The part solved with a share of the budget, which becomes one of its points."""
        effort = self._settings.effort_many
        result = self.best([replace(limit, most=share)], begin, effort if many else replace(effort, starts=1))
        cost = float(limit.cost(self.functions, result.x[:, None])[0])
        slope = slope_at(self.functions, limit, result.x)
        solved = Solved(cost, result.loss, slope, tuple(map(float, result.x)))
        if result.excess <= BROKEN:
            self._points.append(solved)
        return solved

    def _look_beside(self, hull: Sequence[Solved], limit: LinearLimit, place: int) -> None:
        """Solve the middle of the wider segment at a vertex, where that is wide: the split may have come to
        this vertex only because nothing better is known.
        """
        if self._known:
            return
        whole = hull[-1].cost - hull[0].cost
        beside = [
            (other.cost - one.cost, one, other)
            for one, other in zip(hull[max(0, place - 1) :], hull[max(1, place) : place + 2], strict=False)
        ]
        width, one, other = max(beside, key=lambda each: each[0], default=(0.0, None, None))
        if one is not None and other is not None and width > WIDE * whole:
            x, _, _ = between((one, other), one.cost + width / 2.0)
            self._solve_at(limit, one.cost + width / 2.0, (x,), many=False)


def _begin(part: VariablePart, last: Mapping[EntityId, float] | None) -> tuple[FloatArray, ...]:
    """What stood last, where all of it did."""
    if last is None or not all(names[0] in last for names in part.entities):
        return ()
    x = np.array([last[names[0]] for names in part.entities])
    return (np.clip(x, part.low, part.high),)

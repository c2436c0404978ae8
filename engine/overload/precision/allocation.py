"""Shares for all entities that make the sum of losses small within the budgets (STREAM, section 5.3).

The paper solves one query. Many are solved so (derived here): equal plans are one group of variables, the
budget is split over the parts that no entity connects by marginal loss per unit of cost, each part is solved
with its share, and again, until the total moves by less than 0.1 % or after 10 rounds. Exact queries are
served first, in full. Where bounds cannot all be kept, those of the least weighty queries are given up.

With two budgets, cost is a weighted mean of both (surrogate constraint), the weight found by bisection.
Deterministic. Cost: O(queries) and, for each part that changed, some ten local solves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from engine.overload.precision.given_up import queries_given_up
from engine.overload.precision.grouping import VariablePart, parts_of
from engine.overload.precision.joint_parts import JointParts, mixed
from engine.overload.precision.part_solver import (
    POLISH,
    LinearLimit,
)
from engine.overload.precision.precision import FloatArray
from engine.overload.precision.problem import (
    Allocation,
    Problem,
)
from engine.overload.precision.solver_settings import DEFAULT, SolverSettings
from engine.overload.precision.split import between, split


def solve(
    problem: Problem, previous: Allocation | None = None, settings: SolverSettings = DEFAULT
) -> Allocation:
    """The allocation. previous: of the last time, from which it starts, of whatever problem."""
    parts = parts_of(problem, settings.together_max)
    found = _Solver(problem, parts, previous, settings).allocation()
    free = sum(int(np.sum(part.high > part.low)) for part in parts)
    if found.rounds == 0 or found.kept or free > settings.polished_max:
        return found
    whole = replace(settings, together_max=free, gain_min=0.0, effort=POLISH)
    polished = _Solver(problem, parts_of(problem, free), found, whole).allocation()
    return replace(polished, rounds=found.rounds, memory=found.memory, kept=False)


class _Solver:
    """Splits the budget over parts."""

    def __init__(
        self,
        problem: Problem,
        parts: Sequence[VariablePart],
        previous: Allocation | None,
        settings: SolverSettings,
    ) -> None:
        self._problem = problem
        self._parts = parts
        self._previous = previous
        self._settings = settings
        self._joint = JointParts(problem, parts, previous, settings)
        self._rounds = 0

    def allocation(self) -> Allocation:
        """As the settings ask."""
        highest = [part.high for part in self._parts]
        if self._joint.fits(highest) and self._joint.is_lossless(highest):
            return self._joint.allocation(highest)
        given_up = queries_given_up(self._problem, self._parts, self._previous, self._settings)
        if given_up:
            self._joint = JointParts(self._problem, self._parts, self._previous, self._settings, given_up)
        joint = self._joint
        found = self._balanced()
        converged = all(curve.converged for curve in joint.curves)
        if not converged and (last := joint.last()) is not None and joint.fits(last):
            found = min(found, last, key=joint.loss)
        return joint.allocation(found, self._rounds)

    def _balanced(self) -> list[FloatArray]:
        """The best shares, by part."""
        joint = self._joint
        free = [place for place, part in enumerate(self._parts) if np.any(part.high > part.low)]
        found = [part.low for part in self._parts]
        if len(free) > 1 and joint.limits:
            return self._weighted()
        fixed = [joint.total(found, limit) for limit in joint.limits]
        for place in free:
            curve = joint.curves[place]
            own = [limit.cost(curve.functions, found[place][:, None])[0] for limit in joint.limits]
            room = [
                replace(limit, most=max(limit.most - other + mine, 0.0))
                for limit, other, mine in zip(joint.limits, fixed, own, strict=True)
            ]
            found[place] = curve.best(room, curve.begin, self._settings.effort).x
        return found

    def _weighted(self) -> list[FloatArray]:
        """With two budgets, the weight of the first in the cost, by bisection."""
        joint, limits = self._joint, self._joint.limits
        if len(limits) == 1:
            return self._split(limits[0])
        for weight, other in ((1.0, limits[1]), (0.0, limits[0])):
            found = self._split(mixed(limits, weight))
            if joint.total(found, other) <= other.most * (1.0 + 1e-9):
                return found
        low, high = 0.0, 1.0
        best: tuple[float, list[FloatArray]] | None = None
        for _ in range(6):
            weight = (low + high) / 2.0
            found = self._split(mixed(limits, weight))
            over = [joint.total(found, limit) / max(limit.most, 1e-300) for limit in limits]
            fitting = joint.shrunk(found)
            loss = joint.loss(fitting)
            if best is None or loss < best[0]:
                best = loss, fitting
            if max(over) <= 1.0 + 1e-6:
                break
            low, high = (weight, high) if over[0] > over[1] else (low, weight)
        assert best is not None
        return best[1]

    def _split(self, limit: LinearLimit) -> list[FloatArray]:
        """The budget split over the parts, each solved with its share."""
        settings, curves = self._settings, self._joint.curves
        memory = {} if self._previous is None else self._previous.memory
        for curve in curves:
            curve.start(limit, memory)
        if (last := self._good_enough(limit)) is not None:
            return last
        total, best = np.inf, None
        for _ in range(settings.rounds):
            self._rounds += 1
            hulls = [curve.hull() for curve in curves]
            shares = split(hulls, limit.most)
            found = [
                curve.at(hull, limit, float(share))
                for curve, hull, share in zip(curves, hulls, shares, strict=True)
            ]
            now = sum(one.loss for one in found)
            moved = abs(total - now)
            if best is None or now < total:
                best, total = found, now
            if moved <= settings.settled * max(total, 1e-12):
                break
        assert best is not None
        return [np.array(one.x) for one in best]

    def _good_enough(self, limit: LinearLimit) -> list[FloatArray] | None:
        """The last allocation, where what is known of the parts promises too little of another one."""
        last = self._joint.standing()
        if last is None:
            return None
        hulls = [curve.hull() for curve in self._joint.curves]
        shares = split(hulls, limit.most)
        promised = sum(between(hull, float(share))[1] for hull, share in zip(hulls, shares, strict=True))
        before = self._joint.loss(last)
        return last if before - promised <= self._settings.gain_min * before else None

"""Which bounds are given up where not all can be kept within the budgets: those of the least weighty queries.

Cost: O(log bounded groups) rounds, each with a local solve of every part that has bounds.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.overload.precision.grouping import Group, VariablePart
from engine.overload.precision.joint_parts import JointParts, mixed
from engine.overload.precision.part_solver import (
    BROKEN,
    cheapest,
)
from engine.overload.precision.problem import (
    Allocation,
    Problem,
    QueryId,
)
from engine.overload.precision.solver_settings import SolverSettings


def queries_given_up(
    problem: Problem, parts: Sequence[VariablePart], previous: Allocation | None, settings: SolverSettings
) -> frozenset[QueryId]:
    """The queries whose bounds are given up."""

    def is_reachable(given_up: frozenset[QueryId]) -> bool:
        return _is_reachable(JointParts(problem, parts, previous, settings, given_up), settings)

    bounded = [group for part in parts for group in part.groups if group.is_bounded]
    bounded.sort(key=lambda group: group.heaviest)
    if not bounded or is_reachable(frozenset()):
        return frozenset()
    low, high = 1, len(bounded)
    while low < high:
        middle = (low + high) // 2
        if is_reachable(_queries(bounded[:middle])):
            high = middle
        else:
            low = middle + 1
    return _queries(bounded[:low])


def _is_reachable(joint: JointParts, settings: SolverSettings) -> bool:
    """Whether all bounds that are not given up can be kept together within the budgets."""
    weights = (0.5, 1.0, 0.0, 0.25, 0.75) if len(joint.limits) == 2 else (1.0,)
    for weight in weights:
        limit = mixed(joint.limits, weight)
        xs = []
        for curve in joint.curves:
            if not curve.functions.bounded:
                xs.append(curve.part.low)
                continue
            found = cheapest(curve.functions, limit, curve.begin, settings.effort_many)
            if found.excess > BROKEN:
                return False
            xs.append(found.x)
        if joint.fits(xs):
            return True
    return False


def _queries(groups: Sequence[Group]) -> frozenset[QueryId]:
    return frozenset(name for group in groups for name in group.queries)

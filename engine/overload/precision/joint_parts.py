"""All parts of a problem at once: whether shares fit the budgets, what they lose, what allocation they make.

Shares of all parts are a list of float64[variables], one a part. Cost: O(groups) a look.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

import numpy as np

from engine.overload.precision.grouping import VariablePart
from engine.overload.precision.loss import loss_of
from engine.overload.precision.part_curve import PartCurve
from engine.overload.precision.part_functions import PartFunctions
from engine.overload.precision.part_solver import (
    BROKEN,
    LinearLimit,
)
from engine.overload.precision.precision import FloatArray
from engine.overload.precision.problem import (
    Allocation,
    Curve,
    EntityId,
    Outcome,
    Problem,
    QueryId,
)
from engine.overload.precision.shape import PrecisionFlow
from engine.overload.precision.solver_settings import SolverSettings


class JointParts:
    """The parts of a problem, each with its curve."""

    def __init__(
        self,
        problem: Problem,
        parts: Sequence[VariablePart],
        previous: Allocation | None,
        settings: SolverSettings,
        given_up: frozenset[QueryId] = frozenset(),
    ) -> None:
        """given_up: the queries whose bounds do not count."""
        last = None if previous is None else previous.x
        self.curves = tuple(
            PartCurve(PartFunctions(part, problem.fp_share, given_up), last, settings) for part in parts
        )
        self.limits = _limits(problem)
        self._problem = problem
        self._previous = previous
        self._given_up = given_up
        self._gain_min = settings.gain_min

    # --- what shares cost and lose ----------------------------------------------------------------

    def total(self, xs: Sequence[FloatArray], limit: LinearLimit) -> float:
        """What shares cost, in units of the limit."""
        return float(sum(limit.cost(functions, x[:, None])[0] for functions, x in self._each(xs)))

    def fits(self, xs: Sequence[FloatArray]) -> bool:
        """Whether shares keep within the budgets."""
        return all(self.total(xs, limit) <= limit.most * (1.0 + 1e-9) + 1e-12 for limit in self.limits)

    def loss(self, xs: Sequence[FloatArray]) -> float:
        """The sum of all losses."""
        return float(sum(functions.loss(x[:, None])[0] for functions, x in self._each(xs)))

    def is_lossless(self, xs: Sequence[FloatArray]) -> bool:
        """Whether nothing is lost, and all bounds are kept."""
        return all(
            functions.loss(x[:, None])[0] <= 1e-12 and functions.excess(x[:, None])[0] <= 0.0
            for functions, x in self._each(xs)
        )

    def keeps_bounds(self, xs: Sequence[FloatArray]) -> bool:
        """Whether all bounds are kept that are not given up."""
        return all(
            functions.excess(x[:, None])[0] <= BROKEN for functions, x in self._each(xs) if functions.bounded
        )

    def shrunk(self, xs: list[FloatArray]) -> list[FloatArray]:
        """Shares moved towards the least ones, all by as much, until they fit."""
        if self.fits(xs):
            return xs
        low, high = 0.0, 1.0
        lows = [curve.part.low for curve in self.curves]
        for _ in range(40):
            middle = (low + high) / 2.0
            moved = [one + middle * (x - one) for one, x in zip(lows, xs, strict=True)]
            low, high = (middle, high) if self.fits(moved) else (low, middle)
        return [one + low * (x - one) for one, x in zip(lows, xs, strict=True)]

    def last(self) -> list[FloatArray] | None:
        """The last allocation, moved until it fits; None where not all parts have one."""
        if not all(curve.begin for curve in self.curves):
            return None
        return self.shrunk([curve.begin[0] for curve in self.curves])

    def standing(self) -> list[FloatArray] | None:
        """The last allocation, where it may stay: it fits and keeps the bounds."""
        last = None if self._previous is None else self.last()
        return last if last is not None and self.fits(last) and self.keeps_bounds(last) else None

    def _each(self, xs: Sequence[FloatArray]) -> Iterator[tuple[PartFunctions, FloatArray]]:
        for curve, x in zip(self.curves, xs, strict=True):
            yield curve.functions, x

    # --- the allocation ---------------------------------------------------------------------------

    def allocation(self, xs: list[FloatArray], rounds: int = 0) -> Allocation:
        """What these shares make, with hysteresis against what stands."""
        last = self.standing()
        # One pass for both; of what was decided to stay the figures are known.
        stays = last is not None and all(map(np.array_equal, xs, last))
        both = None if stays else last
        points = [
            x[:, None] if both is None else np.stack([x, both[place]], axis=1) for place, x in enumerate(xs)
        ]
        flows = [curve.functions.flows(x) for curve, x in zip(self.curves, points, strict=True)]
        losses = np.zeros(1 if both is None else 2)
        for curve, inside in zip(self.curves, flows, strict=True):
            for group, flow in zip(curve.part.groups, inside, strict=True):
                losses += group.weight * loss_of(flow, self._problem.fp_share)
        loss, before = float(losses[0]), float(losses[-1])
        kept = last is not None and before - loss <= self._gain_min * before
        if kept:
            assert last is not None
            xs = last
        return Allocation(
            self._by_entity(xs),
            self._expected(flows, len(losses) - 1 if kept else 0),
            self._given_up,
            before if kept else loss,
            float(sum(functions.bytes(x[:, None])[0] for functions, x in self._each(xs))),
            float(sum(functions.cpu_ns(x[:, None])[0] for functions, x in self._each(xs))),
            self.fits(xs),
            all(curve.converged for curve in self.curves),
            kept,
            rounds,
            self._memory(xs),
        )

    def _by_entity(self, xs: Sequence[FloatArray]) -> dict[EntityId, float]:
        return {
            name: float(share)
            for curve, x in zip(self.curves, xs, strict=True)
            for names, share in zip(curve.part.entities, x, strict=True)
            for name in names
        }

    def _memory(self, xs: Sequence[FloatArray]) -> dict[Hashable, Curve]:
        found: dict[Hashable, Curve] = {}
        for curve, x in zip(self.curves, xs, strict=True):
            if (remembered := curve.remembered(x)) is not None:
                found[curve.part.key] = found[curve.part.entities] = remembered
        return found

    def _expected(self, flows: Sequence[Sequence[PrecisionFlow]], point: int) -> dict[QueryId, Outcome]:
        found: dict[QueryId, Outcome] = {}
        for curve, inside in zip(self.curves, flows, strict=True):
            for group, flow in zip(curve.part.groups, inside, strict=True):
                found.update(dict.fromkeys(group.queries, Outcome.at(flow, point)))
        for query in self._problem.queries:
            if query.exact:
                found[query.id] = Outcome.at(query.shape.at(np.ones((query.shape.slots, 1))))
        return found


def _limits(problem: Problem) -> list[LinearLimit]:
    """A limit for each budget that there is, in shares of the budget; a budget of 0 allows what costs
    nothing.
    """
    found = []
    if (budget := problem.budget_bytes) is not None:
        found.append(LinearLimit(1.0 / budget, 0.0, 1.0) if budget else LinearLimit(1.0, 0.0, 0.0))
    if (budget := problem.budget_cpu_ns) is not None:
        found.append(LinearLimit(0.0, 1.0 / budget, 1.0) if budget else LinearLimit(0.0, 1.0, 0.0))
    return found


def mixed(limits: Sequence[LinearLimit], weight: float) -> LinearLimit:
    """One limit for both; weight: of the first."""
    if len(limits) == 1:
        return limits[0]
    if not limits:
        return LinearLimit(0.0, 0.0, 0.0)
    one, other = limits
    return LinearLimit(
        weight * one.per_byte,
        (1.0 - weight) * other.per_cpu_ns,
        weight * one.most + (1.0 - weight) * other.most,
    )

"""Loss, bounds and costs of one part as functions of its shares, with gradients.

Gradients are central differences, taken for each group over its own variables in one pass. Cost of a pass:
O(groups * (nodes + points)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.overload.precision.grouping import Group, VariablePart
from engine.overload.precision.loss import excess_of, loss_of
from engine.overload.precision.precision import FloatArray
from engine.overload.precision.shape import PrecisionFlow

STEP = 1e-6
"""Step of the differences; shares are of the order of 1."""


@dataclass(frozen=True, slots=True)
class Slopes:
    """At one point. gradient: float64[variables] of the loss; excess: float64[bounds], above 0 where a bound
    is broken; excess_gradient: float64[bounds, variables].
    """

    loss: float
    gradient: FloatArray
    excess: FloatArray
    excess_gradient: FloatArray


class PartFunctions:
    """Computes loss, bounds and costs of one part. fp_share: how much wrong rows weigh against missing ones,
    in [0, 1]. given_up: ids of queries; the bounds of their groups do not count any more.
    """

    def __init__(self, part: VariablePart, fp_share: float, given_up: frozenset[str] = frozenset()) -> None:
        self.part = part
        self._fp_share = fp_share
        self.bounded = tuple(
            group for group in part.groups if group.is_bounded and given_up.isdisjoint(group.queries)
        )
        self._known: tuple[bytes, Slopes] | None = None
        self._flows: tuple[bytes, list[PrecisionFlow]] | None = None

    def flow(self, group: Group, x: FloatArray) -> PrecisionFlow:
        """x: float64[variables, points]."""
        return group.shape.at(x[list(group.places)])

    def flows(self, x: FloatArray) -> list[PrecisionFlow]:
        """Returns the flow of each group at x, float64[variables, points]; the flows at the last single point
        are cached.
        """
        if x.shape[1] != 1:
            return [self.flow(group, x) for group in self.part.groups]
        name = x.tobytes()
        if self._flows is None or self._flows[0] != name:
            self._flows = name, [self.flow(group, x) for group in self.part.groups]
        return self._flows[1]

    def loss(self, x: FloatArray) -> FloatArray:
        """float64[points], of x float64[variables, points]."""
        found = np.zeros(x.shape[1])
        for group, flow in zip(self.part.groups, self.flows(x), strict=True):
            found += group.weight * loss_of(flow, self._fp_share)
        return found

    def excess(self, x: FloatArray) -> FloatArray:
        """The largest over all bounds, float64[points]; -inf without any."""
        found = np.full(x.shape[1], -np.inf)
        for group in self.bounded:
            for each in excess_of(self.flow(group, x), *group.bounds):
                found = np.maximum(found, each)
        return found

    def bytes(self, x: FloatArray) -> FloatArray:
        """float64[points]."""
        held = self.part.held
        free = held[:, None] if x.ndim == 2 else held
        return self._cost(self.part.bytes, np.maximum(x - free, 0.0) if held.any() else x, x)

    def cpu_ns(self, x: FloatArray) -> FloatArray:
        """Returns the computing time in ns a second, float64[points]."""
        return self._cost(self.part.cpu_ns, x, x)

    def _cost(self, whole: FloatArray, paid: FloatArray, x: FloatArray) -> FloatArray:
        if not any(self.part.scaled_by):
            return np.asarray(whole @ paid, np.float64)
        scaled = paid.copy()
        for variable, others in enumerate(self.part.scaled_by):
            for other in others:
                scaled[variable] = scaled[variable] * x[other]
        return np.asarray(whole @ scaled, np.float64)

    def slopes(self, x: FloatArray) -> Slopes:
        """At x, float64[variables]."""
        name = x.tobytes()
        if self._known is not None and self._known[0] == name:
            return self._known[1]
        gradient = np.zeros(self.part.variables)
        loss = 0.0
        excesses: list[float] = []
        rows: list[FloatArray] = []
        for group in self.part.groups:
            places = list(dict.fromkeys(group.places))
            around = _around(x, places)
            flow = group.shape.at(around[list(group.places)])
            losses = group.weight * loss_of(flow, self._fp_share)
            loss += float(losses[0])
            gradient[places] += _differences(losses, len(places))
            if group not in self.bounded:
                continue
            for each in excess_of(flow, *group.bounds):
                excesses.append(float(each[0]))
                row = np.zeros(self.part.variables)
                row[places] = _differences(each, len(places))
                rows.append(row)
        jacobian = np.array(rows) if rows else np.zeros((0, self.part.variables))
        found = Slopes(loss, gradient, np.array(excesses), jacobian)
        self._known = name, found
        return found

    def cost_gradient(self, per_byte: float, per_cpu_ns: float, x: FloatArray) -> FloatArray:
        """Returns the gradient of per_byte * bytes + per_cpu_ns * cpu_ns, float64[variables]."""
        if not any(self.part.scaled_by):
            paid = np.where(x >= self.part.held, self.part.bytes, 0.0)
            return per_byte * paid + per_cpu_ns * self.part.cpu_ns
        around = _around(x, list(range(self.part.variables)))
        costs = per_byte * self.bytes(around) + per_cpu_ns * self.cpu_ns(around)
        return _differences(costs, self.part.variables)


def _around(x: FloatArray, places: list[int]) -> FloatArray:
    """x, then x with each of these places raised, then lowered: float64[variables, 1 + 2 * places]."""
    found = np.repeat(x[:, None], 1 + 2 * len(places), axis=1)
    index = np.arange(len(places))
    found[places, 1 + index] += STEP
    found[places, 1 + len(places) + index] -= STEP
    return found


def _differences(values: FloatArray, places: int) -> FloatArray:
    return (values[1 : 1 + places] - values[1 + places : 1 + 2 * places]) / (2.0 * STEP)

"""In which order the inputs of a shape are probed, and what the probes found: the eddy of one join.

A policy for each driving input chooses, batch by batch, among the inputs with an edge to one that is bound
(CACQ section 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.eddy.choices import POLICIES
from engine.eddy.policies import RoutingPolicy, Visit
from engine.eddy.statistics import ModuleStatistics
from engine.joins.placing import JoinPlacing
from engine.joins.shape import Shape, edges_to
from engine.joins.steps import JoinStep
from engine.kernels import joins
from engine.model.batch import Int64Array


@dataclass(frozen=True, slots=True)
class Probe:
    """A module of the eddy: the probe of one input's index."""

    place: int
    name: str
    queries: int


class ProbeOrders:
    """``queries``: how many share the join. ``counted``: int64[3], look-ups, partners found, probes that the
    bound of a window ended. ``saved``: look-ups that the queries would have made apart from each other.
    ``placing``: where conditions that call users' functions stand.
    """

    def __init__(self, shape: Shape, policy: str) -> None:
        """Raises KeyError for a policy that is not in POLICIES."""
        n = len(shape.inputs)
        self._shape = shape
        self.queries = 0
        self.counted = np.zeros(3, np.int64)
        self.saved = 0
        self.placing = JoinPlacing()
        self._visits = np.zeros(n, np.int64)
        self._work = np.zeros((n, 2), np.int64)
        self.set_policy(policy)

    def set_policy(self, name: str) -> None:
        """How orders are chosen from now on. Raises KeyError for a name not in POLICIES."""
        self.policy = name
        self._policies: list[RoutingPolicy] = [POLICIES[name]() for _ in self._shape.inputs]

    def choose(self, driver: int) -> list[JoinStep]:
        """The other inputs, each with an edge to one before it, as the policy chooses."""
        policy, bound, order = self._policies[driver], {driver}, list[JoinStep]()
        policy.begin()
        n, edges = len(self._shape.inputs), self._shape.edges
        while len(order) < n - 1:
            ready = {
                place: found
                for place in range(n)
                if place not in bound and (found := edges_to(place, bound, edges))
            }
            modules = [self._module(place) for place in ready]
            place = (modules[0] if len(modules) == 1 else policy.choose(modules)).place
            order.append(JoinStep(place, ready[place]))
            bound.add(place)
        return order

    def observe(self, driver: int, order: Sequence[JoinStep], counted: Int64Array) -> None:
        """Note a probe. counted: int64[steps, 3], as the kernels count."""
        self.counted += counted.sum(axis=0)
        self.saved += int(counted[:, joins.GIVEN].sum()) * max(0, self.queries - 1)
        for step, (given, passed, _) in zip(order, counted.tolist(), strict=True):
            self._visits[step.place] += 1
            self._work[step.place] += given, passed
            visit = Visit(given, passed, max(0, given - passed) * self.queries, float(given + passed))
            self._policies[driver].observe(self._module(step.place), visit)

    def _module(self, place: int) -> Probe:
        return Probe(place, f"{self._shape.inputs[place]}#{place}", self.queries)

    def statistics(self) -> tuple[ModuleStatistics, ...]:
        """Statistics of the probes of each input, whichever input drives. Their cost is the rows given and
        the partners found.
        """
        told, n = [], len(self._shape.inputs)
        for place in range(n):
            module, (given, passed) = self._module(place), self._work[place].tolist()
            tickets = [p.tickets(module) for driver, p in enumerate(self._policies) if driver != place]
            told.append(
                ModuleStatistics(
                    module.name,
                    self.queries,
                    None if n == 2 else sum(tickets) / len(tickets),
                    int(self._visits[place]),
                    given,
                    given - passed,
                    float(given + passed),
                )
            )
        return tuple(told)

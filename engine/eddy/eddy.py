"""The eddy: takes a batch through all modules it needs, in the order a policy chooses.

Modules are conjuncts, and a conjunction is the same in any order, so a policy decides what it costs and never
what comes out. Rows that no module ahead can change leave the flight between two visits, so that a visit is
paid by rows that need it. Whether grouped filters are fused into one pass or are modules of their own is
decided by :mod:`engine.eddy.fusing`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.eddy.a_greedy import AGreedy
from engine.eddy.choices import ABOUT, POLICIES
from engine.eddy.flight import LEAVING_SHIFT, Flight, Module
from engine.eddy.fusing import FUSING, Fusing
from engine.eddy.policies import RoutingPolicy, Tickets, Visit
from engine.eddy.profiling import FlightSample
from engine.eddy.statistics import ModuleStatistics
from engine.model.attributes import Attribute

Timer = Callable[[], int]
"""Nanoseconds from any beginning."""

TIMED_NS = 100_000
"""A visit shorter than this says more of the calls it took than of its module, whose work counts instead."""

PACE_MAX, PACE_SHARE = 4.0, 1 / 16
"""Work is told in about nanoseconds; how long one takes here is learnt from visits that were timed."""


PROFILES_SHARE_MAX = 0.022
"""The largest share of the routing time that profiles may take: a profile of some thousand rows costs much
where visits are short.
"""

LATELY_NS = 50e6


@dataclass(slots=True)
class _Totals:
    module: Module
    visits: int = 0
    given: int = 0
    killed: int = 0
    cost: float = 0.0
    errors: int = 0


@dataclass(slots=True)
class _Spent:
    """What flights and profiles took lately, in ns. A profile that met cold caches is soon forgotten."""

    flights: float = 0.0
    profiles: float = 0.0

    def landed(self, spent: float) -> None:
        """A flight took so long."""
        self.flights += spent
        if self.flights > LATELY_NS:
            self.flights, self.profiles = self.flights / 2, self.profiles / 2

    @property
    def is_dear(self) -> bool:
        """Whether profiles took more than their share."""
        return self.profiles > PROFILES_SHARE_MAX * self.flights


class Eddy:
    """Routes flights. ``policy`` and ``timer`` may be replaced between flights: no answer changes.

    timer: measures costs, of user's functions above all; without one they are the work that modules say, a
    unit of which takes about a nanosecond. profile_cost: of the profiles that a-greedy asks for, likewise;
    where it is measured, profiles wait while they took more than PROFILES_SHARE_MAX of the time of flights.
    """

    def __init__(self, policy: RoutingPolicy | None = None, timer: Timer | None = None) -> None:
        self.policy: RoutingPolicy = policy or Tickets()
        self.timer = timer
        self.fusing = Fusing()
        self.visits = 0
        self.profile_cost = 0.0
        self._lately = _Spent()
        self._pace = 1.0
        self._totals: dict[str, _Totals] = {}

    def aside(self) -> Eddy:
        """Another one with such a policy, for rows that were there before, which tell nothing of new ones."""
        return Eddy(POLICIES.get(self.policy.name, Tickets)(), self.timer)

    def route(self, flight: Flight, modules: Sequence[Module]) -> float:
        """Visit every module that some row needs; the flight has landed then. Returns what it cost."""
        began = self.timer() if self.timer is not None else 0
        self.policy.begin()
        cost, killed = 0.0, 0
        ready = [module for module in modules if module.name not in flight.done]
        for module in ready:
            if module.name not in self._totals and (expected := module.expected_ns) is not None:
                self.policy.expect(module, expected)
        whole, sample = tuple(ready), self._sample(flight, len(ready))
        while ready:
            if killed > len(flight) >> LEAVING_SHIFT:
                flight.leave(ready)
            module = ready[0] if len(ready) == 1 else self.policy.choose(ready)
            ready.remove(module)
            visit = self._timed(module, flight)
            flight.done.add(module.name)
            cost += visit.cost
            killed = visit.given - visit.passed
            if visit.given:
                self.policy.observe(module, visit)
                self._count(module, visit)
        flight.land()
        if self.timer is not None:
            self._lately.landed(self.timer() - began)
        if sample is not None:
            cost += self._profile(sample, flight, whole)
        return cost

    # --- profiles -----------------------------------------------------------------------------------

    def _sample(self, flight: Flight, modules: int) -> FlightSample | None:
        """Rows that may be profiled, as they take off, where the policy asks for some."""
        if modules < 2 or not isinstance(self.policy, AGreedy):
            return None
        places = self.policy.picks(len(flight), waits=self.timer is not None and self._lately.is_dear)
        if not len(places):
            return None
        began = self.timer() if self.timer is not None else 0
        sample = FlightSample.of(flight, places)
        if self.timer is not None:
            self._profiling(self.timer() - began)
        return sample

    def _profile(self, sample: FlightSample, flight: Flight, modules: Sequence[Module]) -> float:
        """Run those of the sample that were dropped through all modules. Returns what it cost."""
        assert isinstance(self.policy, AGreedy)
        began = self.timer() if self.timer is not None else 0
        modules = self.policy.turn(modules)
        dropped, visits = sample.outcomes(flight, modules, self._profiled)
        self.policy.profile(modules, dropped, visits)
        if self.timer is None:
            cost = sum(visit.cost for visit in visits)
        else:
            cost = float(self.timer() - began)
        self._profiling(cost)
        return cost

    def _profiling(self, cost: float) -> None:
        self.profile_cost += cost
        self._lately.profiles += cost

    def _timed(self, module: Module, flight: Flight) -> Visit:
        if self.timer is None or module.name not in self._totals:  # the first may compile
            return module.visit(flight)
        began = self.timer()
        visit = module.visit(flight)
        spent = self.timer() - began
        if spent < TIMED_NS:
            return Visit(visit.given, visit.passed, visit.ended, visit.cost * self._pace, visit.errors)
        pace = min(PACE_MAX, max(1 / PACE_MAX, spent / max(1.0, visit.cost)))
        self._pace += PACE_SHARE * (pace - self._pace)
        return Visit(visit.given, visit.passed, visit.ended, float(spent), visit.errors)

    def _profiled(self, module: Module, flight: Flight) -> Visit:
        """Timed however short it is: all modules meet the same rows, and so the same calls."""
        if self.timer is None:
            return module.visit(flight)
        began = self.timer()
        visit = module.visit(flight)
        return Visit(visit.given, visit.passed, visit.ended, float(self.timer() - began))

    def _count(self, module: Module, visit: Visit) -> None:
        totals = self._totals.get(module.name)
        if totals is None:
            totals = self._totals[module.name] = _Totals(module)
        totals.module = module
        totals.visits += 1
        totals.given += visit.given
        totals.killed += visit.given - visit.passed
        totals.cost += visit.cost
        totals.errors += visit.errors
        self.visits += 1

    def passed(self, name: str) -> float | None:
        """Which share of the rows given a module let pass; None: it was not visited yet."""
        totals = self._totals.get(name)
        return None if totals is None else 1.0 - totals.killed / totals.given

    def forget(self, name: str) -> None:
        """A module is gone."""
        self._totals.pop(name, None)
        self.policy.forget(name)

    # --- what can be read and set -----------------------------------------------------------------

    def statistics(self) -> tuple[ModuleStatistics, ...]:
        """Statistics of the modules that were visited, those that the policy prefers first."""
        tickets = {name: self.policy.tickets(each.module) for name, each in self._totals.items()}
        held = [
            ModuleStatistics(
                name,
                each.module.queries,
                tickets[name],
                each.visits,
                each.given,
                each.killed,
                each.cost,
                each.errors,
            )
            for name, each in self._totals.items()
        ]
        return tuple(sorted(held, key=lambda each: (-tickets[each.name], each.name)))

    def attributes(self) -> tuple[Attribute, ...]:
        """What can be read of it, and what can be set."""
        return (
            Attribute(
                "policy", self.policy.name, f"which module a batch visits next: {ABOUT}", tuple(POLICIES)
            ),
            Attribute("grouped_filters", self.fusing.mode, "in one pass, or modules of their own", FUSING),
            Attribute("visits", self.visits, "visits of batches to modules"),
        )

    def set_attribute(self, name: str, value: str) -> None:
        """From the next flight on. Raises KeyError for what is not there."""
        if name == "policy":
            self.policy = POLICIES[value]()
        elif name == "grouped_filters" and value in FUSING:
            self.fusing.mode = value
        else:
            raise KeyError(name)

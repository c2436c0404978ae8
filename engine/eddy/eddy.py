"""The eddy: takes a batch through all modules it needs, in the order a policy chooses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from engine.eddy.flight import Flight, Module
from engine.model.attributes import Attribute


class Policy(Protocol):
    """Chooses among modules a batch has not visited yet; told afterwards what a visit did."""

    name: str

    def choose(self, ready: Sequence[Module]) -> Module: ...

    def observe(self, module: Module, given: int, passed: int) -> None: ...

    def forget(self, name: str) -> None:
        """A module is gone."""


class MostSelective:
    """First the module that let through the smallest share of what it was given.

    A module without a history counts as one that lets half through, so each gets its turn. Ties go to
    the first. O(modules) a choice.
    """

    name = "most-selective"

    def __init__(self) -> None:
        self._given: dict[str, int] = {}
        self._passed: dict[str, int] = {}

    def choose(self, ready: Sequence[Module]) -> Module:
        return min(ready, key=self._share)

    def observe(self, module: Module, given: int, passed: int) -> None:
        self._given[module.name] = self._given.get(module.name, 0) + given
        self._passed[module.name] = self._passed.get(module.name, 0) + passed

    def forget(self, name: str) -> None:
        self._given.pop(name, None)
        self._passed.pop(name, None)

    def _share(self, module: Module) -> float:
        given = self._given.get(module.name, 0)
        return self._passed.get(module.name, 0) / given if given else 0.5


class InOrder:
    """The order of registration, whatever happens: a baseline for the others."""

    name = "in-order"

    def choose(self, ready: Sequence[Module]) -> Module:
        return ready[0]

    def observe(self, module: Module, given: int, passed: int) -> None:
        """Nothing is learnt."""

    def forget(self, name: str) -> None:
        """Nothing is known."""


POLICIES: dict[str, Callable[[], Policy]] = {policy.name: policy for policy in (MostSelective, InOrder)}


class Eddy:
    """Routes flights. ``policy`` may be replaced between flights: the order changes no answer."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.visits = 0

    def route(self, flight: Flight, modules: Sequence[Module]) -> None:
        """Visit every module once."""
        ready = [module for module in modules if module.name not in flight.done]
        while ready:
            module = ready[0] if len(ready) == 1 else self.policy.choose(ready)
            ready.remove(module)
            given, passed = module.visit(flight)
            self.policy.observe(module, given, passed)
            flight.done.add(module.name)
            self.visits += 1

    def attributes(self) -> tuple[Attribute, ...]:
        """What can be read of it, and that the policy can be set."""
        return (
            Attribute("policy", self.policy.name, "which module a batch visits next", tuple(POLICIES)),
            Attribute("visits", self.visits, "visits of batches to residual modules"),
        )

    def set_policy(self, name: str) -> None:
        """From the next flight on. Raises KeyError for a name that is not in POLICIES."""
        self.policy = POLICIES[name]()

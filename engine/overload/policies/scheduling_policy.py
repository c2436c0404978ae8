"""What a scheduling policy is: it is told which modules have something to do, and says which runs next.

A policy decides the order of work and nothing else, so that answers are the same with all of them. Every call
costs O(log modules), amortised.
"""

from __future__ import annotations

from typing import ClassVar, Protocol

from engine.overload.scheduled_module import ScheduledModule, WaitingBatch


class SchedulingPolicy(Protocol):
    """One scheduler's."""

    name: ClassVar[str]
    asks_demand: ClassVar[bool]
    """Whether it goes by the weights of modules or the deadlines of batches."""

    def came(self, module: ScheduledModule, batch: WaitingBatch) -> None:
        """A batch waits at a module, perhaps behind others; told before the module is ready."""

    def estimated(self) -> None:
        """Costs and shares of modules are estimated in another way now; told before these are ready again."""

    def ready(self, module: ScheduledModule) -> None:
        """A module has a batch at the head of its queue that was not there, or its estimates changed."""

    def rest(self, module: ScheduledModule) -> None:
        """Nothing waits at a module any more, or it is gone."""

    def choose(self, now: float) -> ScheduledModule | None:
        """The module to run; None where nothing waits. now: for deadlines alone."""

    def ran(self, module: ScheduledModule, spent: float) -> None:
        """A module was run for so long; it is ready again if something waits at it."""

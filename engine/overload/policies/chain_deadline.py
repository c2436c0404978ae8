"""Chain with deadlines: while all results can still be in time the steepest segment goes first
(:mod:`engine.overload.policies.chain`); from the last instant at which they can, the batch that is due first.

Batches in order of deadline, d_1 <= d_2 <= ..., with remaining costs r_1, r_2, ...: all are in time if each
d_i - (r_1 + ... + r_i) has not passed, and the least of these is the last instant to begin. With one latency
for all, a result is late by one run of a module at most where first in, first out would have them all in time
and costs are as estimated: what comes later is due later. Where latencies differ, what comes with a short one
may find the time spent.

That instant is known from below: what comes lowers the bound by its cost, what is run does not. It is worked
out, O(batches * log batches), where the bound has passed; a decision costs O(log modules) otherwise.
"""

from __future__ import annotations

from typing import ClassVar

from engine.overload.policies.chain import Chain
from engine.overload.scheduled_module import ScheduledModule, WaitingBatch

NEVER = float("inf")


class ChainDeadline:
    """Batches without a deadline are never due."""

    name: ClassVar[str] = "chain-deadline"
    asks_demand: ClassVar[bool] = True

    def __init__(self) -> None:
        self._chain = Chain()
        self._waiting: dict[str, ScheduledModule] = {}
        self._begin = NEVER
        """No later than the last instant to begin with what is due."""

    def came(self, module: ScheduledModule, batch: WaitingBatch) -> None:
        if batch.deadline is not None:
            self._begin = min(self._begin, batch.deadline) - module.chart.remaining * batch.size

    def estimated(self) -> None:
        self._begin = -NEVER

    def ready(self, module: ScheduledModule) -> None:
        self._chain.ready(module)
        self._waiting[module.name] = module

    def rest(self, module: ScheduledModule) -> None:
        self._chain.rest(module)
        self._waiting.pop(module.name, None)

    def choose(self, now: float) -> ScheduledModule | None:
        if self._begin <= now:
            first, self._begin = self._due()
            if self._begin <= now:
                return first
        return self._chain.choose(now)

    def _due(self) -> tuple[ScheduledModule | None, float]:
        """The module at which the batch waits that is due first, and the last instant to begin."""
        due = sorted(
            (
                (batch.deadline, batch.origin, module.number, module.chart.remaining * batch.size, module)
                for module in self._waiting.values()
                for batch in module.queue
                if batch.deadline is not None
            ),
            key=lambda one: one[:3],
        )
        begin, cost = NEVER, 0.0
        for deadline, _, _, remaining, _ in due:
            cost += remaining
            begin = min(begin, deadline - cost)
        return due[0][4] if due else None, begin

    def ran(self, module: ScheduledModule, spent: float) -> None:
        """What it took changes nothing."""

"""Chain with deadlines: a batch whose deadline less its remaining cost has come goes first, the one that is
due longest before the others; while none is, chain (:mod:`engine.overload.policies.chain`).

What else is due counts nothing towards a batch's remaining cost, so where many are due at once each waits for
those before it.
"""

from __future__ import annotations

from typing import ClassVar

from engine.overload.policies.chain import Chain
from engine.overload.policies.ready_heap import ReadyHeap
from engine.overload.scheduled_module import ScheduledModule


class ChainDeadline:
    """Batches without a deadline are never due."""

    name: ClassVar[str] = "chain-deadline"
    asks_demand: ClassVar[bool] = True

    def __init__(self) -> None:
        self._chain = Chain()
        self._due = ReadyHeap()

    def ready(self, module: ScheduledModule) -> None:
        self._chain.ready(module)
        head = module.head
        if head.deadline is None:
            self._due.drop(module)
        else:
            self._due.put(module, (head.deadline - module.remaining * head.size, head.origin))

    def rest(self, module: ScheduledModule) -> None:
        self._chain.rest(module)
        self._due.drop(module)

    def choose(self, now: float) -> ScheduledModule | None:
        first = self._due.first()
        if first is not None and first[0][0] <= now:
            return first[1]
        return self._chain.choose(now)

    def ran(self, module: ScheduledModule, spent: float) -> None:
        """What it took changes no key."""

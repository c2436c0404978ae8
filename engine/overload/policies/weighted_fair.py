"""Weighted fair: of the plans that have something to do each gets time in proportion to its weight.

Each plan has a clock of its own that goes by the time it took over its weight; the plan whose clock is behind
goes first (Demers, Keshav, Shenker, 1989). One that had nothing to do gets no credit for that: its clock
begins where that of the last plan chosen stands. Within a plan the batch that came first.
"""

from __future__ import annotations

from typing import ClassVar

from engine.overload.policies.ready_heap import ReadyHeap
from engine.overload.scheduled_module import ScheduledModule, WaitingBatch


class WeightedFair:
    """O(log modules), and O(modules of the plan * log) when a plan was run."""

    name: ClassVar[str] = "weighted-fair"
    asks_demand: ClassVar[bool] = True

    def __init__(self) -> None:
        self._ready = ReadyHeap()
        self._clocks: dict[str, float] = {}
        self._waiting: dict[str, dict[str, ScheduledModule]] = {}
        self._clock = 0.0

    def came(self, module: ScheduledModule, batch: WaitingBatch) -> None:
        """The clock of a plan goes by what is run."""

    def estimated(self) -> None:
        """Clocks go by what runs really took."""

    def ready(self, module: ScheduledModule) -> None:
        waiting = self._waiting.setdefault(module.plan, {})
        if not waiting:
            self._clocks[module.plan] = max(self._clocks.get(module.plan, 0.0), self._clock)
        waiting[module.name] = module
        self._put(module)

    def rest(self, module: ScheduledModule) -> None:
        self._ready.drop(module)
        waiting = self._waiting.get(module.plan)
        if waiting is not None:
            waiting.pop(module.name, None)

    def choose(self, now: float) -> ScheduledModule | None:
        first = self._ready.first()
        if first is None:
            return None
        self._clock = max(self._clock, first[0][0])
        return first[1]

    def ran(self, module: ScheduledModule, spent: float) -> None:
        self._clocks[module.plan] = self._clocks.get(module.plan, self._clock) + spent / module.weight
        for waiting in self._waiting.get(module.plan, {}).values():
            if waiting.queue:
                self._put(waiting)

    def _put(self, module: ScheduledModule) -> None:
        self._ready.put(module, (self._clocks[module.plan], module.queue[0].origin))

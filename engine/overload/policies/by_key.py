"""Policies that order modules by a key of their own, which holds until the module is run or changes."""

from __future__ import annotations

from typing import ClassVar

from engine.overload.policies.ready_heap import Key, ReadyHeap
from engine.overload.scheduled_module import ScheduledModule, WaitingBatch


class ByKey:
    """The module with the least key goes first."""

    asks_demand: ClassVar[bool] = False

    def __init__(self) -> None:
        self._ready = ReadyHeap()

    def key(self, module: ScheduledModule) -> Key:
        """Returns the key of a module that has a batch at its head."""
        raise NotImplementedError

    def came(self, module: ScheduledModule, batch: WaitingBatch) -> None:
        """The key is of the batch at the head."""

    def estimated(self) -> None:
        """Keys come anew with :meth:`ready`."""

    def ready(self, module: ScheduledModule) -> None:
        self._ready.put(module, self.key(module))

    def rest(self, module: ScheduledModule) -> None:
        self._ready.drop(module)

    def choose(self, now: float) -> ScheduledModule | None:
        first = self._ready.first()
        return None if first is None else first[1]

    def ran(self, module: ScheduledModule, spent: float) -> None:
        """What it took changes no key."""

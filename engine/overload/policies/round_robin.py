"""Round robin: one batch of each module that has some, in turn (CIDR 2003, section 4.2)."""

from __future__ import annotations

from typing import ClassVar

from engine.overload.policies.by_key import ByKey
from engine.overload.policies.ready_heap import Key
from engine.overload.scheduled_module import ScheduledModule


class RoundRobin(ByKey):
    """The module that was run longest ago; one that was never run first of all."""

    name: ClassVar[str] = "round-robin"

    def __init__(self) -> None:
        super().__init__()
        self._turns = 0
        self._last: dict[str, int] = {}

    def key(self, module: ScheduledModule) -> Key:
        return (self._last.get(module.name, 0),)

    def ran(self, module: ScheduledModule, spent: float) -> None:
        self._turns += 1
        self._last[module.name] = self._turns
        if module.queue:
            self.ready(module)

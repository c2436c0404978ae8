"""The modules that have something to do, the one with the least key first.

A heap with entries that a later one of the same module makes void: put O(log modules), first O(log modules)
amortised.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from engine.overload.scheduled_module import ScheduledModule

Key = tuple[float, ...]

VOID_MIN = 64
"""Below so many void entries the heap is left as it is."""


class ReadyHeap:
    """Ties go to the module that came first."""

    def __init__(self) -> None:
        self._heap: list[tuple[Key, int, int, ScheduledModule]] = []
        self._version: dict[str, int] = {}
        self._versions = 0

    def __len__(self) -> int:
        return len(self._version)

    def put(self, module: ScheduledModule, key: Key) -> None:
        """A module is ready, or has another key."""
        self._versions += 1
        self._version[module.name] = self._versions
        heappush(self._heap, (key, module.number, self._versions, module))
        if len(self._heap) > VOID_MIN + 2 * len(self._version):
            self._heap = [entry for entry in self._heap if self._is_valid(entry[3], entry[2])]
            heapify(self._heap)

    def drop(self, module: ScheduledModule) -> None:
        """A module is not ready any more; passed over where it is not."""
        self._version.pop(module.name, None)

    def first(self) -> tuple[Key, ScheduledModule] | None:
        """The least key and its module, which stays; None where there is none."""
        while self._heap:
            key, _, version, module = self._heap[0]
            if self._is_valid(module, version):
                return key, module
            heappop(self._heap)
        return None

    def _is_valid(self, module: ScheduledModule, version: int) -> bool:
        return self._version.get(module.name) == version

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
        self._versions = version = self._versions + 1
        heap, versions = self._heap, self._version
        versions[module.name] = version
        heappush(heap, (key, module.number, version, module))
        if len(heap) > VOID_MIN + 2 * len(versions):
            self._heap = [entry for entry in heap if versions.get(entry[3].name) == entry[2]]
            heapify(self._heap)

    def drop(self, module: ScheduledModule) -> None:
        """A module is not ready any more; passed over where it is not."""
        self._version.pop(module.name, None)

    def first(self) -> tuple[Key, ScheduledModule] | None:
        """The least key and its module, which stays; None where there is none."""
        heap, versions = self._heap, self._version
        while heap:
            key, _, version, module = heap[0]
            if versions.get(module.name) == version:
                return key, module
            heappop(heap)
        return None

"""What is counted of a worker's memory: the process as it was without a row, the shards' state by structure,
what feeds remember, answers on their way. Used from any thread.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from engine.dataflow.strategy_state import ByStrategy, summed
from engine.model.source import SourceName
from engine.queries.footprint import Footprint


class MemoryAccounts:
    """Bytes by what they are taken for."""

    def __init__(self, base: int) -> None:
        """base: bytes of the process without a row."""
        self.others: Callable[[], int] = lambda: 0
        """What is counted beside the shards' state."""
        self._base = base
        self._lock = threading.Lock()
        self._footprints: dict[int, Footprint] = {}
        """By number of the shard."""
        self._answers = 0

    def counted(self, shard: int, footprint: Footprint | None) -> None:
        """The state of a shard, as it was counted last; None: it is gone."""
        with self._lock:
            if footprint is None:
                self._footprints.pop(shard, None)
            else:
                self._footprints[shard] = footprint

    @contextlib.contextmanager
    def answering(self, size: int) -> Iterator[None]:
        """An answer of so many bytes is on its way: the rows, and about as much in the format asked for."""
        with self._lock:
            self._answers += 2 * size
        try:
            yield
        finally:
            with self._lock:
                self._answers -= 2 * size

    def structures(self) -> dict[str, int]:
        """Bytes by structure."""
        found: dict[str, int] = {"process": self._base}
        for footprint in self._all():
            for name, size in footprint.structures.items():
                found[name] = found.get(name, 0) + size
        return found | {"answers_on_their_way": self._answers, "feeds": self.others()}

    def _all(self) -> list[Footprint]:
        return list(self._footprints.values())

    def kept_for_queries(self) -> int:
        """Bytes that the queries of a shard keep, the shard with most of it: no query keeps more."""
        return max((each.answers + each.composites + each.changes for each in self._all()), default=0)

    def by_strategy(self) -> ByStrategy:
        """What the changes of followed queries come from, as it was counted last."""
        return summed(footprint.by_strategy for footprint in self._all())

    def largest_source(self) -> tuple[SourceName, int] | None:
        """The source whose rows take the most, and their bytes; None where there are none."""
        by_source: dict[SourceName, int] = {}
        for footprint in self._all():
            for name, size in footprint.by_source.items():
                by_source[name] = by_source.get(name, 0) + size
        return max(by_source.items(), key=lambda one: one[1], default=None)

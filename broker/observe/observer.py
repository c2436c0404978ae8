"""Notes what the broker does, for the history of the last hour (:mod:`broker.observe.history`).

Every five seconds from counters, in O(sources + shards); every ten from the engines, which are asked between
two steps for O(entities but queries), and waited for by nobody: while a shard does not answer there is a gap.
"""

from __future__ import annotations

import asyncio
import contextlib
import time

from broker.node.node import Node
from broker.observe.cpu_kinds import CpuKinds
from broker.observe.entities import Entities
from broker.observe.history import ENTITIES_EVERY_MS, EVERY_MS, MeasuredHistory
from broker.observe.metrics import Metrics
from broker.observe.source_lines import SourceCounts, source_counts, source_lines
from tureen.errors import TureenError

STALE_S = 25.0
"""What entities of a kind take is not known where engines have not answered for so long."""


class Observer:
    """Observes a worker. Used on the event loop."""

    def __init__(self, node: Node, metrics: Metrics, entities: Entities) -> None:
        self.history = MeasuredHistory()
        self.entities = entities
        self._node = node
        self._metrics = metrics
        self._kinds = CpuKinds()
        self._before: SourceCounts | None = None

    async def run(self) -> None:
        """Note until cancelled."""
        engines = asyncio.create_task(self._engines())
        try:
            while True:
                await asyncio.sleep(_until_next_s(EVERY_MS))
                self._note(time.time_ns() // 1_000_000)
        finally:
            engines.cancel()

    async def _engines(self) -> None:
        while True:
            await asyncio.sleep(_until_next_s(ENTITIES_EVERY_MS))
            at_ms = time.time_ns() // 1_000_000
            with contextlib.suppress(TureenError):
                reading = await self.entities.read(1.0, queries=False)
                self._kinds.look(reading)
                self.history.note_entities(at_ms, reading)

    def _note(self, at_ms: int) -> None:
        node = self._node
        now = source_counts(node)
        self.history.note_sources(at_ms, source_lines(node, now, self._before))
        self._before = now
        share = self._metrics.cpu_share()
        kinds = self._kinds.of_process(share, time.monotonic(), STALE_S)
        self.history.note_broker(
            at_ms,
            {f"{name}_per_s": (value, f"{name}/s") for name, value in self._metrics.rates(node).items()}
            | {f"queries.{state}": (n, "queries") for state, n in node.directory.queries.states().items()}
            | {
                "memory_bytes": (node.setup.memory.used, "bytes"),
                "memory_budget_bytes": (node.setup.memory.budget.budget_bytes, "bytes"),
                "cpu_share": (share, "share"),
            }
            | {
                f"memory_bytes.{name}": (size, "bytes")
                for name, size in node.setup.memory.accounts.structures().items()
            }
            | {f"cpu_share.{kind}": (of, "share") for kind, of in (kinds or {}).items()},
        )


def _until_next_s(every_ms: int) -> float:
    """Seconds until a moment after the next multiple of an interval since 1970."""
    passed_ms = time.time_ns() // 1_000_000 % every_ms
    return (every_ms - passed_ms + 1) / 1_000

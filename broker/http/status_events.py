"""``GET /status/events``: whether the broker is well and what it does, in a frame a second for all who look.

It has what ``GET /status`` has and changes, in a form that costs O(sources + shards), however many queries
there are. A shard that does not answer keeps no frame back: what engines use is of their last reading, and
null where that is old.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import orjson

import tureen
from broker.http.event_hub import EventHub, EventStream
from broker.node.node import Node
from broker.observe.cpu_kinds import CpuKinds
from broker.observe.entities import Entities
from broker.observe.entity_reading import EntityReading
from broker.observe.metrics import Metrics
from broker.observe.source_lines import SourceCounts, source_counts, source_lines
from broker.observe.status import readiness

FRAME_MEMORY = (
    "level",
    "used_bytes",
    "budget_bytes",
    "limit_bytes",
    "uncounted_bytes",
    "counted_bytes",
)
"""Facts of the memory that frames have."""
DEGRADED_MAX = 100
"""Most entries of ``degraded`` that are sent; how many there are is sent too."""
READ_PART = 50
"""Engines are read in a fiftieth of the time at most."""
STALE_S = 10.0


class StatusFrames:
    """Makes the frames of one interval."""

    is_over = False

    def __init__(self, node: Node, metrics: Metrics, entities: Entities, every_s: float) -> None:
        self._node = node
        self._metrics = metrics
        self._entities = entities
        self._every_s = every_s
        self._kinds = CpuKinds()
        self._reading: asyncio.Task[EntityReading] | None = None
        self._read_s = 0.0
        """When engines may be read again, on the monotonic clock."""
        self._before: SourceCounts | None = None

    async def frame(self) -> bytes:
        """As a JSON object."""
        self._read()
        now = source_counts(self._node)
        told = status_frame(self._node, self._metrics, self._kinds, now, self._before)
        self._before = now
        return orjson.dumps(told)

    def _read(self) -> None:
        """Have engines read, if it is time; nothing is waited for."""
        last, now_s = self._entities.last(), time.monotonic()
        if last is not None:
            self._kinds.look(last)
        if now_s >= self._read_s and (self._reading is None or self._reading.done()):
            self._reading = asyncio.create_task(self._entities.read(self._every_s / 2, queries=False))
            self._reading.add_done_callback(lambda done: self._took(done, now_s))

    def _took(self, done: asyncio.Task[EntityReading], began_s: float) -> None:
        if not done.cancelled():
            done.exception()  # it is told by what is old
        self._read_s = began_s + max(self._every_s / 2, READ_PART * (time.monotonic() - began_s))


def status_frame(
    node: Node, metrics: Metrics, kinds: CpuKinds, now: SourceCounts, before: SourceCounts | None
) -> dict[str, Any]:
    """The facts of a frame. before: the counts of the frame before."""
    facts = readiness(node)
    directory, memory, share = node.directory, node.setup.memory.facts(), metrics.cpu_share()
    return {
        "at_ms": time.time_ns() // 1_000_000,
        "version": tureen.__version__,
        "instance": node.life.instance,
        "uptime_s": round(time.monotonic() - node.life.began_s, 1),
        "ready": facts["ready"],
        "reasons": facts["reasons"],
        "degraded": facts["degraded"][:DEGRADED_MAX],
        "degraded_total": len(facts["degraded"]),
        "rates": metrics.rates(node),
        "queries": directory.queries.states(),
        "memory": {name: memory[name] for name in FRAME_MEMORY},
        "cpu": {"share": share, "by_kind": kinds.of_process(share, time.monotonic(), STALE_S)},
        "sources": source_lines(node, now, before),
        "sources_total": len(directory.sources),
        "shards": [
            {
                "shard": shard.number,
                "state": shard.state,
                "stall": shard.stall,
                "queries": directory.queries.by_shard[shard.number],
                "position": str(shard.view().position),
                "changes_waiting": shard.waiting(),
            }
            for shard in sorted(node.shards, key=lambda one: one.number)
        ],
    }


class StatusEvents:
    """Answers requests for the stream."""

    def __init__(self, node: Node, metrics: Metrics, entities: Entities, hub: EventHub) -> None:
        self._node = node
        self._metrics = metrics
        self._entities = entities
        self._hub = hub

    def stream(self, every_ms: int, as_sse: bool) -> EventStream:
        """The response; its first frame comes at once. Raises TooManyFeeds, BrokerUnavailable."""
        every_s = every_ms / 1_000
        return self._hub.stream(
            ("status", every_ms),
            "status",
            every_s,
            as_sse,
            lambda: StatusFrames(self._node, self._metrics, self._entities, every_s),
            at_once=True,
        )

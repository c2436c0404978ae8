"""``GET /entities/events``: which entities moved in each interval, and by how much.

What moved is the difference of two readings of the engines; it is worked out in another thread. Frames are
made once for all who ask for the same (:mod:`broker.http.event_hub`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from broker.http.event_hub import EventHub, EventStream
from broker.http.row_samples import row_sample
from broker.node.node import Node
from broker.observe.entities import FRESH_S, Entities
from broker.observe.entity_reading import EntityReading, statistics_of
from engine.model.attributes import AttributeValue
from tureen.errors import UnknownQuery

COUNTED = ("cpu_ns", "rows_in", "rows_out", "bytes_in", "bytes_out")
"""Statistics that only grow: events have how much."""

Statistics = Mapping[str, Mapping[str, AttributeValue]]


class EntityEvents(NamedTuple):
    """What a listener asks for. kind, query (an id), queries: as of lists. rows: of the query's answer."""

    kind: str | None
    query: str | None
    queries: bool
    every_ms: int
    rows: int


class EntityFrames:
    """Makes the frames of one kind. It is over once its query is gone."""

    def __init__(self, node: Node, entities: Entities, wanted: EntityEvents, sample_bytes_max: int) -> None:
        self.is_over = False
        self._node = node
        self._entities = entities
        self._wanted = wanted
        self._sample_bytes_max = sample_bytes_max
        self._before: Statistics | None = None

    async def frame(self) -> bytes | None:
        """What moved since the last; None at first."""
        wanted, before = self._wanted, self._before
        fresh_s = min(FRESH_S, wanted.every_ms / 2_000)
        reading = await self._entities.read(fresh_s, queries=wanted.queries or wanted.query is not None)
        sample = await self._sample() if wanted.rows and before is not None else None
        now, told = await asyncio.to_thread(self._made, reading, before, sample)
        self._before = now
        return told

    def _made(
        self, reading: EntityReading, before: Statistics | None, sample: dict[str, Any] | None
    ) -> tuple[Statistics, bytes | None]:
        wanted = self._wanted
        now: Statistics = {}
        try:
            now = statistics_of(reading, wanted.kind, wanted.query, queries=wanted.queries)
        except UnknownQuery:
            self.is_over = True
        if before is None:
            return now, None
        event: dict[str, Any] = {
            "at_ms": time.time_ns() // 1_000_000,
            "entities": moved(before, now),
            "gone": sorted(before.keys() - now.keys()),
        }
        if sample is not None:
            event["sample"] = sample
        return now, orjson.dumps(event)

    async def _sample(self) -> dict[str, Any]:
        name = self._wanted.query
        entry = None if name is None else self._node.directory.queries.get(name)
        if name is None or entry is None or entry.shard is None:
            return {"error": UnknownQuery().as_dict()}
        view = self._node.shards[entry.shard].view()
        return await asyncio.to_thread(row_sample, view, name, self._wanted.rows, self._sample_bytes_max)


def stream(
    hub: EventHub, node: Node, entities: Entities, wanted: EntityEvents, as_sse: bool, sample_bytes_max: int
) -> EventStream:
    """The response. Raises TooManyFeeds, BrokerUnavailable."""
    return hub.stream(
        wanted,
        "entities",
        wanted.every_ms / 1_000,
        as_sse,
        lambda: EntityFrames(node, entities, wanted, sample_bytes_max),
    )


def moved(before: Statistics, now: Statistics) -> list[dict[str, Any]]:
    """Tell by how much the counts and the size of entities changed, for those where one did. New entities
    began at zero.

    >>> moved({"a": {"rows_in": 3, "memory_bytes": 8}}, {"a": {"rows_in": 5, "memory_bytes": 4}})
    [{'id': 'a', 'rows_in': 2, 'memory_bytes': 4, 'memory_grown_bytes': -4}]
    """
    found = []
    for id_, one in now.items():
        was = before.get(id_, {})
        grown = {name: _number(one[name]) - _number(was.get(name)) for name in COUNTED if name in one}
        counts = {name: by for name, by in grown.items() if by}
        size = _number(one["memory_bytes"])
        size_grown = size - _number(was.get("memory_bytes"))
        if counts or size_grown:
            sized = {"memory_bytes": size, "memory_grown_bytes": size_grown}
            found.append({"id": id_, **counts, **sized})
    return found


def _number(value: AttributeValue) -> int:
    return value if isinstance(value, int) else 0

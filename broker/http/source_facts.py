"""GET /sources/{name}: one source whole, with its partitions, what is unread in Kafka, and what reads it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from broker.http.source_lists import SourceLists
from broker.node.node import Node
from engine.model.source import Stream
from engine.windows.source_clock import PartitionTime
from topics.admin import Admin
from tureen.errors import TureenError, UnknownSource

OFFSETS_AGE_S = 1.0
TOPICS_MAX = 256
"""Topics whose offsets are remembered; those asked for longest ago are forgotten."""


@dataclass(frozen=True, slots=True)
class Offsets:
    """Holds the offsets of a topic's partitions in Kafka: the first that is there, and the one after the
    last.
    """

    begin: Mapping[int, int]
    end: Mapping[int, int]


class TopicOffsets:
    """Asks Kafka at most once a second for a topic, however many want to know."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._known: dict[str, tuple[float, asyncio.Task[Offsets]]] = {}

    async def of(self, topic: str) -> Offsets:
        """Raises KafkaUnavailable, TopicMissing."""
        asked_s, task = self._known.pop(topic, (0.0, None))
        if task is None or (task.done() and time.monotonic() - asked_s > OFFSETS_AGE_S):
            asked_s, task = time.monotonic(), asyncio.create_task(asyncio.to_thread(self._ask, topic))
            task.add_done_callback(_seen)
        self._known[topic] = asked_s, task
        if len(self._known) > TOPICS_MAX:
            del self._known[next(iter(self._known))]
        return await asyncio.shield(task)

    def _ask(self, topic: str) -> Offsets:
        wanted = {topic: range(self._admin.partitions(topic))}
        return Offsets(self._admin.begins(wanted)[topic], self._admin.ends(wanted)[topic])


def _seen(task: asyncio.Task[Offsets]) -> None:
    """Who asked may have gone: an error nobody waits for is none."""
    if not task.cancelled():
        task.exception()


class SourceFacts:
    """Describes single sources."""

    def __init__(self, node: Node, lists: SourceLists) -> None:
        self._node = node
        self._lists = lists
        self._offsets = TopicOffsets(node.setup.admin)

    async def one(self, name: str) -> dict[str, Any]:
        """Raises UnknownSource."""
        facts = await self._lists.named(name)
        if facts is None:
            raise UnknownSource(name, hint="GET /sources lists those there are")
        facts["at_ms"] = time.time_ns() // 1_000_000
        facts["read_by"] = self._read_by(name) | {"queries": facts["queries"]}
        entry = self._node.directory.sources.get(name)
        if entry is None:
            return facts | {"time_rules": None, "partitions": [], "kafka_error": None}
        shard = self._node.shards[entry.shard]
        lagging = shard.lagging(name)
        offsets, error = None, None
        try:
            offsets = await self._offsets.of(entry.stream.topic)
        except TureenError as away:
            error = away.as_dict()
        times = shard.view().partitions_of(name, lagging)
        return facts | {
            "time_rules": _rules(entry.stream),
            "partitions": _partitions(times, offsets, lagging, facts["now_ms"]),
            "kafka_error": error,
        }

    def _read_by(self, name: str) -> dict[str, Any]:
        there = self._node.directory
        return {
            "views": sorted(there.definitions.views(name)),
            "summaries": there.summaries_of(name),
            "referring": sorted(there.definitions.referring(name)),
        }


def _rules(stream: Stream) -> dict[str, Any]:
    """How time passes in a stream, and how long its rows stay."""
    return {
        "timestamp": stream.timestamp_column,
        "lateness_ms": stream.lateness_ms,
        "idle_timeout_ms": stream.idle_timeout_ms,
        "idle_advances": stream.idle_advances,
        "future_max_ms": stream.future_max_ms,
        "past_max_ms": stream.past_max_ms,
        "retain_ms": stream.retain_ms,
    }


def _partitions(
    times: list[PartitionTime], offsets: Offsets | None, lagging: frozenset[int], now_ms: int | None
) -> list[dict[str, Any]]:
    """By number, those of Kafka that were never read too. holds_now: NOW can be no later for this one."""
    known = {one.partition: one for one in times}
    begin, end = (offsets.begin, offsets.end) if offsets is not None else ({}, {})
    found = []
    for number in sorted({*known, *end, *lagging}):
        one = known.get(number)
        read = None if one is None else one.next_offset
        last = end.get(number)
        first = begin.get(number)
        unread = None if last is None or first is None else max(0, last - max(first, read or 0))
        idle = one is not None and one.idle_since_ms is not None
        mark = None if one is None else one.watermark_ms
        found.append(
            {
                "partition": number,
                "watermark_ms": mark,
                "latest_ms": None if one is None else one.latest_ms,
                "promised_ms": None if one is None else one.promised_ms,
                "active_ms": None if one is None else one.active_ms,
                "idle_since_ms": None if one is None else one.idle_since_ms,
                "holds_now": not idle and mark is not None and now_ms is not None and mark <= now_ms,
                "holds_back_ms": 0 if one is None else one.behind_ms,
                "next_offset": read,
                "begin_offset": first,
                "end_offset": last,
                "unread": unread,
                "lagging": number in lagging,
            }
        )
    return found

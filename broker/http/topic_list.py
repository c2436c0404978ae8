"""GET /topics: the topics of Kafka, how much is in each, and what reads it."""

from __future__ import annotations

import asyncio
from typing import Any

from broker.base.settings import Settings
from broker.node.node import Node

TOPICS_MAX = 2_000
"""Most topics that are listed, the first by name; Kafka is asked for the offsets of all their partitions at
once.
"""


class TopicList:
    """Lists topics."""

    def __init__(self, settings: Settings, node: Node) -> None:
        self._settings = settings
        self._node = node

    async def listed(self, search: str, own: bool) -> dict[str, Any]:
        """``{topics: [{topic, partitions, records, sources}], total}``, by name.

        search: part of the name. own: also the broker's and Kafka's. Raises KafkaUnavailable.
        """
        known = await asyncio.to_thread(self._node.setup.admin.topics)
        wanted = search.lower()
        names = sorted(
            name
            for name in known
            if wanted in name.lower() and (own or not self._settings.names.is_own(name))
        )
        counts = await asyncio.to_thread(self._records, {one: known[one] for one in names[:TOPICS_MAX]})
        readers: dict[str, list[str]] = {}
        for entry in self._node.directory.sources.values():
            readers.setdefault(entry.stream.topic, []).append(entry.stream.name)
        topics = [
            {
                "topic": name,
                "partitions": known[name],
                "records": counts[name],
                "sources": sorted(readers.get(name, [])),
            }
            for name in names[:TOPICS_MAX]
            if name in counts
        ]
        return {"topics": topics, "total": len(names)}

    def _records(self, partitions: dict[str, int]) -> dict[str, int]:
        """At most so many are in each; those that went meanwhile are left out."""
        there = {
            name for name, facts in self._node.setup.admin.describe(partitions).items() if facts is not None
        }
        asked = {name: range(count) for name, count in partitions.items() if name in there}
        begins, ends = self._node.setup.admin.begins(asked), self._node.setup.admin.ends(asked)
        return {
            name: sum(end - begins[name].get(number, 0) for number, end in ends[name].items())
            for name in asked
        }

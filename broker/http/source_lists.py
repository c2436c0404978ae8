"""What lists of sources show, taken for all who ask: how many queries read each takes a look at every query.

One look serves whoever asks meanwhile. It is made in another thread, and so seldom that looking takes at most
:data:`SHARE_MAX` of the time.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal

from broker.worker.node import Node
from broker.worker.status import reader_counts, source_list

Sort = Literal["name", "kind", "state", "now_ms", "rows", "late", "dead_letters", "queries", "shed"]
SHORT = (
    *(
        "name",
        "kind",
        "topic",
        "state",
        "error",
        "shard",
        "time",
        "now_ms",
        "rows",
        "pending",
        "late",
        "rejected",
    ),
    *("dead_letters", "counted_from_ms", "records", "entered", "shed", "unread", "shedding_share", "lagging"),
    "queries",
)
"""What the pages of a list have of each."""
AGE_S = 1.0
SHARE_MAX = 0.02


class SourceLists:
    """Of one node. Used on the event loop alone."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._readers: Mapping[str, int] = Counter()
        self._until_s = 0.0
        self._looking: asyncio.Task[Mapping[str, int]] | None = None

    async def readers(self) -> Mapping[str, int]:
        """How many queries read each source or view, as of a moment ago."""
        if time.monotonic() < self._until_s:
            return self._readers
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        return await asyncio.shield(self._looking)

    async def _look(self) -> Mapping[str, int]:
        began_s = time.monotonic()
        self._readers = await asyncio.to_thread(reader_counts, self._node)
        ended_s = time.monotonic()
        self._until_s = ended_s + max(AGE_S, (ended_s - began_s) / SHARE_MAX)
        return self._readers

    async def page(
        self, search: str, sort: Sort, descending: bool, offset: int, limit: int
    ) -> dict[str, Any]:
        """``{sources, total, offset, at_ms}``, each source in short. search: part of the name or the topic.
        What has no value in the column of ``sort`` comes last. O(sources log sources).
        """
        wanted = search.lower()
        found = [
            one
            for one in source_list(self._node, await self.readers())
            if wanted in one["name"].lower() or wanted in (one["topic"] or "").lower()
        ]
        known = [one for one in found if one.get(sort) is not None]
        known.sort(key=lambda one: (one[sort], one["name"]), reverse=descending)
        known += [one for one in found if one.get(sort) is None]
        return {
            "sources": [{fact: one.get(fact) for fact in SHORT} for one in known[offset : offset + limit]],
            "total": len(known),
            "offset": offset,
            "at_ms": time.time_ns() // 1_000_000,
        }

    async def named(self, name: str) -> dict[str, Any] | None:
        """One source as lists show it; None: there is none. O(sources)."""
        readers = await self.readers()
        return next((one for one in source_list(self._node, readers, only=name)), None)

"""What lists of sources show, searched, sorted and in pages."""

from __future__ import annotations

import time
from typing import Any, Literal

from broker.node.node import Node
from broker.observe.status import source_list

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
        "behind_ms",
        "rows",
        "pending",
        "late",
        "rejected",
    ),
    *("dead_letters", "counted_from_ms", "records", "entered", "shed", "unread", "shedding_share", "lagging"),
    "catching_up",
    "queries",
)
"""What the pages of a list have of each."""


class SourceLists:
    """Lists the sources of one node. Used on the event loop alone."""

    def __init__(self, node: Node) -> None:
        self._node = node

    async def page(
        self, search: str, sort: Sort, descending: bool, offset: int, limit: int
    ) -> dict[str, Any]:
        """``{sources, total, offset, at_ms}``, each source in short. search: part of the name or the topic.
        What has no value in the column of ``sort`` comes last. O(sources log sources).
        """
        wanted = search.lower()
        found = [
            one
            for one in source_list(self._node)
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
        return next(iter(source_list(self._node, only=name)), None)

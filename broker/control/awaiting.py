"""Queries that wait for their output, for memory, or until they are worked out: they are said again."""

from __future__ import annotations

import time
from collections.abc import Iterable

from broker.base.internal import Outcome

AWAITED = (
    "registry_unavailable",
    "kafka_unavailable",
    "memory_budget",
    "shard_held",
    "being_prepared",
    "being_removed",
)
"""Errors of such queries."""
AWAITED_S = 2.0
"""They are said again as often."""


class AwaitingQueries:
    """Those of which the worker's last outcome says that they wait."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._said_s = 0.0

    def note(self, name: str, outcome: Outcome, *, stands: bool) -> None:
        """What became of the last command of a query. stands: it is in the registry."""
        code = (outcome.get("error") or {}).get("code")
        if stands and outcome["state"] == "PENDING" and code in AWAITED:
            self._names.add(name)
        else:
            self._names.discard(name)

    def due(self, others: Iterable[str]) -> set[str]:
        """Those that are to be said again now, without others that are anyway."""
        now_s = time.monotonic()
        if now_s - self._said_s <= AWAITED_S:
            return set()
        self._said_s = now_s
        return self._names.difference(others)

"""Queries that wait for their output, for memory, or until they are worked out: they are said again.

So are those that were refused, by topic, for what passes: no room, or a defect that may be gone. They are
said again less often, some at a time, and what becomes of them is told as ever.

About queries that are worked out the worker is asked soon, and then less and less often
(:meth:`AwaitingQueries.pause`): they stand shortly after they can.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterable
from itertools import islice, takewhile

from broker.base.internal import Outcome

PREPARED = "being_prepared"
"""The error of a query that is worked out."""
AWAITED = (
    "registry_unavailable",
    "kafka_unavailable",
    "memory_budget",
    "shard_held",
    PREPARED,
    "being_removed",
)
"""Errors of such queries."""
AWAITED_S = 2.0
"""They are said again as often."""
SOON_S = 0.02
SLOWER = 1.5
"""About a query that is worked out the worker is asked after so long, and then less often by this factor."""
PASSING = ("memory_budget", "limit_exceeded", "command_failed")
"""Errors of queries that are refused for now."""
REFUSED_S = 30.0
"""After so long refused queries are said again."""
REFUSED_MAX = 1_000
"""Most refused queries that are said again at once."""


class AwaitingQueries:
    """Those of which the worker's last outcome says that they wait."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._said_s = 0.0
        self._worked_out: set[str] = set()
        self._pause_s = SOON_S
        self._news = asyncio.Event()
        self._refused: dict[str, float] = {}
        """Until when they are left alone, the first to be said again first."""

    def note(self, name: str, outcome: Outcome, *, stands: bool) -> None:
        """What became of the last command of a query. stands: it is in the registry."""
        code = (outcome.get("error") or {}).get("code")
        if stands and outcome["state"] == "PENDING" and code in AWAITED:
            self._names.add(name)
        else:
            self._names.discard(name)
        if name in self._names and code == PREPARED:
            if name not in self._worked_out:
                self._worked_out.add(name)
                self._pause_s = SOON_S
                self._news.set()
        else:
            self._worked_out.discard(name)
        self._refused.pop(name, None)
        if stands and outcome["state"] == "ERROR" and code in PASSING:
            self._refused[name] = time.monotonic() + REFUSED_S

    async def pause(self, most_s: float) -> None:
        """Return when the worker is to be asked again what has changed, after so many seconds at most."""
        pause_s = most_s
        if self._worked_out:
            pause_s, self._pause_s = min(self._pause_s, most_s), self._pause_s * SLOWER
        self._news.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), pause_s)

    def due(self, others: Iterable[str]) -> set[str]:
        """Those that are to be said again now, without others that are anyway."""
        now_s = time.monotonic()
        ready = takewhile(lambda name: self._refused[name] <= now_s, self._refused)
        found = set(islice(ready, REFUSED_MAX))
        for name in found:
            self._refused[name] = self._refused.pop(name) + REFUSED_S
        if now_s - self._said_s > AWAITED_S:
            self._said_s = now_s
            found |= self._names
        return found.difference(others)

"""Questions to a shard's engine: other threads ask, the shard's own thread answers between two steps.

What is found is then as of a journalled step, and nothing changes while it is looked for. A few are answered
at a time, so that data does not wait long. An answer comes when the step at hand is journalled, so whoever
asks should give up after a while: Kafka may be away.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Container, Mapping
from concurrent.futures import Future
from threading import Lock
from typing import Any, TypeVar

from engine.engine import Engine

Found = TypeVar("Found")

AT_ONCE = 32
BUCKETS = 12
"""Counts of answers are kept for so many periods: a query asked once a minute is not one that never is."""


class Questions:
    """What waits to be asked. ``put`` from any thread, the rest by the shard's alone."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Callable[[Engine], Any], Future[Any]]] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, work: Callable[[Engine], Found]) -> Future[Found]:
        """The future has what ``work`` returns, or raises what it raises."""
        future: Future[Found] = Future()
        self._waiting.append((work, future))
        return future

    def answer(self, engine: Engine) -> None:
        """Answer the first of them."""
        for _ in range(min(AT_ONCE, len(self._waiting))):
            work, future = self._waiting.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(work(engine))
            except Exception as refused:  # noqa: BLE001  (whoever asked raises it)
                future.set_exception(refused)

    def refuse(self, error: Exception) -> None:
        """Nobody will answer any more."""
        while self._waiting:
            _, future = self._waiting.popleft()
            if future.set_running_or_notify_cancel():
                future.set_exception(error)


class Asked:
    """How often each query was asked for its answer, lately, and what its answers took. ``count`` and
    ``spend`` from any thread.
    """

    def __init__(self, period_s: float) -> None:
        self._period_s = period_s
        self._lock = Lock()
        self._now: Counter[str] = Counter()
        self._before: deque[Counter[str]] = deque(maxlen=BUCKETS)
        self._lately: set[str] = set()
        self._turned_s = time.monotonic()
        self._spent_s: dict[str, float] = {}
        self._total_s = 0.0

    def spend(self, query_id: str, seconds: float) -> None:
        """An answer took so much computing time."""
        with self._lock:
            self._spent_s[query_id] = self._spent_s.get(query_id, 0.0) + seconds
            self._total_s += seconds

    @property
    def total_ns(self) -> float:
        """Computing time of all answers so far, of queries that are gone too."""
        return 1e9 * self._total_s

    def spent_ns(self, standing: Container[str]) -> dict[str, float]:
        """Computing time of all answers so far, of queries that stand; of the others it is forgotten."""
        with self._lock:
            for name in [name for name in self._spent_s if name not in standing]:
                del self._spent_s[name]
            return {name: 1e9 * seconds for name, seconds in self._spent_s.items()}

    def count(self, query_id: str) -> None:
        with self._lock:
            self._now[query_id] += 1
            self._lately.add(query_id)

    def lately(self, *, clear: bool) -> frozenset[str]:
        """The queries that were asked for since this was last cleared."""
        with self._lock:
            found = frozenset(self._lately)
            if clear:
                self._lately.clear()
        return found

    def turn(self) -> tuple[Mapping[str, int], float] | None:
        """Answers by query and in how many seconds; None until a period has passed since the last."""
        now_s = time.monotonic()
        if now_s - self._turned_s < self._period_s:
            return None
        self._turned_s = now_s
        with self._lock:
            self._before.append(self._now)
            self._now = Counter()
        total: Counter[str] = Counter()
        for one in self._before:
            total.update(one)
        return total, self._period_s * len(self._before)

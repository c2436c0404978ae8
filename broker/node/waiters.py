"""Who waits for the outcome of a record that was written to a control topic.

A record is known by (topic, partition, offset). Its outcome may come before its writer asks, since the report
of delivery and the control's command race: outcomes that nobody asked for yet are kept while somebody
writes records to wait for, and the last of them. One event loop, no locks, O(1).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence

from broker.base.internal import Outcome

KEPT_MAX = 200_000
"""More than the records of the largest bulk request."""

Origin = tuple[str, int, int]


class Waiters:
    """Outcomes by origin, for those who wait."""

    def __init__(self) -> None:
        self._waiting: dict[Origin, asyncio.Future[Outcome]] = {}
        self._known: OrderedDict[Origin, Outcome] = OrderedDict()
        self._expecting = 0

    @contextlib.contextmanager
    def expecting(self) -> Iterator[None]:
        """Within, records are written whose outcomes are then asked for."""
        self._expecting += 1
        try:
            yield
        finally:
            self._expecting -= 1
            if not self._expecting:
                self._known.clear()

    def tell(self, origin: Origin, outcome: Outcome) -> None:
        """The outcome of a record is known."""
        future = self._waiting.pop(origin, None)
        if future is not None and not future.done():
            future.set_result(outcome)
            return
        if not self._expecting:
            return
        self._known[origin] = outcome
        if len(self._known) > KEPT_MAX:
            self._known.popitem(last=False)

    def when_told(self, origin: Origin, then: Callable[[Outcome], None]) -> None:
        """Call ``then`` with an outcome that nobody waits for any more, once it is known."""
        future = self._waiting.setdefault(origin, asyncio.get_running_loop().create_future())
        future.add_done_callback(lambda told: then(told.result()))

    async def outcomes(self, origins: Sequence[Origin], timeout_s: float) -> list[Outcome | None]:
        """Wait for many, together; None for those that take longer than that."""
        futures: dict[Origin, asyncio.Future[Outcome]] = {}
        known: dict[Origin, Outcome | None] = {}
        loop = asyncio.get_running_loop()
        for origin in origins:
            found = self._known.pop(origin, None)
            if found is not None:
                known[origin] = found
            else:
                futures[origin] = self._waiting.setdefault(origin, loop.create_future())
        if futures:
            await asyncio.wait(futures.values(), timeout=timeout_s)
        for origin, future in futures.items():
            if future.done():
                known[origin] = future.result()
            else:
                known[origin] = None
                self._waiting.pop(origin, None)
        return [known[origin] for origin in origins]

    async def outcome(self, origin: Origin, timeout_s: float) -> Outcome | None:
        """Wait for it; None when it takes longer than that."""
        known = self._known.pop(origin, None)
        if known is not None:
            return known
        future = self._waiting.setdefault(origin, asyncio.get_running_loop().create_future())
        try:
            return await asyncio.wait_for(asyncio.shield(future), timeout_s)
        except TimeoutError:
            self._waiting.pop(origin, None)
            return None

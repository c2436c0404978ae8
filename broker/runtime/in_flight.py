"""What all connections of clients hold together, and how long they may take.

A request that is half sent, or an answer that is not read, holds a connection and memory for as long as its
caller likes. So every wait for a caller has an end:

* the head of a request has ``head_s`` in all;
* a body, and an answer, may be waited for ``wait_s`` at first, and longer by what moves meanwhile at
  ``rate`` bytes a second. What moves at that rate goes on, whatever its size; what is slower ends after
  ``wait_s / (1 - its rate / rate)`` at most. Time in which the broker itself does not read is not counted.

And what they hold is bounded: so many connections, so many bytes of bodies that are not worked off yet. Each
refusal is counted, and logged once a second at most.

Cost: nothing for a connection that nobody waits for; those that are waited for are looked at twice a second.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Protocol

from broker.base import logs
from tureen.errors import TureenError

SWEEP_S = 0.5

log = logs.get()


class TooManyConnections(TureenError):
    """More connections are open than ``http_connections_max``."""

    code = "too_many_connections"

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"{limit:,} connections are open, which is all there may be (http_connections_max)",
            hint="try again in a second",
        )


class TooBusy(TureenError):
    """Bodies of other requests fill what there is for them."""

    code = "too_busy"

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"requests that are being worked off fill {limit:,} bytes (requests_bytes_max)",
            hint="nothing of this request is known to be done; try again in a second",
        )


class RequestTimeout(TureenError):
    """The rest of a request did not come in time."""

    code = "request_timeout"

    def __init__(self, part: str) -> None:
        super().__init__(
            f"the rest of the request's {part} did not come in time",
            hint=f"request_{part}_timeout_ms says how long the broker waits"
            + (", and request_rate_bytes_min how slow it may be" if part == "body" else ""),
        )


@dataclass(frozen=True, slots=True)
class Patience:
    """connections, bytes: how many there may be. head_s, wait_s: seconds. rate: bytes a second."""

    connections: int
    bytes: int
    head_s: float
    wait_s: float
    rate: int

    def extended(self, due_s: float, now_s: float, moved: int) -> float:
        """Until when to wait, after so many bytes have moved."""
        return min(due_s + moved / self.rate, now_s + self.wait_s)

    def until(self, now_s: float, size: int) -> float:
        """Until when to wait for so many bytes, of which it is not seen how they move."""
        return now_s + self.wait_s + size / self.rate


class Waiting(Protocol):
    """A connection whose caller is waited for."""

    def sweep(self, now_s: float, passed_s: float) -> None:
        """Give up what is due; ``passed_s`` have passed since the last time."""


class InFlight:
    """Shared by all connections. Used by the event loop alone."""

    def __init__(self, patience: Patience) -> None:
        self.patience = patience
        self.connections = 0
        self.bytes = 0
        self.waiting: set[Waiting] = set()
        self.refused: Counter[str] = Counter()
        """By reason: connections, bytes, head, body, answer."""
        self._logged: Counter[str] = Counter()

    async def tick(self) -> None:
        """Give up what is due, until cancelled."""
        loop = asyncio.get_running_loop()
        before_s = loop.time()
        while True:
            await asyncio.sleep(SWEEP_S)
            now_s = loop.time()
            for one in list(self.waiting):
                one.sweep(now_s, now_s - before_s)
            before_s = now_s
            if self.refused != self._logged:
                log.warning("requests_refused", **dict(self.refused - self._logged))
                self._logged = Counter(self.refused)

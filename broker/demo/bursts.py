"""Bursts of the demo: for some seconds the replay runs many times as fast, and it is measured who pays.

Switched on by `--burst`, every so often, or by the key `b` while the live view is drawn. Before and during a
burst the broker's entities are read, as `tureen top` does; the difference is what each query used.

The switch itself is a query: a burst lasts while it runs, and ends when it is paused. So whatever can pause
and resume a query can switch a burst on and off: the page, the API, `tureen resume`, the key.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
import time
from collections.abc import Iterator
from typing import Any

from broker.demo.replay import Replay
from tureen.client import Client, Query
from tureen.errors import UnknownQuery
from tureen.protocol import query_id
from tureen.usage import Use, Uses, ordered, uses

FACTOR = 8.0
BURST_S, CALM_S = 4.0, 6.0
FIRST_S = 3.0
"""The first one begins so long after the replay."""
PAYING = 5
KEY = "b"
LOOK_S = 0.3
"""The switch is looked at so often."""
SWITCH = (
    f"/* switch: burst: flights come {FACTOR:.0f} times as fast */ "
    "SELECT COUNT(*) AS flights FROM flights [RANGE 1 HOUR]"
)
"""The page shows a query whose text begins so as a switch."""


class Bursts:
    """``tick`` is called often, by one thread. calm, burst: what was used before the last burst and in it."""

    def __init__(self, client: Client, replay: Replay, *, by_itself: bool) -> None:
        """by_itself: bursts come every so often."""
        self._client = client
        self._replay = replay
        self._by_itself = by_itself
        self._turn_s = time.monotonic() + FIRST_S
        self._look_s = 0.0
        self._switch: Query | None = None
        self._read: tuple[float, list[dict[str, Any]]] | None = None
        self.count = 0
        self.calm: Uses | None = None
        self.burst: Uses | None = None
        self.texts: dict[str, str] = {}

    @property
    def is_on(self) -> bool:
        return self._replay.factor > 1.0

    @property
    def switch_id(self) -> str | None:
        """The public id of the query that is the switch; None before and after the replay."""
        return None if self._switch is None else query_id(self._switch.handle)

    def begin(self) -> None:
        """Register the switch, off: it does not run before somebody uses it. The streams are there."""
        self._switch = self._client.register(SWITCH, options={"paused": True})

    def tick(self) -> None:
        """Begin or end a burst where it is time, or where somebody else used the switch."""
        now = time.monotonic()
        if self._by_itself and not self._replay.done and now >= self._turn_s:
            self.switch()
            self._turn_s = time.monotonic() + (BURST_S if self.is_on else CALM_S)
        elif self._switch is not None and now >= self._look_s:
            self._look_s = now + LOOK_S
            try:
                wanted = self._switch.status().state == "RUNNING"
            except UnknownQuery:  # somebody dropped it
                self.begin()
                wanted = False
            if wanted != self.is_on:
                self._turn()

    def switch(self) -> None:
        """Begin a burst, or end it."""
        if self._switch is not None:
            _ = self._switch.pause() if self.is_on else self._switch.resume()
        self._turn()

    def _turn(self) -> None:
        used = self._used()
        if self.is_on:
            self._replay.factor = 1.0
            self.burst = used
        else:
            self.calm = used
            self._replay.factor = FACTOR
            self.count += 1

    def end(self) -> None:
        """The replay is over, and the switch goes."""
        if self.is_on:
            self.switch()
        if self._switch is not None:
            with contextlib.suppress(UnknownQuery):
                self._switch.unregister()
            self._switch = None

    def _used(self) -> Uses | None:
        """Since the last look."""
        before, now = self._read, (time.monotonic(), self._client.entities())
        self._read = now
        if before is None:
            return None
        found = uses(before[1], now[1], now[0] - before[0])
        for one in paying(found):
            if one.id not in self.texts:
                name = one.id.removeprefix("query/")
                self.texts[one.id] = " ".join((self._client.status(name).sql or "").split())
        return found

    def facts(self) -> dict[str, Any]:
        """For the summary: cores before and during the last burst, and the queries that paid most for it."""
        burst, calm = self.burst, self.calm
        return {
            "bursts": self.count,
            "calm_cores": None if calm is None else round(calm.cores, 3),
            "burst_cores": None if burst is None else round(burst.cores, 3),
            "burst_paid": []
            if burst is None
            else [
                {"query": self.texts.get(one.id, one.id), "cpu_share": round(one.cpu_share, 4)}
                for one in paying(burst)
            ],
        }


def paying(found: Uses) -> list[Use]:
    """The queries that pay most."""
    return ordered(found.of_kind("query"), "cpu")[:PAYING]


class Keys:
    """Keys that were pressed, where there is a terminal to press them in."""

    def __init__(self, readable: bool) -> None:
        self._readable = readable

    def pressed(self, key: str) -> bool:
        """Whether it was since the last time."""
        found = False
        while self._readable and select.select([sys.stdin], [], [], 0)[0]:
            read = os.read(sys.stdin.fileno(), 64)
            if not read:
                self._readable = False
            found |= key.encode() in read.lower()
        return found


@contextlib.contextmanager
def keys() -> Iterator[Keys]:
    """Keys come one by one, without Enter, until it ends; Ctrl-C still interrupts."""
    if not sys.stdin.isatty():
        yield Keys(readable=False)
        return
    import termios
    import tty

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal)
        yield Keys(readable=True)
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)

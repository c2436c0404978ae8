"""What keeps a shard from going on, and how it waits for that to pass.

Waiting is part of life: whoever meets a stall in the shard's thread tells it under a name (``store``,
``journal``, ``read``, ``schemas``, ``output``), waits, tries again, and tells when it goes on. A stop ends
every wait.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from broker.base import logs
from broker.runtime.liveness import UNWATCHED, Pulse
from tureen.errors import TureenError

log = logs.get()

Stall = dict[str, Any]


class Interrupted(Exception):
    """The shard is told to stop while it waits; of what it waited to write nothing is known to be written."""


class Stalls:
    """``first``, ``stop`` and ``stopping`` in any thread, the rest by the shard's alone."""

    def __init__(self, number: int, retry_ms: int, pulse: Pulse = UNWATCHED) -> None:
        """pulse: who waits is alive."""
        self._number = number
        self._pulse = pulse
        self._retry_s = retry_ms / 1_000
        self._by_name: Mapping[str, Stall] = {}
        self._stop = threading.Event()

    @property
    def first(self) -> Stall | None:
        """The oldest of them; None while there is none."""
        return next(iter(self._by_name.values()), None)

    def __contains__(self, what: str) -> bool:
        return what in self._by_name

    @property
    def stopping(self) -> bool:
        """Whether the shard is told to stop."""
        return self._stop.is_set()

    def stop(self) -> None:
        """Every wait ends, now and from now on."""
        self._stop.set()

    def tell(self, what: str, stall: Stall | None) -> None:
        """What is waited for under this name; None: it goes on."""
        if stall is not None:
            if what not in self._by_name:
                log.warning("shard_waits", shard=self._number, code=stall["code"], reason=stall["message"])
            self._by_name = {**self._by_name, what: stall}
        elif what in self._by_name:
            self._by_name = {name: told for name, told in self._by_name.items() if name != what}
            log.info("shard_goes_on", shard=self._number, after=what)

    def wait(self, what: str, error: TureenError) -> None:
        """Tell it and wait until it is time to try again. Raises Interrupted."""
        self.tell(what, error.as_dict())
        self._pulse.rest(self._retry_s)
        if self._stop.wait(self._retry_s):
            raise Interrupted
        self._pulse.beat()

    def end(self, error: TureenError) -> None:
        """Nothing is waited for any more: this ended the shard."""
        self._by_name = {"end": error.as_dict()}

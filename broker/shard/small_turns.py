"""One shard of a worker at a time makes the steps of few records.

The threads of all shards share one interpreter lock. A step of few rows gives it up some ten times, for a
microsecond or so, and where another thread waits for it, has it back only after that one gave it up. With
two shards that made 400 such steps a second their threads changed places 3,800 times a second. So they take
turns: a shard holds the place of small turns while it makes its steps, and not while Kafka writes its
transaction.

Whoever has waited for the place for :data:`WAIT_S` goes on without it: a turn that has much to do, or stands
still, holds up nobody for longer. Turns with many records do not ask for it, since compiled loops run side by
side.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

WAIT_S = 0.02
"""Some times what the steps of a small turn take."""


class SmallTurns:
    """The place that shards of one process share. Any thread."""

    def __init__(self, wait_s: float = WAIT_S) -> None:
        """wait_s: nobody waits for longer."""
        self._wait_s = wait_s
        self._place = threading.Lock()

    @contextmanager
    def one_at_a_time(self, is_small: bool) -> Iterator[None]:
        """Hold the place meanwhile, if the turn is small and the place can be had in time."""
        has_place = is_small and self._place.acquire(timeout=self._wait_s)
        try:
            yield
        finally:
            if has_place:
                self._place.release()

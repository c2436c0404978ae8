"""What calls of users' functions took in each thread, so that a shard knows its own."""

from __future__ import annotations

import threading


class CallTimes(threading.local):
    """ns: of all calls of the thread that asks, since it began."""

    ns = 0

    def add(self, spent_ns: int) -> None:
        """Calls took so long in this thread."""
        self.ns += spent_ns


CALL_TIMES = CallTimes()

"""How long records that are gathered wait for more, where several shards say so.

What Kafka gathers comes to all shards of a worker together, so the longest rest that one of them asks for
holds; what a shard said longer than :data:`RECENT_S` ago counts no more, since it may have stopped.

Pure: clocks are passed in. O(shards).
"""

from __future__ import annotations

RECENT_S = 1.0


class Rests:
    """What shards asked for. Any thread: a shard changes its own entry alone."""

    def __init__(self) -> None:
        self._asked: dict[int, tuple[float, float]] = {}

    def ask(self, number: int, rest_s: float, now_s: float) -> float:
        """A shard asks for a rest; the one that holds."""
        self._asked[number] = rest_s, now_s
        return max(asked_s for asked_s, at_s in list(self._asked.values()) if now_s - at_s < RECENT_S)

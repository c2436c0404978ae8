"""When a quiet stream is given the clock.

A heartbeat is a journalled step, so one is made only where it may move NOW:

* arrival time: NOW follows the clock once everything is read, so at every period, from the first row on;
* event time: when a partition falls idle, and when a partition that had records waiting is read up;
* event time with IDLE ADVANCES: while all partitions are idle, at every period, from the first row on.

What the clock alone would move stays where it is while no answer depends on it (no query reads the stream,
or those that do have no window that moves with NOW): one heartbeat follows the last rows, so that they enter,
and the next comes just before the step that registers a query, or before an answer as of a later instant.

Pure: clocks are passed in. O(partitions) a call.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.model.source import Stream


class Pace:
    """One stream's. ``seen``: partitions that brought rows in earlier lives; when is not known any more."""

    def __init__(self, stream: Stream, period_ms: int, clock_ms: int, seen: Iterable[int] = ()) -> None:
        self._stream = stream
        self._period_ms = period_ms
        self._active_ms = dict.fromkeys(seen, clock_ms)
        self._awake = set(self._active_ms)
        self._lagging: frozenset[int] = frozenset()
        self._stepped_ms = clock_ms - period_ms
        self._rows_came = False

    def stepped(self, clock_ms: int, rows_of: Iterable[int], lagging: frozenset[int]) -> None:
        """A step of the stream was made; ``rows_of``: the partitions that brought rows."""
        rows_of = tuple(rows_of)
        for partition in rows_of:
            self._active_ms[partition] = clock_ms
            self._awake.add(partition)
        self._rows_came = bool(rows_of) or (self._rows_came and bool(lagging))
        self._lagging = lagging
        self._stepped_ms = clock_ms
        self._awake = {p for p in self._awake if not self._is_idle(p, clock_ms)}

    def is_due(self, clock_ms: int, lagging: frozenset[int], needed: bool = True) -> bool:
        """Whether a heartbeat now may move NOW. needed: an answer may change by that alone."""
        if not self._active_ms and not self._lagging:
            return False
        if self._lagging - lagging:
            return True
        if clock_ms - self._stepped_ms < self._period_ms or lagging:
            return False
        if not self._stream.event_time:
            return needed or self._rows_came
        if any(self._is_idle(partition, clock_ms) for partition in self._awake):
            return True
        return self._stream.idle_advances and not self._awake and (needed or self._rows_came)

    def rests(self, lagging: frozenset[int], needed: bool) -> bool:
        """Whether no time that passes makes a heartbeat due, as long as nothing comes and nobody needs it."""
        if self._lagging or lagging:
            return False
        if not self._active_ms:
            return True
        follows = needed or self._rows_came
        if not self._stream.event_time:
            return not follows
        return not self._awake and not (self._stream.idle_advances and follows)

    def _is_idle(self, partition: int, clock_ms: int) -> bool:
        return clock_ms - self._active_ms[partition] >= self._stream.idle_timeout_ms

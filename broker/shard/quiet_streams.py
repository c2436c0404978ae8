"""Which streams of a shard have their clocks looked at, and when.

At once those of which something came, twice in the time between two heartbeats those whose clocks may move as
time passes, and seldom all others. Pure: clocks are passed in.
"""

from __future__ import annotations

from collections.abc import Mapping

from broker.shard.streams import ReadStream
from engine.model.source import SourceName

REST_MS = 1_000
"""A shard with nothing to do looks so often whether there is something after all."""


class QuietStreams:
    """``rest_ms``: how long a shard all of whose streams rest may wait."""

    def __init__(self, heartbeat_ms: int) -> None:
        self.rest_ms = max(heartbeat_ms, REST_MS)
        self._heartbeat_ms = heartbeat_ms
        self._swept_ms = 0
        self._swept_all_ms = 0
        self._came: dict[SourceName, ReadStream] = {}
        """Streams of which something came since they were looked at."""
        self._awake: dict[SourceName, ReadStream] = {}
        """Streams whose clocks may move as time passes; what others need may change with any command."""

    @property
    def all_rest(self) -> bool:
        """Whether no clock moves as time passes."""
        return not self._awake and bool(self._swept_all_ms)

    def came(self, stream: ReadStream) -> None:
        """Something came of a stream."""
        self._came[stream.stream.name] = stream

    def is_awake(self, stream: ReadStream) -> None:
        """The clock of a stream that was looked at may move as time passes."""
        self._awake[stream.stream.name] = stream

    def wake_all(self) -> None:
        """Streams that rested may be needed now."""
        self._swept_all_ms = 0

    def due(self, clock_ms: int, by_name: Mapping[SourceName, ReadStream]) -> Mapping[SourceName, ReadStream]:
        """Those to be looked at now; each rests, unless it is said that it is awake. by_name: all that are
        read. O(streams that do not rest), and O(streams) seldom.
        """
        looked, self._came = self._came, {}
        if clock_ms - self._swept_all_ms >= self.rest_ms:
            self._swept_all_ms = self._swept_ms = clock_ms
            self._awake = {}
            return by_name
        if clock_ms - self._swept_ms >= self._heartbeat_ms // 2:
            self._swept_ms = clock_ms
            looked |= self._awake
            self._awake = {}
        for name in looked:
            self._awake.pop(name, None)
        return looked

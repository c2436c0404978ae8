"""What one reader reads, where consumers are shared (:mod:`topics.shared`): its partitions, and what came.

All of it is changed under the pool's lock.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError

from tureen.errors import TureenError

if TYPE_CHECKING:
    from topics.shared import Fetcher, SharedConsumers

Key = tuple[str, int]
"""Topic and partition."""

CHANNEL_RECORDS = 16_384
"""A reader that has left so many is behind."""


class Route:
    """One partition of a channel. next_offset: after the last record that the channel was given."""

    __slots__ = ("channel", "is_current", "key", "known_end", "next_offset", "waiting")

    def __init__(self, channel: Channel, key: Key, next_offset: int) -> None:
        self.channel = channel
        self.key = key
        self.next_offset = next_offset
        self.known_end = -1
        """Where the log ended when the last record was fetched."""
        self.is_current = False
        """Whether something was heard of it since reading began here, or began again."""
        self.waiting = 0
        """Records and events that the channel was given and the reader has not taken."""

    def is_known(self, run: list[Any]) -> bool:
        """Whether what comes only says again that the partition is read to its end."""
        if len(run) > 1 or not self.is_current or not 0 <= self.known_end <= self.next_offset:
            return False
        (message,) = run
        error = message.error()
        return (
            error is not None
            and error.code() == KafkaError._PARTITION_EOF
            and message.offset() == self.next_offset
        )

    def note(self, run: list[Any]) -> int:
        """What comes, in order; how much of it is records, or a little more."""
        records = len(run)
        for message in reversed(run):
            error = message.error()
            if error is None:
                self.next_offset = max(self.next_offset, message.offset() + 1)
                self.is_current = True
                break
            records -= 1
            if error.code() == KafkaError._PARTITION_EOF:
                self.next_offset = max(self.next_offset, message.offset())
                self.is_current = True
        return records


@dataclass(slots=True)
class Count:
    """How many there were since an instant, of the monotonic clock."""

    since_s: float = 0.0
    number: int = 0

    def begin(self, now_s: float) -> None:
        """Count from now on."""
        self.since_s, self.number = now_s, 0


@dataclass(slots=True)
class Traffic:
    """How records come of a channel, and how they should: by that it is chosen with whom it shares a
    fetcher.
    """

    came_s: float
    """When the last record came."""
    seldom: Count = field(default_factory=Count)
    """Records; of a channel that shares its fetcher, how often some came."""
    often: Count = field(default_factory=Count)
    """How often records came, in the last second or so."""
    is_hurried: bool = False
    """Records wait for no others: they are not gathered."""

    def begin(self, now_s: float) -> None:
        """The channel has another fetcher from now on."""
        self.seldom.begin(now_s)
        self.often.begin(now_s)


class Channel:
    """What one reader reads. ``wake`` is called from other threads; all else by the reader's alone."""

    def __init__(self, pool: SharedConsumers, wake: Callable[[], None], bytes_max: int) -> None:
        """bytes_max: of the records that are given at once; one record is always given."""
        self.wake = wake
        self._bytes_max = bytes_max
        self._pool = pool
        self.changed = threading.Condition(pool.lock)
        """Something came, or was taken."""
        self._failure: TureenError | None = None
        # Changed under the pool's lock:
        self.routes: dict[Key, Route] = {}
        self.fetcher: Fetcher | None = None
        self.parked = False
        self.waiting: deque[tuple[Route, list[Any]]] = deque()
        self.records = 0
        self.bytes = 0
        self.traffic = Traffic(time.monotonic())

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to take."""
        return not self.waiting

    @property
    def is_gathered(self) -> bool:
        """Whether records come together with those of other channels, a while after they were written."""
        fetcher = self.fetcher
        return fetcher is not None and fetcher.kind == "steady"

    def hurry(self, *, is_hurried: bool) -> None:
        """Say whether records may wait for others."""
        if self.traffic.is_hurried != is_hurried:
            with self._pool.lock:
                self.traffic.is_hurried = is_hurried

    def assign(self, topic: str, offsets: Mapping[int, int]) -> None:
        """Read these partitions from these offsets on; what waits of them is dropped."""
        with self._pool.lock:
            self._forget({(topic, number) for number in offsets})
            added = [Route(self, (topic, number), offset) for number, offset in offsets.items()]
            self.routes |= {route.key: route for route in added}
            if self.fetcher is not None and self.fetcher.takes(added):
                self.fetcher.add(added)
            elif not self.parked:
                self._pool.place(self, "active")

    def unassign(self, topic: str, numbers: Iterable[int]) -> None:
        """Read these no more; what waits of them is dropped."""
        with self._pool.lock:
            self._forget({(topic, number) for number in numbers})
            if not self.routes:
                self.fetcher = None

    def _forget(self, keys: set[Key]) -> None:
        gone = [self.routes.pop(key) for key in keys & self.routes.keys()]
        if not gone:
            return
        if self.fetcher is not None:
            self.fetcher.remove(gone)
        left = [(route, run) for route, run in self.waiting if route not in gone]
        self.waiting.clear()
        self._count(-self.records, -self.bytes)
        for route, run in left:
            self.waiting.append((route, run))
            self._count(len(run), sum(map(len, run)))

    def consume(self, records_max: int, timeout_s: float) -> list[Any]:
        """The next records and events, at once where there are any, else within ``timeout_s``: at most so
        many, and of so many bytes as one may take at once.

        Raises KafkaUnavailable: the fetcher has failed.
        """
        taken: list[Any] = []
        left = self._bytes_max
        with self._pool.lock:
            if not self.waiting and timeout_s > 0:
                self.changed.wait(timeout_s)
            if self._failure is not None:
                raise self._failure
            while self.waiting and len(taken) < records_max:
                route, run = self.waiting[0]
                part = run[: records_max - len(taken)]
                size = sum(map(len, part))
                if size > left:
                    fitting = bisect_right(list(accumulate(map(len, part))), left)
                    part = part[: fitting if taken else max(1, fitting)]
                    if not part:
                        break
                    size = sum(map(len, part))
                if len(part) == len(run):
                    self.waiting.popleft()
                else:
                    self.waiting[0] = route, run[len(part) :]
                route.waiting -= len(part)
                self._count(-len(part), -size)
                taken += part
                left -= size
            if self.parked and not self.is_behind(half=True):
                self._pool.place(self, "own")
            if taken:
                self.changed.notify_all()
        return taken

    def is_behind(self, *, half: bool = False) -> bool:
        """Whether more waits than the reader should leave, or more than half of that."""
        factor = 2 if half else 1
        return factor * self.bytes > self._pool.channel_bytes or factor * self.records > CHANNEL_RECORDS

    def give(self, route: Route, run: list[Any], records: int) -> None:
        """What came of one partition, ``records`` of it no events. Called by a fetcher, under the lock."""
        self.waiting.append((route, run))
        route.waiting += len(run)
        self._count(len(run), sum(map(len, run)))
        if records:
            self.traffic.came_s = time.monotonic()
        self.changed.notify_all()

    def fail(self, error: TureenError) -> None:
        """Nothing more comes; under the lock."""
        self._failure = error
        self.changed.notify_all()

    def _count(self, records: int, size: int) -> None:
        self.records += records
        self.bytes += size
        self._pool.bytes += size

    def known_end(self, topic: str, number: int) -> int:
        """Where the log ended when the last record was fetched; negative: not known."""
        route = self.routes.get((topic, number))
        return -1 if route is None else route.known_end

    def is_current(self, topic: str, number: int) -> bool:
        """Whether the end that was seen of a partition, if one was, is known to be its end still."""
        route, fetcher = self.routes.get((topic, number)), self.fetcher
        return (
            route is not None
            and route.is_current
            and not route.waiting
            and fetcher is not None
            and fetcher.is_current()
        )

    def note_missing(self) -> None:
        """A topic seems to be gone."""
        self._pool.on_missing()

    def doubt(self, topic: str, number: int) -> None:
        """Something may have been missed of a partition: begin again where its reading stands."""
        with self._pool.lock:
            route = self.routes.get((topic, number))
            if route is not None and self.fetcher is not None:
                self.fetcher.begin_again([route])

    def close(self) -> None:
        """Read no more."""
        with self._pool.lock:
            self._forget(set(self.routes))
            self.fetcher = None
            self.parked = False

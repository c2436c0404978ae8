"""A few Kafka consumers that all readers of a process share.

Each reader has a :class:`Channel`: the records that were fetched for it and that it has not taken yet. A
*fetcher* is one Kafka consumer with a thread that blocks in it, puts what arrives into the channels and wakes
the readers. A channel is with one fetcher at a time, of one of four kinds:

* ``quiet``: channels without a record for QUIET_AFTER_S. Kafka answers a fetch when there is a record, or
  after a long wait, so a thousand such partitions cost about two requests a second;
* ``active``: channels with records now and then, and new ones: Kafka answers when there is a record;
* ``steady``: channels to which some come OFTEN_PER_S times a second: Kafka gathers what all of them have for
  ``gather_ms``, or GATHER_BYTES, so that they cost a fetch together, not one for each record; readers for
  which that is too often (``rest_s``) get what two fetches brought together;
* ``own``: a channel whose reader cannot keep up has a fetcher for itself, so that what Kafka delivers ahead
  is as much as a lone consumer has. There are OWN_MAX of these at most; who gets none is *parked* (nothing is
  fetched) until its reader has taken half of what waits.

A consumer has one position a partition, so channels of one topic are never with the same fetcher: another is
made for each further one.

Order: a fetcher's thread alone changes what its consumer is assigned, between two polls. A channel that
leaves a fetcher is given nothing more by it, and goes on elsewhere after the last record that it was given.
So each channel has every record of its partitions once, in order.

That a partition was read to its end is known while :meth:`Channel.is_current` says so. It is not after the
process stood still, after Kafka was away, and between two fetchers: then reading begins again at the same
place, and the end is told anew.

Memory: what waits in a consumer and in its channels is at most twice ``queued.max.messages.kbytes`` for each
fetcher, and one batch of Kafka's, whose size the topic limits.

Cost: no time of any reader's thread while nothing arrives; 0.5 us a record beside the client's own.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from topics.channels import Channel, Key, Route, Traffic
from topics.clients import DEFAULTS, FIXED, consume, known_end, offset_of
from topics.failures import MISSING_TOPIC, as_ours
from topics.settings import KafkaSettings
from tureen.errors import TureenError

Kind = Literal["quiet", "active", "steady", "own"]
PAUSE_S = 1.0
"""After so long between two polls the process stood still."""
WAIT_S = 0.25
"""A fetcher waits for records so long at most, and then looks after its channels."""
BATCH = 4_096
QUIET_AFTER_S = 10.0
"""A channel without a record for so long is quiet, and one of its own with few in it needs none."""
SELDOM = 10_000
OFTEN_PER_S = 10
"""From so often on records of a channel are gathered; no more where some come half as often for
QUIET_AFTER_S."""
GATHER_MS = 20
GATHER_BYTES = 65_536
ARRIVING_S = 0.002
"""The client hands an answer on partition by partition."""
OWN_MAX = 4
CHANNEL_BYTES = 1 << 20
"""A reader that has left so much is behind."""
OWN_RECORDS = 65_536
"""With a fetcher of its own, a channel has so many records at most, and one batch."""
_SHARED: KafkaSettings = {
    "fetch.max.bytes": 4 * 1024 * 1024,
    "max.partition.fetch.bytes": 256 * 1024,
    "topic.metadata.refresh.interval.ms": 60_000,  # the lookout asks as well
}
_KINDS: Mapping[Kind, KafkaSettings] = {
    "quiet": {**_SHARED, "fetch.wait.max.ms": 500},
    "active": {**_SHARED, "fetch.wait.max.ms": 100},
    "steady": {**_SHARED, "fetch.min.bytes": GATHER_BYTES},
    "own": {},
}


@dataclass(slots=True)
class Gathering:
    """How long Kafka gathers records, in ms (0: nothing is gathered), and ``rest_s``: how long these wait for
    those of the next fetch, which any thread sets.
    """

    wait_ms: int
    rest_s: float = 0.0


class SharedConsumers:
    """All fetchers of a process. Used from any thread."""

    def __init__(
        self,
        settings: KafkaSettings,
        *,
        on_missing: Callable[[], None] = lambda: None,
        gather_ms: int = GATHER_MS,
        quiet_after_s: float = QUIET_AFTER_S,
        own_max: int = OWN_MAX,
        channel_bytes: int = CHANNEL_BYTES,
    ) -> None:
        """settings: any of librdkafka's; they override the defaults, but not what correctness rests on.
        on_missing: called when a topic seems to be gone. gather_ms: 0: nothing is gathered. quiet_after_s,
        own_max, channel_bytes: as the constants.
        """
        self.unavailable = False
        """Kafka was lost, and nobody has heard of it since."""
        self.lock = threading.RLock()
        self.bytes = 0
        """What waits in all channels."""
        self.losses = 0
        """How often Kafka was lost."""
        self.on_missing = on_missing
        self.gathering = Gathering(gather_ms)
        self.quiet_after_s = quiet_after_s
        self.channel_bytes = channel_bytes
        self._own_max = own_max
        self._settings = settings
        self.bytes_max = 1024 * int({**DEFAULTS, **settings}["queued.max.messages.kbytes"])
        """What may wait in the channels of shared fetchers, and in each that has its own."""
        self._fetchers: list[Fetcher] = []

    def channel(self, wake: Callable[[], None], bytes_max: int = sys.maxsize) -> Channel:
        """For one reader; ``wake`` is called, from another thread, when something came. bytes_max: of what
        it takes at once; one record is always given.
        """
        return Channel(self, wake, bytes_max)

    @property
    def is_full(self) -> bool:
        """Whether as much waits for readers as may."""
        return self.bytes > self.bytes_max

    def answered(self) -> None:
        """Kafka has answered somebody."""
        self.unavailable = False

    def lost(self) -> None:
        """Kafka is away, or was for a moment."""
        self.losses += 1
        self.unavailable = True

    def place(self, channel: Channel, kind: Kind) -> None:
        """Have a channel read by a fetcher of a kind, from where it stands; under the lock.

        Where no more of the kind ``own`` may be made: parked while it is behind, else active.
        """
        if channel.fetcher is not None:
            channel.fetcher.remove(list(channel.routes.values()))
            channel.fetcher = None
        if kind == "own" and sum(one.kind == "own" for one in self._fetchers) >= self._own_max:
            channel.parked = channel.is_behind(half=True)
            if channel.parked:
                return
            kind = "active"
        channel.parked = False
        routes = list(channel.routes.values())
        free = (one for one in self._fetchers if one.kind == kind != "own" and one.takes(routes))
        fetcher = next(free, None)
        if fetcher is None:
            fetcher = Fetcher(self, kind, self._settings)
            self._fetchers.append(fetcher)
            fetcher.start()
        channel.fetcher = fetcher
        channel.traffic.begin(time.monotonic())
        fetcher.add(routes)

    def is_needed(self, fetcher: Fetcher) -> bool:
        """Whether one without channels is kept: the first of each kind that is shared; under the lock."""
        if fetcher.kind == "own":
            return False
        return next(one for one in self._fetchers if one.kind == fetcher.kind) is fetcher

    def ended(self, fetcher: Fetcher) -> None:
        """A fetcher ends; under the lock."""
        self._fetchers.remove(fetcher)

    def close(self) -> None:
        """End all fetchers; nothing is waited for."""
        with self.lock:
            for fetcher in self._fetchers:
                fetcher.stops = True


class Fetcher(threading.Thread):
    """One consumer and its thread. Its routes and what else others see are changed under the pool's lock."""

    def __init__(self, pool: SharedConsumers, kind: Kind, settings: KafkaSettings) -> None:
        super().__init__(name=f"fetch-{kind}", daemon=True)
        self.kind: Kind = kind
        self.stops = False
        self.polled_s = time.monotonic()
        """When the last poll began."""
        self._pool = pool
        self._routes: dict[Key, Route] = {}
        self._coming: dict[Key, Route] = {}
        self._going: set[Key] = set()
        self._assigned: set[Key] = set()
        self._losses = pool.losses
        self._looked_s = self.polled_s
        self._arriving_s = ARRIVING_S if kind == "steady" else 0.0
        own: KafkaSettings = {"fetch.wait.max.ms": pool.gathering.wait_ms} if kind == "steady" else {}
        self._consumer = Consumer(
            {**DEFAULTS, **_KINDS[kind], **own, **settings, **FIXED, "error_cb": self._note}
        )

    # --- for others, under the lock ---------------------------------------------------------------

    def takes(self, routes: Iterable[Route]) -> bool:
        """Whether it reads no such partition for another channel."""
        return not self.stops and all(
            route.key not in self._coming
            and (route.key not in self._routes or self._routes[route.key].channel is route.channel)
            for route in routes
        )

    def add(self, routes: Iterable[Route]) -> None:
        """Read these from where they stand, from the next poll on."""
        for route in routes:
            route.is_current = False
            self._coming[route.key] = route

    def remove(self, routes: Iterable[Route]) -> None:
        """Give nothing more of these."""
        for route in routes:
            if self._coming.get(route.key) is route:
                del self._coming[route.key]
            if self._routes.get(route.key) is route:
                del self._routes[route.key]
                self._going.add(route.key)

    def begin_again(self, routes: Iterable[Route]) -> None:
        """Read from where these stand, and tell their ends anew."""
        routes = list(routes)
        self.remove(routes)
        self.add(routes)

    def is_current(self) -> bool:
        """Whether ends that were told are known to be so: neither it nor Kafka stood still since."""
        pool = self._pool
        is_heard = self._losses == pool.losses and not pool.unavailable
        return is_heard and time.monotonic() - self.polled_s <= PAUSE_S

    # --- the thread -------------------------------------------------------------------------------

    def run(self) -> None:
        try:
            while self._assign():
                rest_s = self._pool.gathering.rest_s if self.kind == "steady" else 0.0
                groups = self._grouped(consume(self._consumer, BATCH, WAIT_S, self._arriving_s, rest_s))
                # By this thread, since the client locks up where one asks for ends while another polls.
                ends = {key: known_end(self._consumer, *key) for key in groups}
                with self._pool.lock:
                    channels, came = self._give(groups, ends)
                    self._note_poll(came)
                    self._look_after()
                for channel in channels:
                    channel.wake()
                if self.kind == "own":
                    self._hold_back()
        except KafkaException as error:
            self._fail(as_ours(error, "reading"))
        self._consumer.close()

    def _assign(self) -> bool:
        """Take up what others want between two polls; False: it is needed no more."""
        with self._pool.lock:
            if self.stops or not (self._routes or self._coming or self._pool.is_needed(self)):
                self.stops = True
                self._pool.ended(self)
                return False
            going, self._going = self._going, set()
            coming, self._coming = self._coming, {}
            self._routes |= coming
            assigned = [TopicPartition(*key, offset_of(route.next_offset)) for key, route in coming.items()]
        if going:
            self._consumer.incremental_unassign([TopicPartition(*key) for key in going])
        if assigned:
            self._consumer.incremental_assign(assigned)
        self._assigned = (self._assigned - going) | coming.keys()
        return True

    def _grouped(self, messages: list[Any]) -> dict[Key, list[Any]]:
        """By partition."""
        if len(self._assigned) == 1 and messages:
            return dict.fromkeys(self._assigned, messages)
        groups: dict[Key, list[Any]] = {}
        for message in messages:
            groups.setdefault((message.topic(), message.partition()), []).append(message)
        return groups

    def _give(
        self, groups: Mapping[Key, list[Any]], ends: Mapping[Key, int]
    ) -> tuple[set[Channel], set[Key]]:
        """Put what came into the channels. ends: where the logs end now. Returns those to wake, and the
        partitions of which records came.
        """
        woken, came = set(), set()
        for key, run in groups.items():
            route = self._routes.get(key)
            if route is None:
                continue  # it went meanwhile
            channel, traffic = route.channel, route.channel.traffic
            if route.is_known(run) and not self._pool.unavailable:
                continue
            records = route.note(run)
            if records:
                route.known_end = ends[key]
                came.add(key)
            channel.give(route, run, records)
            woken.add(channel)
            if route.is_current:
                self._pool.answered()
            if self.kind == "own":
                traffic.seldom.number += records
            elif records:
                if traffic.came_s - traffic.seldom.since_s > self._pool.quiet_after_s:
                    traffic.seldom.begin(traffic.came_s)
                traffic.seldom.number += 1
                traffic.often.number += 1
        for channel in woken:
            if self.kind != "own" and (channel.is_behind() or self._pool.is_full):
                self._pool.place(channel, "own")
            elif self.kind == "quiet" and channel.traffic.seldom.number > 1:
                self._pool.place(channel, "active")
            elif self._may_gather(channel) and self._comes_often(channel.traffic):
                self._pool.place(channel, "steady")
        return woken, came

    def _may_gather(self, channel: Channel) -> bool:
        gathers = self._pool.gathering.wait_ms > 0 and not channel.traffic.is_hurried
        return self.kind == "active" and gathers

    def _comes_often(self, traffic: Traffic) -> bool:
        """Whether some came often in the last second, which then begins anew."""
        passed_s = traffic.came_s - traffic.often.since_s
        if passed_s < 1.0:
            return False
        often = traffic.often.number
        traffic.often.begin(traffic.came_s)
        return often >= OFTEN_PER_S * passed_s

    def _note_poll(self, came: Collection[Key]) -> None:
        """Begin again where something may have been missed; under the lock.

        came: partitions of which records came just now, so that their ends are told later anyway.
        """
        now_s = time.monotonic()
        stood_still = now_s - self.polled_s > PAUSE_S
        is_back = self._losses != self._pool.losses and not self._pool.unavailable
        self.polled_s = now_s
        if is_back:
            self._losses = self._pool.losses
        if stood_still or is_back:
            self.begin_again(route for key, route in self._routes.items() if is_back or key not in came)

    def _look_after(self) -> None:
        """See who is better off elsewhere, once a second; under the lock."""
        now_s = self.polled_s
        if now_s - self._looked_s < 1.0:
            return
        self._looked_s = now_s
        for channel in {route.channel for route in self._routes.values()}:
            if not channel.is_empty:
                continue
            seldom, often = channel.traffic.seldom, channel.traffic.often
            if self.kind == "active" and now_s - channel.traffic.came_s > self._pool.quiet_after_s:
                self._pool.place(channel, "quiet")
            elif self.kind == "steady" and channel.traffic.is_hurried:
                self._pool.place(channel, "active")
            elif self.kind == "steady" and now_s - often.since_s > self._pool.quiet_after_s:
                if 2 * often.number < OFTEN_PER_S * (now_s - often.since_s):
                    self._pool.place(channel, "active")
                often.begin(now_s)
            elif self.kind == "own" and now_s - seldom.since_s > self._pool.quiet_after_s:
                if seldom.number < SELDOM:
                    self._pool.place(channel, "active")
                seldom.begin(now_s)

    def _hold_back(self) -> None:
        """Wait while the channel has enough; the consumer then fetches no more either."""
        with self._pool.lock:
            for channel in {route.channel for route in self._routes.values()}:
                while channel.fetcher is self and not self.stops and self._has_enough(channel):
                    channel.changed.wait(WAIT_S)
                    self._note_poll(self._routes.keys())

    def _has_enough(self, channel: Channel) -> bool:
        return channel.bytes > self._pool.bytes_max or channel.records > OWN_RECORDS

    def _fail(self, error: TureenError) -> None:
        with self._pool.lock:
            self.stops = True
            self._pool.ended(self)
            channels = {route.channel for route in [*self._routes.values(), *self._coming.values()]}
            for channel in channels:
                channel.fail(error)
        for channel in channels:
            channel.wake()

    def _note(self, error: Any) -> None:
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            with self._pool.lock:
                self._pool.lost()
        elif error.code() in MISSING_TOPIC:
            self._pool.on_missing()

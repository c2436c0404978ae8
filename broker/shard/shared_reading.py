"""What all shards of a worker read streams by: a few consumers, one lookout for topics, one admin client."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from broker.base.settings import Settings
from broker.shard.rests import Rests
from topics.admin import Admin
from topics.channels import Channel
from topics.lookout import Lookout
from topics.shared import SharedConsumers


class SharedReading:
    """Reads topics for all shards of a worker. Used from any thread."""

    def __init__(
        self, settings: Settings, kafka: Mapping[str, str], admin: Admin, fetched_kbytes: int
    ) -> None:
        """fetched_kbytes: how much a consumer may hold of records that no step has taken in."""
        self.admin = admin
        self._step_bytes_max = settings.step_bytes_max
        limits = {"queued.max.messages.kbytes": str(fetched_kbytes)}
        self._consumers = SharedConsumers(
            {**limits, **kafka},
            on_missing=lambda: self.lookout.hurry(),
            gather_ms=settings.linger_ms,
        )
        self._rests = Rests()
        self.lookout = Lookout(
            admin,
            period_s=settings.topic_check_ms / 1_000,
            retry_s=settings.retry_ms / 1_000,
            answered=self._answered,
            changed=self._wake,
        )
        self._wakes: list[Callable[[], None]] = []

    @property
    def is_away(self) -> bool:
        """Whether Kafka was lost, and nobody has heard of it since."""
        return self._consumers.unavailable

    def on_change(self, wake: Callable[[], None]) -> None:
        """Call this, from another thread, when topics are not what they were."""
        self._wakes.append(wake)

    def channel(self, wake: Callable[[], None]) -> Channel:
        """For one stream; ``wake`` is called, from another thread, when something came."""
        return self._consumers.channel(wake, self._step_bytes_max)

    def rest(self, number: int, rest_s: float, now_s: float) -> None:
        """A shard says how long what is gathered is to wait for more; the longest of what shards said lately
        holds. O(shards).
        """
        self._consumers.gathering.rest_s = self._rests.ask(number, rest_s, now_s)

    def _answered(self, answered: bool) -> None:
        if answered:
            self._consumers.answered()
        elif not self._consumers.unavailable:
            self._consumers.lost()
            self._wake()

    def _wake(self) -> None:
        for wake in self._wakes:
            wake()

    def close(self) -> None:
        """Read no more."""
        self.lookout.stop()
        self._consumers.close()

"""Whose a service is: of one run at a time, and of one checkpoint after another.

    group  <service>.scale-out    its only member is the driver at work
    number of that group          the epoch of the run that was at work last, with its name and checkpoint

A run that finds a member refuses to begin. One that finds no member but the mark of another checkpoint may
begin if its own checkpoint is empty: whoever begins anew means to. If it is not, it stands where it stood
before somebody else went on, and what it would tell does not follow from what clients have: it refuses.

A driver that was silent for longer than its session finds the mark of another before its next micro-batch,
and ends. So does one that finds a broker, which does not look for runs when it starts. Kafka keeps the mark
for as long as there is a member, and ``offsets.retention.minutes`` longer.

Cost: two requests a micro-batch; at the start some, and Kafka's ``group.initial.rebalance.delay.ms`` (3 s).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from confluent_kafka import Consumer, KafkaException, TopicPartition

from spark_jobs.errors import CheckpointMismatch, ServiceInUse
from topics.admin import Admin
from topics.failures import as_ours
from tureen.errors import KafkaUnavailable, TureenError
from tureen.protocol import TopicNames

T = TypeVar("T")

SESSION_MS = 6_000
"""The least that Kafka's own settings allow: a driver that was killed is a member for so long."""
WAIT_S = 12.0
JOIN_S = 60.0
POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Claim:
    """The run that wants a service."""

    name: str
    checkpoint: str
    """What its checkpoint calls itself."""
    path: str
    """Where the checkpoint is."""
    fresh: bool
    """Nothing was done under the checkpoint yet."""
    epoch: int
    """The least that the run may have."""


class Ownership:
    """From its making until :meth:`close`; used by the driver's thread alone."""

    def __init__(
        self,
        kafka: Mapping[str, str],
        admin: Admin,
        names: TopicNames,
        claim: Claim,
        wait_s: float = WAIT_S,
    ) -> None:
        """wait_s: for an earlier run on the same checkpoint to be given up by Kafka.

        Raises ServiceInUse, CheckpointMismatch, KafkaUnavailable.
        """
        self._admin = admin
        self._names = names
        self._mark = {"name": claim.name, "checkpoint": claim.checkpoint}
        self.epoch = claim.epoch
        """Epoch of this run: above those of all runs of the service that Kafka remembers, so that positions
        go on.
        """
        self._group = f"{names.service_id}.scale-out"
        self._consumer = Consumer(
            {
                **kafka,
                "group.id": self._group,
                "client.id": f"{claim.name}.{claim.checkpoint}",
                "enable.auto.commit": False,
                "auto.offset.reset": "latest",
                "session.timeout.ms": SESSION_MS,
                "heartbeat.interval.ms": SESSION_MS // 3,
                "max.poll.interval.ms": 86_400_000,  # a micro-batch takes what it takes
                "log_level": 0,
                "error_cb": lambda _: None,
            }
        )
        try:
            self._begin(claim, wait_s)
        except BaseException:
            self.close()
            raise

    def check(self) -> None:
        """It is this run's yet. Raises ServiceInUse, KafkaUnavailable."""
        self._check_broker()
        self._consumer.poll(0)  # lets another that begins at the same moment come in, find us, and refuse
        found = self._last()
        if found is not None and found != self._mark:
            raise ServiceInUse(self._names.service_id, _called(found))

    def close(self) -> None:
        """Leave it to others."""
        self._consumer.close()

    def _check_broker(self) -> None:
        if self._admin.members(self._names.control_group):
            raise ServiceInUse(self._names.service_id, "a broker")

    def _await_groups(self) -> dict[str, str] | None:
        """The mark, when Kafka can tell of both groups: what it knows of them it may yet have to load, and a
        new cluster makes the place for groups only now.
        """
        deadline_s = time.monotonic() + JOIN_S
        while True:
            try:
                last = self._last()
                self._admin.members(self._names.control_group)
                self._admin.members(self._group)
                return last
            except KafkaUnavailable:
                if time.monotonic() > deadline_s:
                    raise
            time.sleep(POLL_S)

    def _begin(self, claim: Claim, wait_s: float) -> None:
        last = self._await_groups()
        self._check_broker()
        if self._admin.members(self._group):
            # An earlier run on this checkpoint that was killed is a member until its session ends.
            deadline_s = time.monotonic() + (wait_s if last == self._mark else 0.0)
            while self._admin.members(self._group):
                if time.monotonic() >= deadline_s:
                    raise ServiceInUse(self._names.service_id, _called(last))
                time.sleep(POLL_S)
        if last is not None and last["checkpoint"] != self._mark["checkpoint"] and not claim.fresh:
            raise CheckpointMismatch(
                claim.path,
                f"is not the one that the service {self._names.service_id} was last run from: "
                f"{_called(last)} went on since",
                hint="run that one again, or start with an empty directory: answers are then written again",
            )
        self._join()
        if self._admin.members(self._group) > 1:  # another began at this very moment
            raise ServiceInUse(self._names.service_id, "another run")
        [before] = self._committed()
        self.epoch = max(self.epoch, before.offset + 1)
        mark = TopicPartition(self._names.status, 0, self.epoch, json.dumps(self._mark))
        self._asked(lambda: self._consumer.commit(offsets=[mark], asynchronous=False))

    def _join(self) -> None:
        """Become a member; records are not what it is for."""
        deadline_s = time.monotonic() + JOIN_S
        self._consumer.subscribe([self._names.status])
        while not self._consumer.assignment():
            if time.monotonic() > deadline_s:
                raise KafkaUnavailable(f"the group {self._group} takes no member", hint="is Kafka running?")
            self._consumer.poll(POLL_S)
        self._consumer.pause(self._consumer.assignment())

    def _last(self) -> dict[str, str] | None:
        """The mark, None where there is none."""
        [found] = self._committed()
        try:
            told = json.loads(found.metadata or "null")
            return None if told is None else {"name": told["name"], "checkpoint": told["checkpoint"]}
        except (ValueError, TypeError, KeyError):
            return None

    def _committed(self) -> list[TopicPartition]:
        place = [TopicPartition(self._names.status, 0)]
        committed: list[TopicPartition] = self._asked(lambda: self._consumer.committed(place, timeout=JOIN_S))
        return committed

    def _asked(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except KafkaException as error:
            ours: TureenError = as_ours(error, f"asking whose the service {self._names.service_id} is")
            raise ours from error


def _called(mark: Mapping[str, str] | None) -> str:
    if mark is None:
        return "another scale-out"
    return f"the scale-out {mark['name']} (checkpoint {mark['checkpoint']})"

"""What a shard writes to Kafka: step records, late rows and dead letters, in one transaction.

:meth:`Outbox.commit` returns when they are written, exactly once, however long Kafka is away:

* aborted, or Kafka away: nothing was written, the same records are sent again;
* outcome unknown: a new producer fences the old one, so that the journal stands still, and the journal tells
  whether the last step is in it;
* fenced: another owner has the shard. This one must stop (:class:`tureen.errors.Fenced` is raised).

The engine has applied the steps already but shows nothing of them before this returns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from broker import logs
from broker.settings import Settings
from broker.worker.metrics import TRANSACTION_SECONDS
from engine.model.step import Position, StepResult
from topics.journal import read_steps
from topics.producer import CommitUnknown, TransactionAborted, TransactionalProducer
from topics.results import Records
from tureen.errors import KafkaUnavailable, TureenError

log = logs.get()


@dataclass(frozen=True, slots=True)
class Letter:
    """One record to write."""

    topic: str
    value: bytes | None
    key: bytes | None = None
    partition: int | None = None
    headers: Any = None


@dataclass(slots=True)
class Outgoing:
    """What one transaction holds; ``last`` is the position of its last step.

    results: what its steps caused, in order. touched: queries that came, went, or got other options in it.
    """

    letters: list[Letter] = field(default_factory=list)
    records: list[Records] = field(default_factory=list)
    results: list[StepResult] = field(default_factory=list)
    touched: set[str] = field(default_factory=set)
    last: Position | None = None


class Interrupted(Exception):
    """The shard is told to stop while Kafka is away; nothing is known to be written."""


class Outbox:
    """The transactional producer of one shard. Used by the shard's thread alone."""

    def __init__(
        self,
        number: int,
        settings: Settings,
        kafka: dict[str, str],
        stopping: Callable[[], bool],
        trouble: Callable[[dict[str, Any] | None], None],
        restore: Callable[[Collection[str]], None],
    ) -> None:
        """``trouble`` is told what is waited for, and None when it goes on. ``restore`` makes result topics
        that are gone.
        """
        self._number = number
        self._settings = settings
        self._kafka = kafka
        self._stopping = stopping
        self._trouble = trouble
        self._restore = restore
        self._producer: TransactionalProducer | None = None

    def fence(self) -> None:
        """Take the shard over: whoever wrote for it before can no longer. Waits for Kafka.

        Raises Fenced, Interrupted.
        """
        while True:
            self.close()
            try:
                self._producer = TransactionalProducer(
                    self._kafka,
                    self._settings.transactional_id(self._number),
                    timeout_s=self._settings.transaction_timeout_ms / 1_000,
                )
                self._trouble(None)
                return
            except KafkaUnavailable as away:
                self._wait(away)

    def commit(self, outgoing: Outgoing) -> None:
        """Write it, exactly once. Raises Fenced, Interrupted."""
        if outgoing.last is None:
            return
        began_s = time.perf_counter()
        while True:
            try:
                self._try(outgoing)
                break
            except TransactionAborted as aborted:
                log.warning("transaction_aborted", shard=self._number, reason=aborted.message)
                self._wait(aborted)
                self._restored(outgoing)
            except KafkaUnavailable as away:
                self._wait(away)
                self.fence()
            except CommitUnknown as unknown:
                log.warning("commit_unknown", shard=self._number, reason=unknown.message)
                self._trouble(unknown.as_dict())
                self.fence()
                if self._is_journalled(outgoing.last):
                    break
                self._restored(outgoing)
        self._trouble(None)
        TRANSACTION_SECONDS.labels(str(self._number)).observe(time.perf_counter() - began_s)

    def _try(self, outgoing: Outgoing) -> None:
        assert self._producer is not None
        with self._producer.transaction() as transaction:
            for letter in outgoing.letters:
                transaction.send(
                    letter.topic,
                    letter.value,
                    key=letter.key,
                    partition=letter.partition,
                    headers=letter.headers,
                )
            for one in outgoing.records:
                transaction.send_many(one.topic, one.values, one.keys, one.headers, one.partitions)

    def _restored(self, outgoing: Outgoing) -> None:
        """Nothing was written: perhaps since a result topic was deleted."""
        if outgoing.records:
            try:
                self._restore({one.topic for one in outgoing.records})
            except TureenError as away:
                log.warning("result_topics_unknown", shard=self._number, reason=away.message)

    def _is_journalled(self, position: Position) -> bool:
        before = Position(position.epoch, position.sequence - 1)
        while True:
            try:
                return any(
                    record.position == position
                    for record in read_steps(self._kafka, self._settings.names.steps, self._number, before)
                )
            except KafkaUnavailable as away:
                self._wait(away)

    def _wait(self, reason: Any) -> None:
        self._trouble(reason.as_dict())
        deadline_s = time.monotonic() + self._settings.retry_ms / 1_000
        while time.monotonic() < deadline_s:
            if self._stopping():
                raise Interrupted
            time.sleep(0.05)

    def close(self) -> None:
        if self._producer is not None:
            self._producer.close()
            self._producer = None

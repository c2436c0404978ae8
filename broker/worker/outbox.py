"""What a shard writes to Kafka: step records, late rows and dead letters, in one transaction.

:meth:`Outbox.commit` returns when they are written, exactly once, however long Kafka is away:

* aborted, or Kafka away: nothing was written, the same records are sent again;
* aborted since a topic of results or letters refuses records for what it is: the topics are looked at again
  (one that is gone is made, records are spread over as many partitions as there are); where nothing helps
  :class:`Unwritable` is raised, nothing is written, and the caller commits without what goes there;
* outcome unknown: a new producer fences the old one, so that the journal stands still, and the journal tells
  whether the last step is in it; a transaction that took all its time is given twice that;
* fenced: another owner has the shard. This one must stop (:class:`tureen.errors.Fenced` is raised).

The engine has applied the steps already but shows nothing of them before this returns.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from broker import logs
from broker.liveness import UNWATCHED, Pulse
from broker.settings import Settings
from broker.worker.counts import TRANSACTION_SECONDS
from broker.worker.troubles import Troubles
from engine.model.step import Position, StepResult
from topics.journal import read_steps
from topics.producer import (
    CommitUnknown,
    TransactionAborted,
    TransactionalProducer,
)
from topics.results import Records
from topics.sizes import producing
from tureen.errors import KafkaUnavailable, OutputRefused, TureenError

SLOW = 0.8
"""A transaction that took this part of its time, or more, and failed, is given twice the time."""
TIMEOUT_MAX_S = 900.0
"""Kafka's own default of ``transaction.max.timeout.ms``."""
REFUSALS_MAX = 5
"""A topic in which nothing wrong is seen may refuse records so often."""

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

    @property
    def told(self) -> int:
        """How many records tell changes."""
        return sum(map(len, self.records))


class Unwritable(Exception):
    """Nothing was written: these topics of results or letters refuse what is to go there, and why."""

    def __init__(self, topics: Mapping[str, TureenError]) -> None:
        self.topics = topics
        super().__init__(", ".join(sorted(topics)))


class Outbox:
    """The transactional producer of one shard. Used by the shard's thread alone."""

    def __init__(
        self,
        number: int,
        settings: Settings,
        kafka: dict[str, str],
        troubles: Troubles,
        look: Callable[[Collection[str]], Mapping[str, int | TureenError]],
        pulse: Pulse = UNWATCHED,
    ) -> None:
        """troubles: told under the name ``journal``. look: looks at result topics: how many partitions they
        have, or what is wrong with them; those that are gone it makes.
        """
        self._number = number
        self._settings = settings
        self._kafka = kafka
        self._writing = {**kafka, **producing(settings.record_bytes_max)}
        self._troubles = troubles
        self._look = look
        self._pulse = pulse
        self._timeout_s = settings.transaction_timeout_ms / 1_000
        self._producer: TransactionalProducer | None = None

    def fence(self) -> None:
        """Take the shard over: whoever wrote for it before can no longer. Waits for Kafka.

        Raises Fenced, Interrupted.
        """
        while True:
            self._pulse.rest(self._timeout_s)
            self.close()
            try:
                self._producer = TransactionalProducer(
                    self._writing,
                    self._settings.transactional_id(self._number),
                    timeout_s=self._timeout_s,
                )
                self._troubles.tell("journal", None)
                return
            except KafkaUnavailable as away:
                self._wait(away)

    def commit(self, outgoing: Outgoing) -> None:
        """Write it, exactly once. Raises Fenced, Interrupted, Unwritable."""
        if outgoing.last is None:
            return
        began_s = time.perf_counter()
        failed = False
        refusals: Counter[str] = Counter()
        while True:
            tried_s = time.perf_counter()
            try:
                self._try(outgoing, reporting=failed)
                break
            except TransactionAborted as aborted:
                log.warning("transaction_aborted", shard=self._number, reason=aborted.message)
                self._wait(aborted)
                self.fence()  # after a refusal the client may write no more, and knows old topics
                self._looked(outgoing, aborted.topics, refusals)
            except KafkaUnavailable as away:
                self._wait(away)
                self.fence()
            except CommitUnknown as unknown:
                log.warning("commit_unknown", shard=self._number, reason=unknown.message)
                self._troubles.tell("journal", unknown.as_dict())
                if time.perf_counter() - tried_s > self._timeout_s * SLOW:
                    self._timeout_s = min(2 * self._timeout_s, TIMEOUT_MAX_S)
                self.fence()
                if self._is_journalled(outgoing.last):
                    break
                self._looked(outgoing, {}, refusals)
            failed = True
        self._troubles.tell("journal", None)
        TRANSACTION_SECONDS.labels(str(self._number)).observe(time.perf_counter() - began_s)

    def _try(self, outgoing: Outgoing, *, reporting: bool) -> None:
        assert self._producer is not None
        self._pulse.rest(2 * self._timeout_s)  # to commit, and to abort
        with self._producer.transaction(reporting=reporting) as transaction:
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

    def _looked(self, outgoing: Outgoing, reasons: Mapping[str, str], refusals: Counter[str]) -> None:
        """Nothing was written: perhaps because of a topic of results or letters. Raises Unwritable.

        reasons: why topics refused records. refusals: how often they did; kept up to date.
        """
        names = {one.topic for one in outgoing.records} | {one.topic for one in outgoing.letters}
        names.discard(self._settings.names.steps)
        if not names:
            return
        try:
            found = self._look(names)
        except TureenError as away:
            log.warning("result_topics_unknown", shard=self._number, reason=away.message)
            return
        wrong = {name: told for name, told in found.items() if isinstance(told, TureenError)}
        for name in names & reasons.keys():
            refusals[name] += 1
            if refusals[name] >= REFUSALS_MAX:
                wrong.setdefault(name, OutputRefused(name, reasons[name]))
        if wrong:
            raise Unwritable(wrong)
        for one in outgoing.records:
            partitions = found[one.topic]
            assert isinstance(partitions, int)
            one.spread(partitions)

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

    def _wait(self, reason: TureenError) -> None:
        self._troubles.wait("journal", reason)

    def close(self) -> None:
        if self._producer is not None:
            self._producer.close()
            self._producer = None

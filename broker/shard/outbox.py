"""What a shard writes to Kafka: step records, late rows and dead letters, in one transaction.

:meth:`Outbox.commit` returns when they are written, exactly once, however long Kafka is away:

* aborted, or Kafka away: nothing was written, the same records are sent again;
* Kafka refuses the producer: it took too long, and Kafka ended its transaction, or another owner came;
* aborted since a topic of results or letters refuses records for what it is: the topics are looked at again
  (one that is gone is made, records are spread over as many partitions as there are); where nothing helps
  :class:`Unwritable` is raised, nothing is written, and the caller commits without what goes there;
* outcome unknown: the journal tells whether the last step is in it; a transaction that took all its time is
  given twice that;
* another owner has the shard: this one must stop (:class:`tureen.errors.Fenced` is raised).

Owner is who wrote the last claim (:class:`engine.model.step.Claim`) in the shard's journal, and nothing else
tells: Kafka refuses a producer for many reasons. An owner begins by :meth:`Outbox.take_over`. Whatever ends
its producer afterwards, it makes a new one, so that the journal stands still, and goes on only if the
journal's last record is its own: the last that it knows to be written, or the one that it was writing. Since
an owner may be cut off by one that has stopped meanwhile, or is about to find that it must, this holds in
both directions: whoever was fenced looks, and the one whose claim is the last goes on.

The engine has applied the steps already but shows nothing of them before this returns.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Mapping
from dataclasses import dataclass, field

from broker.base import logs
from broker.base.counts import TRANSACTION_SECONDS
from broker.base.settings import Settings
from broker.runtime.liveness import UNWATCHED, Pulse
from broker.shard.doing import TRANSACTION
from broker.shard.stalls import Stalls
from engine.model.step import BEGINNING, Claim, Position, Step, StepResult
from topics.journal import StepRecord, encode_step
from topics.journal_reader import READ_TIMEOUT_S, last_record
from topics.letters import Headers
from topics.producer import (
    CommitUnknown,
    TransactionAborted,
    TransactionalProducer,
)
from topics.results import Records
from topics.sizes import producing
from tureen.errors import Fenced, KafkaUnavailable, OutputRefused, TopicMissing, TureenError

SLOW = 0.8
"""A transaction that took this part of its time, or more, and failed, is given twice the time."""
TIMEOUT_MAX_S = 900.0
"""Kafka's own default of ``transaction.max.timeout.ms``."""
CLAIMS_MAX = 10
"""So often an owner that others fence meanwhile tries to take a shard over."""
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
    headers: Headers | None = None


@dataclass(slots=True)
class Outgoing:
    """What one transaction holds; ``last`` is the position of its last step.

    records: what tells changes (:meth:`tell`). told: how many records that are, told_bytes: of how many
    bytes. results: what its steps caused, in order. deferred: how many changes of its steps are written
    later. touched: queries that came, went, or got other options in it.
    """

    letters: list[Letter] = field(default_factory=list)
    records: list[Records] = field(default_factory=list, init=False)
    told: int = field(default=0, init=False)
    told_bytes: int = field(default=0, init=False)
    results: list[StepResult] = field(default_factory=list)
    deferred: int = 0
    touched: set[str] = field(default_factory=set)
    last: Position | None = None

    def tell(self, records: Iterable[Records]) -> None:
        """Add what tells changes."""
        for one in records:
            self.records.append(one)
            self.told += len(one)
            self.told_bytes += one.size

    def leave_out(self, topics: Container[str]) -> None:
        """Tell no changes in these topics."""
        kept = [one for one in self.records if one.topic not in topics]
        self.records, self.told, self.told_bytes = [], 0, 0
        self.tell(kept)

    @property
    def written(self) -> int:
        """How many records it writes: changes, journal, late rows and dead letters."""
        return self.told + len(self.letters)

    @property
    def caused(self) -> int:
        """How many records its steps caused, about: those, and changes that are written later."""
        return self.written + self.deferred


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
        stalls: Stalls,
        look: Callable[[Collection[str]], Mapping[str, int | TureenError]],
        pulse: Pulse = UNWATCHED,
    ) -> None:
        """stalls: told under the name ``journal``. look: looks at result topics: how many partitions they
        have, or what is wrong with them; those that are gone it makes.
        """
        self._number = number
        self._settings = settings
        self._kafka = kafka
        self._writing = {**kafka, **producing(settings.record_bytes_max)}
        self._stalls = stalls
        self._look = look
        self._pulse = pulse
        self._timeout_s = settings.transaction_timeout_ms / 1_000
        self._last = BEGINNING
        self._producer: TransactionalProducer | None = None

    def take_over(self, stored: Position) -> Position:
        """Become the shard's owner, by a claim in its journal: whoever wrote for it before can no longer.

        stored: of the last step in the store. Returns the claim's position, of an epoch that no other owner
        has; the journal ends there until this owner commits. Waits for Kafka. Raises Fenced: others take it
        over at the same time; Interrupted, JournalUnreadable.
        """
        owner = secrets.token_hex(16)
        fenced = 0
        while True:
            self._fence()
            last = self._tail()
            if last is not None and last.body == Claim(owner):
                self._last = last.position
                return self._last
            before = BEGINNING if last is None else last.position
            epoch, sequence = (max(pair) for pair in zip(_numbers(stored), _numbers(before), strict=True))
            step = Step(Position(epoch + 1, sequence + 1), time.time_ns() // 1_000_000, Claim(owner))
            key, value = encode_step(step, StepResult(step.position))
            letter = Letter(self._settings.names.steps, value, key, self._number)
            try:
                self._try(Outgoing([letter]), reporting=False)
            except (TransactionAborted, KafkaUnavailable, CommitUnknown, Fenced) as failed:
                fenced += isinstance(failed, Fenced)
                if fenced >= CLAIMS_MAX:
                    raise
                self._wait(failed)
            else:
                self._last = step.position
                return self._last

    def _fence(self) -> None:
        """Make a new producer: no earlier one can write. Waits for Kafka. Raises Interrupted."""
        while True:
            self._pulse.call(self._timeout_s, TRANSACTION)
            self.close()
            try:
                self._producer = TransactionalProducer(
                    self._writing,
                    self._settings.transactional_id(self._number),
                    timeout_s=self._timeout_s,
                )
                self._stalls.tell("journal", None)
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
            reasons: Mapping[str, str] = {}
            try:
                self._try(outgoing, reporting=failed)
                break
            except TransactionAborted as aborted:
                log.warning("transaction_aborted", shard=self._number, reason=aborted.message)
                self._wait(aborted)
                reasons = aborted.topics
            except KafkaUnavailable as away:
                self._wait(away)
            except CommitUnknown as unknown:
                log.warning("commit_unknown", shard=self._number, reason=unknown.message)
                self._stalls.tell("journal", unknown.as_dict())
                self._took(time.perf_counter() - tried_s)
            except Fenced as fenced:
                log.warning("producer_fenced", shard=self._number, reason=fenced.message)
                self._took(time.perf_counter() - tried_s)
                self._wait(fenced)  # a new owner writes its claim meanwhile
                self._own(self._tail(), outgoing.last)
            # A client that was refused may write no more, and knows old topics.
            self._fence()
            if self._own(self._tail(), outgoing.last):
                break
            self._looked(outgoing, reasons, refusals)
            failed = True
        self._last = outgoing.last
        self._stalls.tell("journal", None)
        TRANSACTION_SECONDS.labels(str(self._number)).observe(time.perf_counter() - began_s)

    def _took(self, seconds: float) -> None:
        """A transaction failed after so long: give the next twice the time, where that may have been it."""
        if seconds > self._timeout_s * SLOW:
            self._timeout_s = min(2 * self._timeout_s, TIMEOUT_MAX_S)

    def _try(self, outgoing: Outgoing, *, reporting: bool) -> None:
        assert self._producer is not None
        self._pulse.call(2 * self._timeout_s, TRANSACTION)  # to commit, and to abort
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

    def _own(self, tail: StepRecord | None, position: Position) -> bool:
        """Whether the last step that is being written is in the journal. Raises Fenced: its last record is
        another owner's. Where the journal's retention has passed nobody has claimed it.
        """
        if tail is None or tail.position == self._last:
            return False
        if tail.position == position:
            return True
        raise Fenced(
            f"another owner has shard {self._number}: its journal ends with step {tail.position}, not with "
            f"this owner's {self._last}"
        )

    def _tail(self) -> StepRecord | None:
        """The journal's last record. Waits for Kafka, and for the topic. Raises JournalUnreadable."""
        while True:
            self._pulse.call(3 * READ_TIMEOUT_S, TRANSACTION)  # where it begins, where it ends, what is there
            try:
                return last_record(self._kafka, self._settings.names.steps, self._number)
            except (KafkaUnavailable, TopicMissing) as away:
                self._wait(away)

    def _wait(self, reason: TureenError) -> None:
        self._stalls.wait("journal", reason)

    def close(self) -> None:
        if self._producer is not None:
            self._producer.close()
            self._producer = None


def _numbers(position: Position) -> tuple[int, int]:
    return position.epoch, position.sequence

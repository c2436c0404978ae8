"""Writes to topics: in transactions for a shard, in plain batches for everybody else.

Both are idempotent: a retry inside the client never doubles a record. A transaction ends in one of four
ways, and each is told apart: committed; :class:`TransactionAborted`, nothing of it will ever be seen;
Fenced, another owner has the transactional id; :class:`CommitUnknown`, it may or may not have happened:
make a new producer (which settles it) and look at what is in the log.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaException, Message, Producer, TopicPartition

from engine.model.batch import Int32Array
from topics.failures import FENCED, REFUSED_BY_TOPIC, as_ours, cause_of
from topics.letters import Headers
from topics.produce_loop import FEW_RECORDS, ColumnHeaders, ProduceLoop, rows_of
from topics.settings import KafkaSettings
from topics.sizes import BATCH_BYTES, RECORD_BYTES_MAX, producing
from tureen.errors import Fenced, KafkaUnavailable, TureenError

DEFAULTS: KafkaSettings = {
    "acks": "all",
    "linger.ms": 5,
    "compression.type": "lz4",
    "queue.buffering.max.messages": 1_000_000,
    **producing(RECORD_BYTES_MAX),
    "batch.size": BATCH_BYTES,
    "reconnect.backoff.max.ms": 1000,
    "log_level": 0,
}
ANY_PARTITION = -1
"""The client library chooses it by the key."""

_READER_ONLY = frozenset({"group.id"})


class TransactionAborted(TureenError):
    """The transaction was rolled back: nothing of it will be seen. The producer may go on with another.

    topics: those that refused a record for what they are, and why, as far as that was asked for.
    """

    code = "transaction_aborted"

    def __init__(self, message: str, topics: Mapping[str, str] | None = None, **facts: Any) -> None:
        self.topics = dict(topics or {})
        super().__init__(message, **facts)


class CommitUnknown(TureenError):
    """No answer said whether the transaction was committed. The producer is of no use any more."""

    code = "commit_unknown"


class TransactionalProducer:
    """The only writer under its ``transactional_id``: making one fences every earlier one.

    timeout_s: how long making one, and committing, may take; transactions left open longer are rolled back
    by Kafka. Raises KafkaUnavailable when Kafka does not answer in that time. After Fenced or CommitUnknown
    every further transaction raises the same.
    """

    def __init__(self, settings: KafkaSettings, transactional_id: str, timeout_s: float = 30.0) -> None:
        self._timeout_s = timeout_s
        self._producer = Producer(
            {
                **DEFAULTS,
                **_writing(settings),
                "enable.idempotence": True,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": max(1000, int(timeout_s * 1000)),
                "delivery.report.only.error": True,
            }
        )
        self._loop = ProduceLoop.of(self._producer)
        self._ended: TureenError | None = None
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                return self._producer.init_transactions(max(0.1, deadline - time.monotonic()))
            except KafkaException as error:
                if not cause_of(error).retriable() or time.monotonic() >= deadline:
                    raise as_ours(error, "taking the transactional id") from error

    @contextmanager
    def transaction(self, *, reporting: bool = False) -> Iterator[Transaction]:
        """What is sent inside is seen together, at the end, or not at all when the block raises.

        reporting: have TransactionAborted tell which topics refused records, at some cost for each record.
        Raises TransactionAborted, CommitUnknown, Fenced; an exception of the block goes through after
        the roll-back.
        """
        if self._ended is not None:
            raise self._ended
        try:
            if self._loop is None or not self._loop.begin_transaction():
                self._producer.begin_transaction()
        except KafkaException as error:
            raise self._failure(error, "beginning a transaction") from error
        transaction = Transaction(self._producer, self._loop, reporting=reporting)
        try:
            yield transaction
        except KafkaException as error:
            raise self._failure(error, "writing in a transaction", transaction, open_=True) from error
        except BaseException:
            self._abort()
            raise
        self._commit(transaction)

    def _commit(self, transaction: Transaction) -> None:
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                return self._producer.commit_transaction(max(0.1, deadline - time.monotonic()))
            except KafkaException as error:
                cause = cause_of(error)
                if cause.retriable() and time.monotonic() < deadline:
                    continue
                raise self._failure(error, "committing a transaction", transaction) from error

    def _failure(
        self, error: KafkaException, doing: str, transaction: Transaction | None = None, open_: bool = False
    ) -> TureenError:
        """What became of the transaction, rolled back where that is still possible.

        open_: committing it was not asked for yet.
        """
        cause = cause_of(error)
        if cause.code() in FENCED:
            self._ended = Fenced(f"{doing}: another owner took over, or the transaction was open too long")
            return self._ended
        if (open_ or cause.txn_requires_abort()) and self._abort():
            refused = {} if transaction is None else transaction.refused
            return TransactionAborted(f"{doing}: {cause.str()}", refused)
        self._ended = CommitUnknown(f"{doing}: {cause.str()}")
        return self._ended

    def _abort(self) -> bool:
        """Whether Kafka confirmed that the transaction is rolled back."""
        try:
            self._producer.abort_transaction(self._timeout_s)
        except KafkaException:
            return False
        return True

    def close(self) -> None:
        """Drop what is unfinished; no call waits for Kafka."""
        self._producer.purge()
        with suppress(KafkaException):  # one that has failed for good says so again
            self._producer.flush(0)


class Transaction:
    """An open transaction; made by :meth:`TransactionalProducer.transaction`."""

    def __init__(
        self, producer: Producer, loop: ProduceLoop | None = None, *, reporting: bool = False
    ) -> None:
        """loop: of this producer, if there is one."""
        self._producer = producer
        self._loop = loop
        self._options: dict[str, Any] = {"on_delivery": self._report} if reporting else {}
        self.refused: dict[str, str] = {}
        """Topics that refused a record, and why; of a transaction that reports."""

    def _report(self, error: Any, message: Message) -> None:
        if error is not None:
            self._note(message.topic() or "", error)

    def _note(self, topic: str, error: Any) -> None:
        if error.code() in REFUSED_BY_TOPIC:
            self.refused.setdefault(topic, error.str())

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Headers | None = None,
    ) -> None:
        """Add a record; blocks while the client's queue is full."""
        with self._noted(topic):
            _produce(self._producer, topic, value, key, partition, headers, self._options)

    def send_many(
        self,
        topic: str,
        values: pa.LargeBinaryArray,
        keys: pa.LargeBinaryArray,
        headers: ColumnHeaders,
        partitions: Int32Array | None = None,
    ) -> None:
        """Add records; blocks while the client's queue is full. A NULL value deletes, no key is NULL.
        partitions None: as their keys say.

        Cost: 0.5 us a record; 2 us where there is no loop, and in a transaction that reports.
        """
        n = len(keys)
        numbers = np.full(n, ANY_PARTITION, np.int32) if partitions is None else partitions
        loop = None if self._options or n < FEW_RECORDS else self._loop
        with self._noted(topic):
            place = 0
            while place < n:
                stop = n
                if loop is not None:
                    place = loop.send(topic, values, keys, headers, numbers, place)
                    stop = min(place + 1, n)  # the one that it did not take, to hear why
                for value, key, number, own in rows_of(values, keys, numbers, headers, place, stop):
                    self._produce(topic, value, key, number, own)
                place = stop
        self._producer.poll(0)

    def _produce(self, topic: str, value: bytes | None, key: bytes, partition: int, headers: Any) -> None:
        try:
            self._producer.produce(topic, value, key, partition, headers=headers, **self._options)
        except BufferError:
            _produce(self._producer, topic, value, key, partition, headers, self._options)

    def commit_offsets(self, offsets: Sequence[TopicPartition], group: Any, timeout_s: float = 30.0) -> None:
        """Commit a consumer group's offsets together with the records. group: its metadata."""
        self._producer.send_offsets_to_transaction(list(offsets), group, timeout_s)

    @contextmanager
    def _noted(self, topic: str) -> Iterator[None]:
        """The client library itself may refuse a record."""
        try:
            yield
        except KafkaException as error:
            self._note(topic, cause_of(error))
            raise


class BatchProducer:
    """Writes many records, with no order across partitions and no transaction."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._failures: list[tuple[str, Any]] = []
        self._failed = 0
        self._producer = Producer(
            {
                **DEFAULTS,
                "linger.ms": 20,
                # How long a topic that nobody knows is waited for before its records fail.
                "topic.metadata.propagation.max.ms": 5000,
                **_writing(settings),
                "enable.idempotence": True,
                "delivery.report.only.error": True,
                "on_delivery": self._report,
            }
        )

    def _report(self, error: Any, message: Message) -> None:
        if error is not None:
            self._failed += 1
            if not self._failures:
                self._failures.append((message.topic() or "", error))

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Headers | None = None,
    ) -> None:
        """Queue one record; blocks while the queue is full. What failed is told by :meth:`flush`."""
        _produce(self._producer, topic, value, key, partition, headers)

    def send_many(
        self,
        topic: str,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None = None,
        partitions: Sequence[int] | None = None,
    ) -> None:
        """Queue records; blocks while the queue is full. What failed is told by :meth:`flush`."""
        produce = self._producer.produce
        for place, value in enumerate(values):
            key = None if keys is None else keys[place]
            try:
                if partitions is None:
                    produce(topic, value, key)
                else:
                    produce(topic, value, key, partitions[place])
            except BufferError:
                number = None if partitions is None else partitions[place]
                _produce(self._producer, topic, value, key, number, None)
        self._producer.poll(0)

    def flush(self, timeout_s: float = 30.0) -> None:
        """Wait until every queued record is written.

        Raises TopicMissing or KafkaUnavailable when some were not; the hint says how many.
        """
        left = self._producer.flush(timeout_s)
        failed, failures = self._failed, self._failures
        self._failed, self._failures = 0, []
        if failures:
            topic, error = failures[0]
            failure = as_ours(error, f"writing to {topic}", topic)
            failure.hint = f"{failed:,} records were not written" + (
                f"; {failure.hint}" if failure.hint else ""
            )
            raise failure
        if left:
            raise KafkaUnavailable(
                f"{left:,} records are still waiting after {timeout_s:.0f} s", hint="is Kafka running?"
            )

    def close(self, timeout_s: float = 30.0) -> None:
        """Flush, with its errors."""
        self.flush(timeout_s)


def _produce(
    producer: Producer,
    topic: str,
    value: bytes | None,
    key: bytes | None,
    partition: int | None,
    headers: Headers | None,
    options: Mapping[str, Any] | None = None,
) -> None:
    options = dict(options or {})
    if partition is not None:
        options["partition"] = partition
    if headers:
        options["headers"] = headers
    while True:
        try:
            return producer.produce(topic, value, key, **options)
        except BufferError:
            producer.poll(0.05)


def _writing(settings: KafkaSettings) -> dict[str, str | int | float | bool]:
    return {name: value for name, value in settings.items() if name not in _READER_ONLY}

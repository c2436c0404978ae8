"""A micro-batch's records on Kafka exactly once, whoever writes them and however often.

The records of batch ``n`` and the number ``n + 1`` are committed in one Kafka transaction: the number as the
offset of a consumer group that nobody reads with. A batch whose number is committed is not written again. A
writer takes its transactional id before it looks at the number, so that an earlier one, of a task that Spark
gave up but that still lives, can commit nothing any more.

Needs no Spark: the driver and the Python workers of executors use it alike. Kafka forgets a group's offsets a
while after its last commit (``offsets.retention.minutes``, 7 days), and those of a topic that is deleted: it
is then the checkpoint alone that knows what was done.

A process keeps its writers: a producer is made, and the number read, once for an id. The number is sent
before the records, so that a writer that was overtaken meanwhile (Spark gives the batches of a task to any
worker) finds out while it has the records still, and begins anew.

Cost: three round trips a batch, some 20 ms beside the records; half a second for the first of a process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, KafkaException, TopicPartition

from topics.failures import MISSING_TOPIC, as_ours, cause_of
from topics.producer import CommitUnknown, Transaction, TransactionAborted, TransactionalProducer
from tureen.errors import Fenced, KafkaUnavailable, TopicMissing, TureenError

TIMEOUT_S = 60.0
"""Timeout of each call, and of the transaction as a whole, in seconds."""
WRITERS_MAX = 64
"""Kept by a process; each has some threads of the client library's."""

_Name = tuple[str, str, str, tuple[tuple[str, str], ...]]
_writers: dict[_Name, _Writer] = {}
_lock = threading.Lock()


def write_once(
    kafka: Mapping[str, str],
    *,
    transactional_id: str,
    group: str,
    topic: str,
    batch: int,
    send: Callable[[Transaction], None],
    timeout_s: float = TIMEOUT_S,
) -> bool:
    """Write what ``send`` sends as this batch; False where it was written before.

    topic: one that is there, on whose partition 0 the group's number hangs. Every ``transactional_id`` has a
    group of its own, and one writer at a time in a process. send: called at most once. Raises
    KafkaUnavailable, TopicMissing, TransactionAborted (nothing was written), CommitUnknown (call again: it
    finds out), Fenced (another writer took over), and what ``send`` raises.
    """
    name = (transactional_id, group, topic, tuple(sorted(kafka.items())))
    with _lock:
        writer = _writers.pop(name, None)
    if writer is not None:
        try:
            return _written(writer, name, batch, send)
        except _Overtaken:
            pass
    try:
        return _written(_Writer(kafka, transactional_id, group, topic, timeout_s), name, batch, send)
    except _Overtaken as overtaken:
        raise Fenced(f"another run of {transactional_id} took over") from overtaken


def next_batch(kafka: Mapping[str, str], group: str, topic: str, timeout_s: float = TIMEOUT_S) -> int:
    """The number after the last batch that was committed, 0 where none was. Raises KafkaUnavailable."""
    consumer = _group(kafka, group)
    try:
        return _next_batch(consumer, group, topic, timeout_s)
    finally:
        consumer.close()


Outcome = dict[str, Any]
OUTCOME = [("written", pa.bool_()), ("code", pa.string()), ("message", pa.string()), ("hint", pa.string())]
"""An outcome's members as Arrow has them: one goes from an executor's task to the driver as a row."""


def outcome(write: Callable[[], bool]) -> Outcome:
    """What came of a write, its error as data: Spark hands errors of a task on as text only."""
    try:
        return {"written": write(), "code": None, "message": None, "hint": None}
    except TureenError as error:
        return {"written": False, "code": error.code, "message": error.message, "hint": error.hint}


def answer(told: Mapping[str, Any], topic: str) -> bool:
    """The answer of :func:`write_once` from its outcome. Raises the error that it tells of."""
    code, message, hint = told["code"], told["message"], told["hint"]
    if code is None:
        return bool(told["written"])
    if code == TopicMissing.code:
        raise TopicMissing(topic, hint=hint)
    for kind in (KafkaUnavailable, TransactionAborted, CommitUnknown, Fenced):
        if code == kind.code:
            raise kind(message, hint=hint)
    raise TureenError(message, hint=hint)


def close_writers() -> None:
    """Give this process's producers back; the next batch makes them again."""
    with _lock:
        writers = list(_writers.values())
        _writers.clear()
    for writer in writers:
        writer.close()


class _Overtaken(Exception):
    """Another writer has the transactional id; nothing was taken from ``send`` yet."""


class _Writer:
    """A transactional id that this process has, and the number of the next batch under it."""

    def __init__(
        self, kafka: Mapping[str, str], transactional_id: str, group: str, topic: str, timeout_s: float
    ) -> None:
        self._topic = topic
        self._timeout_s = timeout_s
        self._producer = TransactionalProducer(kafka, transactional_id, timeout_s)
        self._consumer = _group(kafka, group)
        try:
            self._next = _next_batch(self._consumer, group, topic, timeout_s)
        except BaseException:
            self.close()
            raise

    def write(self, batch: int, send: Callable[[Transaction], None]) -> bool:
        """As :func:`write_once`; raises _Overtaken."""
        if batch < self._next:
            return False
        began = False
        try:
            with self._producer.transaction() as transaction:
                transaction.commit_offsets(
                    [TopicPartition(self._topic, 0, batch + 1)],
                    self._consumer.consumer_group_metadata(),
                    self._timeout_s,
                )
                began = True
                send(transaction)
        except Fenced as fenced:
            if not began:
                raise _Overtaken from fenced
            raise
        except TransactionAborted as aborted:
            cause = aborted.__cause__
            if isinstance(cause, KafkaException) and cause_of(cause).code() in MISSING_TOPIC:
                raise as_ours(cause, "writing a batch", self._topic) from aborted
            raise
        self._next = batch + 1
        return True

    def close(self) -> None:
        """Give the connections back."""
        self._producer.close()
        self._consumer.close()


def _written(writer: _Writer, name: _Name, batch: int, send: Callable[[Transaction], None]) -> bool:
    """Write by this writer, and keep it if that went well."""
    try:
        written = writer.write(batch, send)
    except BaseException:
        writer.close()
        raise
    with _lock:
        _writers[name] = writer
        beyond = _writers.pop(next(iter(_writers))) if len(_writers) > WRITERS_MAX else None
    if beyond is not None:
        beyond.close()
    return written


def _group(kafka: Mapping[str, str], group: str) -> Consumer:
    return Consumer(
        {
            **kafka,
            "group.id": group,
            "enable.auto.commit": False,
            "isolation.level": "read_committed",  # a number whose transaction is still open is waited for
            "log_level": 0,
            "error_cb": lambda _: None,
        }
    )


def _next_batch(consumer: Consumer, group: str, topic: str, timeout_s: float) -> int:
    try:
        [found] = consumer.committed([TopicPartition(topic, 0)], timeout_s)
    except KafkaException as error:
        raise as_ours(error, f"asking how far {group} is", topic) from error
    if found.error is not None:
        raise as_ours(found.error, f"asking how far {group} is", topic)
    return max(0, found.offset)

"""What every writer of a micro-batch is told, and how it writes: once, whoever runs it and however often."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from engine.model.limits import Limits
from spark_jobs import transactional
from spark_jobs.scale_out.micro_batch import MicroBatch
from spark_jobs.scale_out.shards.layout import Layout
from topics.letters import Headers
from topics.outputs import OutputSettings
from topics.producer import Transaction
from topics.results import Records
from tureen.protocol import TopicNames

TRANSACTION_S = 180.0
"""A writer that is silent so long is given up by Kafka, at most what its cluster allows."""


@dataclass(frozen=True, slots=True)
class WriterJob:
    """kafka: librdkafka's settings. name: of the run, among the service's. run: the checkpoint's own name.
    checkpoint: the directory of its state.
    """

    kafka: Mapping[str, str] = field(repr=False)
    service_id: str
    name: str
    run: str
    checkpoint: str
    layout: Layout
    outputs: OutputSettings
    limits: Limits
    batch: MicroBatch

    @property
    def names(self) -> TopicNames:
        return TopicNames(self.service_id)

    def identity(self, writer: str) -> str:
        """The transactional id of a writer: it fences those of earlier runs."""
        return f"{self.service_id}.scale-out.{self.name}.{writer}"


@dataclass(frozen=True, slots=True)
class Letter:
    """A record for the late ones or the dead letters."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers


def write_once(job: WriterJob, writer: str, send: Callable[[Transaction], None]) -> bool:
    """Write what ``send`` sends as this writer's part of the micro-batch; False: it was written before.

    Raises as :func:`spark_jobs.transactional.write_once`.
    """
    identity = job.identity(writer)
    return transactional.write_once(
        job.kafka,
        transactional_id=identity,
        group=f"{identity}.{job.run}",  # in another checkpoint micro-batches are counted anew
        topic=job.names.status,
        batch=job.batch.number,
        send=send,
        timeout_s=TRANSACTION_S,
    )


def send_all(transaction: Transaction, records: Sequence[Records], letters: Sequence[Letter] = ()) -> None:
    """Records of results, and letters."""
    for one in records:
        transaction.send_many(one.topic, one.values, one.keys, one.headers, one.partitions)
    for letter in letters:
        transaction.send(letter.topic, letter.value, letter.key, headers=letter.headers)

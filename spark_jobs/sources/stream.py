"""The job as a stream: each micro-batch of files, or of a generator's ticks, to the stream's topic once.

A micro-batch goes through the same functions as a batch run. Its rows are written in the order of their
timestamps, in one Kafka transaction by one task, with the batch's number: one that is handed out again after
a crash finds its number on Kafka and writes nothing. Rows that do not fit go to a file of the quarantine that
is named after the batch, so that writing it again changes nothing. A file that can't be read at all is put
aside whole, with the reason, and the others go on.

The declaration is published before the first batch.

Cost: a batch is kept in Spark's memory, then on its disks, while it is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from engine.model.source import Stream
from spark_jobs.checkpoint import Checkpoint, Identity
from spark_jobs.errors import InputMismatch, InputMissing, InputUnreadable
from spark_jobs.failures import reading, writing_topic
from spark_jobs.quarantine import put_aside
from spark_jobs.running import Stop
from spark_jobs.sources.declaring import declare, declared_stream, ensure_topics
from spark_jobs.sources.fitting import check
from spark_jobs.sources.formats import source_of
from spark_jobs.sources.job import count, refused
from spark_jobs.sources.records import messages, quarantined, with_messages
from spark_jobs.sources.settings import SourcesSettings
from spark_jobs.sources.source import JobSource
from spark_jobs.streaming import BatchCounts, StreamReport, run_stream
from spark_jobs.transactional import OUTCOME, answer, outcome, write_once
from topics.producer import Transaction

ASIDE = "put aside"


def run_streaming(
    session: SparkSession, settings: SourcesSettings, stop: Stop, started: datetime
) -> StreamReport:
    """Until it is told to stop, or with ``once`` until all that is there is written.

    Raises what a batch run does, and what :func:`run_stream` does.
    """
    assert settings.stream is not None
    statement = declared_stream(settings.sql)
    stream = statement.stream
    source = source_of(settings)
    service_id = settings.service_id if settings.declare else None
    ensure_topics(settings.kafka, service_id, statement)
    if service_id is not None:
        declare(settings.kafka, service_id, statement)

    def batch(units: DataFrame, number: int, checkpoint: Checkpoint) -> BatchCounts:
        taken = _taken(source, units, stream, settings.key)
        try:
            if taken.bad:
                bad = taken.aside(stream)
                if settings.quarantine is None:
                    raise refused(bad, taken.bad)
                name = f"stream-{checkpoint.id}-{number:09}"
                put_aside(bad.withColumn("at", F.lit(started)), settings.quarantine, name)
            if taken.good:
                rows = messages(reduce(DataFrame.unionByName, taken.rows), stream)
                write(rows, settings.kafka, stream.topic, number, checkpoint)
        finally:
            for part in taken.rows:
                part.unpersist()
        return BatchCounts(taken.good, {ASIDE: taken.bad})

    fixed = {
        "format": settings.format,
        "inputs": list(settings.inputs),
        "stream": str(stream.name),
        "topic": stream.topic,
        "select": settings.select,
    }
    if settings.jdbc is not None:
        fixed |= {"table": settings.jdbc.table, "query": settings.jdbc.query, "url": settings.jdbc.url}
        fixed["increasing"] = settings.jdbc.increasing
    return run_stream(
        session,
        lambda: source.units(session),
        batch,
        settings.stream,
        Identity("sources", fixed),
        stop,
        kafka=settings.kafka,
        topics=(stream.topic,),
    )


@dataclass(slots=True)
class _Taken:
    """A micro-batch's checked rows, kept, in one part or in one for each of its files.

    unreadable: files that gave none, each with the reason. bad: rows that do not fit, and those files.
    """

    session: SparkSession
    rows: list[DataFrame] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    good: int = 0
    bad: int = 0

    def add(self, rows: DataFrame, stream: Stream) -> None:
        """Look through all of a part. Raises InputMissing, InputUnreadable."""
        rows.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            with reading(("the input",)):
                counts = count(rows, stream.timestamp_column)
        except BaseException:
            rows.unpersist()
            raise
        self.rows.append(rows)
        self.good += counts.rows - counts.bad
        self.bad += counts.bad

    def aside(self, stream: Stream) -> DataFrame:
        """What the quarantine gets."""
        shape = "stream string, file string, reason string, record string"
        whole = [(str(stream.name), name, reason, None) for name, reason in self.unreadable]
        parts = [quarantined(part, stream) for part in self.rows]
        return reduce(DataFrame.unionByName, parts, self.session.createDataFrame(whole, shape))


def _taken(source: JobSource, units: DataFrame, stream: Stream, key: str | None) -> _Taken:
    """Raises InputMismatch, InputMissing, InputUnreadable where the units are not to be told apart."""

    def checked(some: DataFrame) -> DataFrame:
        return with_messages(check(source.rows_of(some, stream.schema), stream), stream, key)

    taken = _Taken(units.sparkSession)
    try:
        taken.add(checked(units), stream)
        return taken
    except (InputMismatch, InputMissing, InputUnreadable):
        apart = source.apart(units)
        if not apart:
            raise
    for name, unit in apart:
        try:
            taken.add(checked(unit), stream)
        except (InputMismatch, InputMissing, InputUnreadable) as error:
            taken.unreadable.append((name, error.message))
            taken.bad += 1
    return taken


def write(rows: DataFrame, kafka: Mapping[str, str], topic: str, number: int, checkpoint: Checkpoint) -> bool:
    """The messages of a micro-batch, columns ``key`` and ``value``, in one partition; False: written before.

    Raises KafkaUnavailable, TopicMissing, TransactionAborted, CommitUnknown, Fenced, SparkError.
    """
    name = f"{topic}.sources.{checkpoint.id}"
    settings = {**kafka, "partitioner": "murmur2_random"}  # as Java's clients do

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        def send(transaction: Transaction) -> None:
            for batch in batches:
                keys, values = (column.cast(pa.large_binary()) for column in batch.columns)
                if not keys.null_count:
                    transaction.send_many(topic, values, keys, [])
                    continue
                for key, value in zip(keys.to_pylist(), values.to_pylist(), strict=True):
                    transaction.send(topic, value, key)

        def written() -> bool:
            return write_once(
                settings, transactional_id=name, group=name, topic=topic, batch=number, send=send
            )

        told = outcome(written)
        yield pa.RecordBatch.from_pylist([told], pa.schema(OUTCOME))

    with writing_topic(topic):
        [told] = rows.mapInArrow(task, "written boolean, code string, message string, hint string").collect()
    return answer(told.asDict(), topic)

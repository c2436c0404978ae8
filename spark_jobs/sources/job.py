"""The job's edge: all reading and writing of one run.

Order of a run: the statement is parsed, the inputs and Kafka are looked at, all rows are checked and
counted; rows that do not fit go to the quarantine; the stream is declared; the messages are written, by Spark
or, at a pace, by the driver. What fails before the last step has written no message. The last is
at-least-once: one that fails or is stopped in the middle leaves the first part of the messages on the topic,
in order.

Cost: files are read twice, once more where rows go to the quarantine. They must not change meanwhile. A
table of a database, which may, and what is written at a pace, are read once, and kept by Spark.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from engine.language.query import CreateStream
from engine.model.source import Stream
from spark_jobs.errors import RowsRefused
from spark_jobs.failures import reading, writing_files, writing_topic
from spark_jobs.kafka import connector_options
from spark_jobs.running import Stop
from spark_jobs.sources.declaring import declare, declared_stream, ensure_topics
from spark_jobs.sources.fitting import check
from spark_jobs.sources.formats import source_of
from spark_jobs.sources.pacing import Pace, Warp
from spark_jobs.sources.records import messages, quarantined, with_messages
from spark_jobs.sources.replay import (
    Reached,
    first_ms,
    in_turn,
    replay,
    sender,
    shifted,
    showing,
    text_of,
    timed,
)
from spark_jobs.sources.settings import SourcesSettings
from tureen.errors import SettingsError

EXAMPLES_MAX = 5


@dataclass(frozen=True, slots=True)
class SourcesReport:
    """What a run did. ``first_ms``, ``last_ms``: timestamps of the rows written, in event time.

    stopped: it was asked to stop before its end.
    """

    stream: str
    topic: str
    partitions: int
    declared: bool
    rows_read: int
    rows_written: int
    rows_quarantined: int
    quarantine: str | None
    first_ms: int | None
    last_ms: int | None
    stopped: bool = False

    def as_dict(self) -> dict[str, object]:
        return asdict(self)

    def lines(self) -> list[str]:
        """It in words."""
        told = [f"{self.rows_written:,} of {self.rows_read:,} rows written to {self.topic}"]
        if self.rows_quarantined:
            told.append(
                f"{self.rows_quarantined:,} did not fit and went, with the reasons, to {self.quarantine}"
            )
        if self.stopped:
            at = "before the first" if self.last_ms is None else f"after {text_of(self.last_ms)}"
            told.append(f"stopped {at}, event time")
        if self.declared:
            told.append(f"stream {self.stream} is declared")
        return told


def run(
    session: SparkSession, settings: SourcesSettings, started: datetime, stop: Stop | None = None
) -> SourcesReport:
    """One run. started: stands beside each row in the quarantine. stop: ends a paced one.

    Raises QueryError, InputMissing, InputUnreadable, InputMismatch, RowsRefused, PathNotWritable,
    KafkaUnavailable, TopicMissing, TopicPolicyMismatch, SettingsError, SparkError.
    """
    statement = declared_stream(settings.sql)
    stream = statement.stream
    options = connector_options(settings.kafka)
    if settings.warp != Warp() and stream.timestamp_column is None:
        raise SettingsError(
            "a pace and moved timestamps need a stream in event time",
            hint="declare it WITH (timestamp = '...')",
        )
    checked = check(source_of(settings).rows(session, stream.schema), stream)
    if settings.jdbc is not None or settings.warp != Warp():
        checked = checked.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        return _run(settings, statement, options, checked, started, stop or Stop())
    finally:
        checked.unpersist()


def _run(
    settings: SourcesSettings,
    statement: CreateStream,
    options: dict[str, str],
    checked: DataFrame,
    started: datetime,
    stop: Stop,
) -> SourcesReport:
    stream = statement.stream
    service_id = settings.service_id if settings.declare else None
    partitions = ensure_topics(settings.kafka, service_id, statement)
    with reading(settings.named):
        if settings.warp.shift_to_ms is not None:
            shift_ms = settings.warp.shift_ms(first_ms(checked, stream))
            checked = shifted(checked, stream, shift_ms)
        rows = with_messages(checked, stream, settings.key)
        counts = count(rows, stream.timestamp_column)
    if counts.bad:
        _put_aside(quarantined(rows, stream), counts.bad, settings, started)
    if service_id is not None:
        declare(settings.kafka, service_id, statement)
    report = SourcesReport(
        str(stream.name),
        stream.topic,
        partitions,
        settings.declare,
        counts.rows,
        counts.rows - counts.bad,
        counts.bad,
        settings.quarantine,
        counts.first_ms,
        counts.last_ms,
    )
    if settings.warp.speed is not None:
        reached = _paced(rows, counts.rows, stream, settings, stop)
        return replace(
            report,
            rows_written=reached.rows,
            first_ms=reached.first_ms,
            last_ms=reached.last_ms,
            stopped=reached.stopped,
        )
    with writing_topic(stream.topic):
        messages(rows, stream).write.format("kafka").options(**options).option("topic", stream.topic).save()
    return report


def _paced(rows: DataFrame, number: int, stream: Stream, settings: SourcesSettings, stop: Stop) -> Reached:
    """Write the rows at their turns, from the driver."""
    with showing("sources") as tell:
        return replay(
            in_turn(timed(rows, stream), number, "at", "value"),
            Pace(settings.warp.speed, time.monotonic),
            sender(settings.kafka),
            stop,
            time.monotonic,
            tell,
        )


def count(rows: DataFrame, timestamp_column: str | None) -> Row:
    """``rows``, ``bad`` of them, ``first_ms`` and ``last_ms`` of the good ones."""
    good = F.col("reason").isNull()
    at = F.lit(None).cast("bigint")
    if timestamp_column is not None:
        at = F.when(good, F.unix_millis(F.col("row").getField(timestamp_column)))
    found = rows.agg(
        F.count(F.lit(1)).alias("rows"),
        F.count_if(~good).alias("bad"),
        F.min(at).alias("first_ms"),
        F.max(at).alias("last_ms"),
    ).first()
    assert found is not None  # an aggregate without groups has one row
    return found


def _put_aside(bad: DataFrame, number: int, settings: SourcesSettings, started: datetime) -> None:
    if settings.quarantine is None:
        with reading(settings.named):
            raise refused(bad, number)
    with writing_files(settings.quarantine):
        bad.withColumn("at", F.lit(started)).write.mode("append").parquet(settings.quarantine)


def refused(bad: DataFrame, number: int) -> RowsRefused:
    """The error that tells of rows which do not fit, with examples."""
    examples = [f"{row.file or '?'}: {row.reason}" for row in bad.limit(EXAMPLES_MAX).collect()]
    return RowsRefused(
        number, examples, hint="correct them, or give --quarantine DIRECTORY to store them there and continue"
    )

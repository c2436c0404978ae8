"""The job's edge: all reading and writing of one run.

Order of a run: the statement is parsed, the inputs and Kafka are looked at, all rows are checked and
counted; rows that do not fit go to the quarantine; the stream is declared; the messages are written. What
fails before the last step has written no message. The last is at-least-once: one that fails in the middle
leaves the first part of the messages on the topic, in order.

Cost: the input is read twice, three times where rows go to the quarantine. The files must not change
meanwhile.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime

from confluent_kafka import KafkaException, Producer
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from engine.language.query import CreateStream
from engine.language.statements import parse
from engine.limits import Limits
from spark_jobs.errors import RowsRefused
from spark_jobs.failures import reading, writing_files, writing_topic
from spark_jobs.kafka import connector_options
from spark_jobs.sources.fitting import check
from spark_jobs.sources.reading import read
from spark_jobs.sources.records import messages, quarantined, with_messages
from spark_jobs.sources.settings import SourcesSettings
from topics.admin import Admin, Policies, service_topics
from tureen.errors import KafkaUnavailable, NotSupported
from tureen.protocol import TopicNames

EXAMPLES_MAX = 5
ADMIN_TIMEOUT_S = 15.0
PUBLISH_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class SourcesReport:
    """What a run did. ``first_ms``, ``last_ms``: timestamps of the rows written, in event time."""

    stream: str
    topic: str
    partitions: int
    declared: bool
    rows_read: int
    rows_written: int
    rows_quarantined: int
    first_ms: int | None
    last_ms: int | None

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


def run(session: SparkSession, settings: SourcesSettings, started: datetime) -> SourcesReport:
    """One run. started: stands beside each row in the quarantine.

    Raises QueryError, InputMissing, InputUnreadable, InputMismatch, RowsRefused, PathNotWritable,
    KafkaUnavailable, TopicMissing, TopicPolicyMismatch, SettingsError, SparkError.
    """
    statement = declared_stream(settings.sql)
    stream = statement.stream
    options = connector_options(settings.kafka)
    raw = read(session, settings, stream.schema)
    rows = with_messages(check(raw, stream), stream, settings.key)

    admin = Admin(settings.kafka, ADMIN_TIMEOUT_S)
    if settings.declare:
        names = TopicNames(settings.service_id)
        admin.ensure(policy for policy in service_topics(names, Policies()) if policy.name == names.sources)
    partitions = admin.ensure_source_topic(
        stream.topic, statement.partitions, arrival_time=not stream.event_time
    )

    with reading(settings.inputs):
        counts = _count(rows, stream.timestamp_column)
    if counts.bad:
        _put_aside(quarantined(rows, stream), counts.bad, settings, started)
    if settings.declare:
        declare(settings, str(stream.name))
    with writing_topic(stream.topic):
        messages(rows, stream).write.format("kafka").options(**options).option("topic", stream.topic).save()
    return SourcesReport(
        str(stream.name),
        stream.topic,
        partitions,
        settings.declare,
        counts.rows,
        counts.rows - counts.bad,
        counts.bad,
        counts.first_ms,
        counts.last_ms,
    )


def declared_stream(sql: str) -> CreateStream:
    """The statement that declares the stream. Raises QueryError, LimitExceeded."""
    statement = parse(sql, {}, Limits())
    if not isinstance(statement, CreateStream):
        raise NotSupported(
            "this does not create a stream",
            line=1,
            column=1,
            hint="write CREATE STREAM name (column TYPE, ...)",
        )
    return statement


def declare(settings: SourcesSettings, name: str) -> None:
    """Publish the statement under the stream's name; the broker takes an equal one again as done.

    Raises KafkaUnavailable.
    """
    topic = TopicNames(settings.service_id).sources
    failures: list[object] = []

    def told(error: object, _: object) -> None:
        if error is not None:
            failures.append(error)

    producer = Producer(
        {
            **settings.kafka,
            "partitioner": "murmur2_random",  # as Java's clients: all writers of a key agree on its partition
            "log_level": 0,
            "error_cb": lambda _: None,
        }
    )
    value = json.dumps({"sql": settings.sql}).encode()
    producer.produce(topic, value, name.encode(), on_delivery=told)
    try:
        left = producer.flush(PUBLISH_TIMEOUT_S)
    except KafkaException as error:
        failures.append(error)
        left = 0
    if left or failures:
        reason = str(failures[0]) if failures else f"no answer within {PUBLISH_TIMEOUT_S:g} s"
        raise KafkaUnavailable(f"the stream could not be declared on {topic}: {reason}")


def _count(rows: DataFrame, timestamp_column: str | None) -> Row:
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


def _put_aside(bad: DataFrame, count: int, settings: SourcesSettings, started: datetime) -> None:
    if settings.quarantine is None:
        with reading(settings.inputs):
            examples = [f"{row.file or '?'}: {row.reason}" for row in bad.limit(EXAMPLES_MAX).collect()]
        raise RowsRefused(
            count, examples, hint="correct them, or give --quarantine DIRECTORY to put them aside and go on"
        )
    with writing_files(settings.quarantine):
        bad.withColumn("at", F.lit(started)).write.mode("append").parquet(settings.quarantine)

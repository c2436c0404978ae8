"""The job's edge: Nexmark's events to three topics, and their streams to the broker.

As a batch the first so many events are written in the order of their numbers, by Spark as fast as it goes, or
by the driver at their turns (:mod:`spark_jobs.sources.pacing`). As a stream each micro-batch is the next so
many events, as often as it is told; each is on each topic once, whatever dies meanwhile, and the next run
goes on with the event after the last. The same settings make the same records every time.

Cost: in a batch the events pass through one task, sorted; memory of the driver is that of one piece.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from math import ceil

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from engine.language.query import CreateStream
from spark_jobs.checkpoint import Checkpoint, Identity
from spark_jobs.failures import writing_topic
from spark_jobs.kafka import connector_options
from spark_jobs.nexmark.records import in_order, records
from spark_jobs.nexmark.settings import EVENTS_MAX, NexmarkSettings
from spark_jobs.nexmark.streams import statements
from spark_jobs.running import Stop
from spark_jobs.settings import StreamSettings
from spark_jobs.sources.declaring import declare, ensure_topics
from spark_jobs.sources.pacing import Pace, Warp
from spark_jobs.sources.replay import Reached, Turn, replay, sender, showing
from spark_jobs.sources.stream import write
from spark_jobs.streaming import BatchCounts, StreamReport, run_stream
from tureen.errors import SettingsError

EVENTS_A_PIECE_FIRST, EVENTS_A_PIECE = 1_000, 20_000
EVENTS_A_BATCH_MAX = 10_000_000


@dataclass(frozen=True, slots=True)
class NexmarkJobSettings:
    """What one run is told. Raises SettingsError.

    prefix: before the names of streams and topics. partitions, retain: of new topics, of the streams.
    warp: a batch's pace. stream: go on without end, or to the last of ``events``; its pace is ``speed``.
    """

    events: NexmarkSettings
    kafka: Mapping[str, str] = field(repr=False)
    service_id: str = "tureen"
    prefix: str = ""
    partitions: int = 1
    retain: str | None = None
    declare: bool = True
    warp: Warp = field(default_factory=Warp)
    stream: StreamSettings | None = None

    def __post_init__(self) -> None:
        if self.stream is None and self.events.events is None:
            raise SettingsError("a batch must have an end", hint="give --events N, or --stream")
        if self.stream is not None and self.warp.shift_to_ms is not None:
            raise SettingsError(
                "a stream that is continued must keep its timestamps",
                hint="give --base with the timestamp of the first event in place of --shift-to",
            )
        if self.stream is not None and not 1 <= self.events_a_batch <= EVENTS_A_BATCH_MAX:
            raise SettingsError(
                f"{self.events_a_batch:,} events a micro-batch are not within 1 and {EVENTS_A_BATCH_MAX:,}",
                hint="they are --rate times --speed times --every",
            )

    @property
    def events_a_batch(self) -> int:
        """Events of one micro-batch of a stream."""
        every_s = 1.0 if self.stream is None else self.stream.every_s
        return ceil(self.events.rate * (self.warp.speed or 1.0) * every_s)

    @property
    def shifted(self) -> NexmarkSettings:
        """The events with their timestamps where they are to be."""
        if self.warp.shift_to_ms is None:
            return self.events
        base_ms = self.warp.shift_to_ms - self.events.first * 1_000 // self.events.rate
        return replace(self.events, base_ms=base_ms)


@dataclass(frozen=True, slots=True)
class NexmarkReport:
    """What a batch did. events: that were written, of so many, from number ``first`` on.

    last_ms: timestamp of the last one.
    """

    topics: tuple[str, ...]
    declared: bool
    first: int
    events: int
    of: int
    last_ms: int | None
    stopped: bool

    def as_dict(self) -> dict[str, object]:
        return asdict(self)

    def lines(self) -> list[str]:
        """It in words."""
        told = [f"{self.events:,} of {self.of:,} events written to {', '.join(self.topics)}"]
        if self.stopped:
            told.append(f"stopped; --first {self.first + self.events} continues after the last one")
        if self.declared:
            told.append("the streams are declared")
        return told


def run(session: SparkSession, settings: NexmarkJobSettings, stop: Stop) -> NexmarkReport:
    """A batch. Raises QueryError, KafkaUnavailable, TopicMissing, TopicPolicyMismatch, SparkError."""
    made = settings.shifted
    assert made.events is not None
    streams = _prepared(settings, made)
    topics = tuple(statement.stream.topic for statement in streams.values())
    if settings.warp.speed is None:
        events = _places(session.range(made.events, numPartitions=_pieces(session, made.events)))
        options = connector_options(settings.kafka)
        with writing_topic(", ".join(topics)):
            in_order(records(events, made, streams)).write.format("kafka").options(**options).save()
        last_ms = made.base_ms + (made.first + made.events - 1) * 1_000 // made.rate
        return NexmarkReport(
            topics, settings.declare, made.first, made.events, made.events, last_ms, stopped=False
        )
    reached = _replayed(session, settings, made, streams, stop)
    return NexmarkReport(
        topics, settings.declare, made.first, reached.rows, made.events, reached.last_ms, reached.stopped
    )


def run_streaming(session: SparkSession, settings: NexmarkJobSettings, stop: Stop) -> StreamReport:
    """Until it is told to stop, or the last event is written; with ``once`` one micro-batch.

    Raises what a batch does, and what :func:`run_stream` does.
    """
    assert settings.stream is not None
    made = settings.events
    streams = _prepared(settings, made)
    end = EVENTS_MAX if made.events is None else made.events
    ended = False

    def units() -> DataFrame:
        reader = session.readStream.format("rate-micro-batch")
        return reader.option("rowsPerBatch", str(settings.events_a_batch)).load()

    def batch(ticks: DataFrame, number: int, checkpoint: Checkpoint) -> BatchCounts:
        nonlocal ended
        places = ticks.select(F.col("value").alias("place")).where(F.col("place") < end)
        bounds = places.agg(F.count("*").alias("events"), F.max("place").alias("last")).first()
        assert bounds is not None
        if bounds.events:
            for kind, statement in streams.items():
                rows = in_order(records(places, made, {kind: statement})).select("key", "value")
                write(rows, settings.kafka, statement.stream.topic, number, checkpoint)
        if bounds.last is None or bounds.last + 1 >= end:
            ended = not stop.asked
            stop.ask()
        return BatchCounts(bounds.events)

    fixed = {name: value for name, value in asdict(made).items() if name != "events"}
    report = run_stream(
        session,
        units,
        batch,
        settings.stream,
        Identity("nexmark", {**fixed, "topics": sorted(s.stream.topic for s in streams.values())}),
        stop,
        kafka=settings.kafka,
        topics=tuple(statement.stream.topic for statement in streams.values()),
    )
    return replace(report, stopped=report.stopped and not ended)


def _prepared(settings: NexmarkJobSettings, made: NexmarkSettings) -> dict[str, CreateStream]:
    streams = statements(made, prefix=settings.prefix, partitions=settings.partitions, retain=settings.retain)
    service_id = settings.service_id if settings.declare else None
    for statement in streams.values():
        ensure_topics(settings.kafka, service_id, statement)
    if service_id is not None:
        for statement in streams.values():
            declare(settings.kafka, service_id, statement)
    return streams


def _replayed(
    session: SparkSession,
    settings: NexmarkJobSettings,
    made: NexmarkSettings,
    streams: Mapping[str, CreateStream],
    stop: Stop,
) -> Reached:
    def piece(ends: tuple[int, int]) -> list[Turn]:
        places = _places(session.range(*ends, numPartitions=1))
        return [
            Turn(row.at, row.topic, row.key.encode(), row.value.encode())
            for row in in_order(records(places, made, streams)).collect()
        ]

    def turns() -> Iterator[Turn]:
        assert made.events is not None
        with ThreadPoolExecutor(1) as ahead:  # a piece is made while the one before has its turns
            following: Future[list[Turn]] | None = None
            for ends in pieces(made.events):
                current, following = following, ahead.submit(piece, ends)
                if current is not None:
                    yield from current.result()
            if following is not None:
                yield from following.result()

    with showing("nexmark") as tell:
        return replay(
            turns(),
            Pace(settings.warp.speed, time.monotonic),
            sender(settings.kafka),
            stop,
            time.monotonic,
            tell,
        )


def pieces(events: int) -> Iterator[tuple[int, int]]:
    """Where the pieces of a replay begin and end: small ones first, so that it soon begins."""
    begin, size = 0, EVENTS_A_PIECE_FIRST
    while begin < events:
        end = min(events, begin + size)
        yield begin, end
        begin, size = end, min(EVENTS_A_PIECE, 2 * size)


def _places(numbers: DataFrame) -> DataFrame:
    return numbers.select(F.col("id").alias("place"))


def _pieces(session: SparkSession, events: int) -> int:
    return max(session.sparkContext.defaultParallelism, ceil(events / 1_000_000))

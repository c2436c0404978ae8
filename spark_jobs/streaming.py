"""A job's stream: Structured Streaming with our stop, our progress on screen and our errors.

A job gives a streaming DataFrame and what is to be done with a micro-batch of it. What is done must be
idempotent for the batch's number: Spark hands a batch out again when it died between the work and the
checkpoint's note of it, with the same rows.

A stop that is asked for lets the running micro-batch end and the checkpoint note it. A Kafka that is away is
waited for: the query is started again from the checkpoint as soon as Kafka answers. What waiting does not
mend ends the run as an error of ours; a bug ends it as what it is.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.checkpoint import Checkpoint, Identity, claim
from spark_jobs.failures import stream_failure
from spark_jobs.kafka import reading_options
from spark_jobs.progress import Figures, Show, shown
from spark_jobs.running import Stop
from spark_jobs.settings import StreamSettings
from topics.admin import Admin
from topics.producer import CommitUnknown, TransactionAborted
from tureen.errors import KafkaUnavailable, TopicMissing, TureenError

POLL_S = 0.1
SHOW_EVERY_S = 0.5
PROBE_TIMEOUT_S = 5.0
BACKOFF_S = 1.0
BACKOFF_MAX_S = 10.0
FAILURES_MAX = 5
"""In a row, with a Kafka that answers."""
STOP_TIMEOUT_S = 60.0
SHUFFLES = "spark.sql.shuffle.partitions"
SHUFFLES_OF_SPARK = "200"
"""Tasks of each grouping of a micro-batch, unless told; only in batches does Spark leave empty ones out."""
PASSING = (KafkaUnavailable, TransactionAborted, CommitUnknown)
"""What another try may mend."""


@dataclass(frozen=True, slots=True)
class BatchCounts:
    """What a micro-batch was: its rows, and further counts, which the report adds up by name."""

    rows: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StreamReport:
    """What a run did. stopped: it was asked to end; else all there was is done. restarts: after outages."""

    job: str
    checkpoint: str
    batches: int
    rows: int
    counts: Mapping[str, int]
    restarts: int
    stopped: bool

    def as_dict(self) -> dict[str, object]:
        return asdict(self)

    def lines(self) -> list[str]:
        """It in words."""
        counts = "".join(f", {count:,} {name}" for name, count in self.counts.items() if count)
        rows = f"{self.rows:,} row{'' if self.rows == 1 else 's'}"
        told = [f"{rows} in {self.batches:,} micro-batch{'' if self.batches == 1 else 'es'}{counts}"]
        if self.stopped:
            told.append(f"stopped; the next run continues from {self.checkpoint}")
        return told


Frame = Callable[[], DataFrame]
Batch = Callable[[DataFrame, int, Checkpoint], BatchCounts]


def run_stream(
    session: SparkSession,
    frame: Frame,
    batch: Batch,
    settings: StreamSettings,
    identity: Identity,
    stop: Stop,
    *,
    kafka: Mapping[str, str],
    topics: tuple[str, ...] = (),
) -> StreamReport:
    """Run until it is told to stop, or with ``once`` until all is done.

    frame: called again for each start. batch: the rows, the batch's number, the checkpoint; called in another
    thread, by one at a time. topics: which the job is about, and needs to go on after an outage.
    Raises CheckpointMismatch, PathNotWritable, RecordsLost, TopicMissing, KafkaUnavailable after
    ``give_up_after_s``, SparkError, and whatever ``batch`` raises but what is waited out.
    """
    rows: DataFrame | None = frame()  # an input that is not there is told before the checkpoint is made
    checkpoint = claim(session, settings.checkpoint, identity)
    session.conf.set("spark.sql.streaming.stopTimeout", f"{STOP_TIMEOUT_S:g}s")
    figures = Figures(identity.job)
    counts: Counter[str] = Counter()
    restarts, failures, since_s = 0, 0, 0.0
    with shown() as show:
        while not stop.asked:
            before = figures.batches
            if rows is None:
                rows = frame()
            try:
                _Attempt(batch, checkpoint, figures, counts, topics, stop, show).run(rows, settings)
                break
            except TopicMissing as error:
                gone = sorted(set(topics) - Admin(kafka, PROBE_TIMEOUT_S).topics().keys())
                raise TopicMissing(gone[0] if gone else error.topic, hint=error.hint) from error
            except TureenError as error:
                if not isinstance(error, PASSING):
                    raise
                if failures == 0 or figures.batches > before:
                    failures, since_s = 0, time.monotonic()
                failures += 1
                pause_s = min(BACKOFF_S * 2 ** (failures - 1), BACKOFF_MAX_S)
                until_s = since_s + settings.give_up_after_s
                answered = _wait(error, kafka, topics, figures, show, stop, pause_s, until_s)
                if answered and failures >= FAILURES_MAX:
                    raise
                if not answered:
                    failures = 1
            restarts, rows = restarts + 1, None
    return StreamReport(
        identity.job,
        settings.checkpoint,
        figures.batches,
        figures.rows,
        dict(counts),
        restarts,
        stop.asked,
    )


def kafka_source(
    session: SparkSession, kafka: Mapping[str, str], *, accept_gap: bool = False, **options: str
) -> DataFrame:
    """Topics as a stream of committed records, from their begin on.

    options: the connector's, ``subscribe`` among them. accept_gap: records that are gone are passed over.
    """
    reader = session.readStream.format("kafka")
    chosen = {
        "startingOffsets": "earliest",
        "kafka.isolation.level": "read_committed",
        "failOnDataLoss": str(not accept_gap).lower(),
        **reading_options(kafka),
        **options,
    }
    return reader.options(**chosen).load()


class _Asked(Exception):
    """The stop was asked for before this micro-batch began; it begins in the next run."""


class _Attempt:
    """One start of the query, until it ends for whatever reason."""

    def __init__(
        self,
        batch: Batch,
        checkpoint: Checkpoint,
        figures: Figures,
        counts: Counter[str],
        topics: tuple[str, ...],
        stop: Stop,
        show: Show,
    ) -> None:
        self._batch = batch
        self._checkpoint = checkpoint
        self._figures = figures
        self._counts = counts
        self._topics = topics
        self._stop = stop
        self._show = show
        self._lock = threading.Lock()
        self._busy = False
        self._done: int | None = None
        self._failure: BaseException | None = None

    def __call__(self, rows: DataFrame, number: int) -> None:
        """Spark's ``foreachBatch``, in a thread of Py4J's."""
        try:
            with self._lock:
                if self._stop.asked:
                    raise _Asked
                self._busy = True
            began_s = self._figures.began_s = time.monotonic()
            _as_wide_as_spark(rows.sparkSession)
            done = self._batch(rows, number, self._checkpoint)
            ended_s = time.monotonic()
            self._figures.note(number, done.rows, round(1000 * (ended_s - began_s)), ended_s)
            self._counts.update(done.counts)
        except BaseException as error:
            self._failure = error
            raise
        finally:
            self._done = number
            self._busy = False
            self._figures.began_s = None

    def run(self, frame: DataFrame, settings: StreamSettings) -> None:
        """Until the query has ended. Raises what ended it, if it was not asked to."""
        writer = frame.writeStream.foreachBatch(self).option("checkpointLocation", self._checkpoint.path)
        if settings.once:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{round(1000 * settings.every_s)} milliseconds")
        try:
            self._follow(writer.start())
        except (PySparkException, Py4JJavaError) as error:
            if isinstance(self._failure, _Asked):
                return
            raise self._root(error) from error

    def _follow(self, query: StreamingQuery) -> None:
        shown_s = 0.0
        try:
            while not query.awaitTermination(POLL_S):  # type: ignore[arg-type]
                if self._stop.asked and self._at_rest(query):
                    return
                if time.monotonic() - shown_s >= SHOW_EVERY_S:
                    self._figures.lag = _lag(query.lastProgress)
                    self._show(self._figures)
                    shown_s = time.monotonic()
        finally:
            if query.isActive:
                query.stop()

    def _at_rest(self, query: StreamingQuery) -> bool:
        """Whether no micro-batch runs, and the checkpoint has noted the last."""
        with self._lock:
            if self._busy:
                return False
        if self._done is None:
            return True
        progress = query.lastProgress
        return progress is not None and progress["batchId"] >= self._done

    def _root(self, error: Exception) -> Exception:
        failure = self._failure
        if failure is None or isinstance(failure, (PySparkException, Py4JJavaError)):
            return stream_failure(failure or error, self._checkpoint.path, self._topics)
        assert isinstance(failure, Exception)
        return failure


def _as_wide_as_spark(session: SparkSession) -> None:
    """Groupings in as many tasks as can run at a time, where the user has not told another number.

    session: the stream's own, which is a copy of the job's.
    """
    if session.conf.get(SHUFFLES) == SHUFFLES_OF_SPARK:
        session.conf.set(SHUFFLES, session.sparkContext.defaultParallelism)


def _wait(
    error: TureenError,
    kafka: Mapping[str, str],
    topics: tuple[str, ...],
    figures: Figures,
    show: Show,
    stop: Stop,
    pause_s: float,
    until_s: float,
) -> bool:
    """Wait for Kafka; whether it answered at once, and so was not what failed. In the end, the error.

    pause_s: before it is asked first; twice as long before each other time.
    """
    first = True
    while True:
        figures.waiting = f"{error.message}; trying again in {pause_s:g} s"
        show(figures)
        if stop.wait(pause_s):
            return first
        try:
            there = Admin(kafka, PROBE_TIMEOUT_S).topics()
        except KafkaUnavailable:
            if time.monotonic() >= until_s:
                raise error from None
            first = False
            pause_s = min(2 * pause_s, BACKOFF_MAX_S)
            continue
        for topic in topics:
            if topic not in there:
                raise TopicMissing(topic, hint="it existed before; create it again, and the job continues")
        return first


def _lag(progress: Any) -> int | None:
    """Records of Kafka that are there and were not read, by the last progress."""
    if progress is None:
        return None
    lag, known = 0, False
    for source in progress["sources"]:
        ends, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
        if not isinstance(ends, dict) or not isinstance(latest, dict):
            continue
        for topic, partitions in latest.items():
            if isinstance(partitions, dict):
                known = True
                there = ends.get(topic, {})
                lag += sum(max(0, end - there.get(number, 0)) for number, end in partitions.items())
    return lag if known else None


def _offsets(told: Any) -> Any:
    try:
        return json.loads(told) if isinstance(told, str) else told
    except ValueError:
        return None

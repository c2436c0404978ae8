"""The job's edge: which topics are read, where a micro-batch begins and ends, and the run itself.

What is archived is settled at the start of a run, the columns of a stream at each micro-batch. The topics of
a checkpoint may become more. Spark's own note of a micro-batch's offsets says which records it has, so the
archive can say so too, also of those that gave no row: markers of transactions, records of aborted ones.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from engine.model.source import Stream
from spark_jobs.archive.batch import Circumstances, OffsetRange, archive_batch
from spark_jobs.archive.settings import ArchiveSettings
from spark_jobs.archive.statements import Statements
from spark_jobs.archive.tables import Commits, Target, results_target, stream_target
from spark_jobs.checkpoint import Checkpoint, Identity
from spark_jobs.errors import CheckpointMismatch
from spark_jobs.running import Stop
from spark_jobs.streaming import BatchCounts, StreamReport, kafka_source, run_stream
from topics.admin import Admin
from topics.registry_client import Registry
from tureen.errors import SettingsError, TopicMissing, UnknownSource
from tureen.protocol import TopicNames

JOB = "archive"
UNDECODABLE = "undecodable"


def run(session: SparkSession, settings: ArchiveSettings, stop: Stop) -> StreamReport:
    """One run. Raises what :func:`spark_jobs.streaming.run_stream` and :func:`archive_batch` raise, and
    UnknownSource, TopicMissing, KafkaUnavailable, SettingsError, CheckpointMismatch.
    """
    archiving = _Archiving(settings)
    targets = archiving.targets()
    topics = tuple(sorted({target.topic for target in targets}))
    _check_names(targets)
    _check_topics(session, settings.stream.checkpoint, topics)

    def frame() -> DataFrame:
        return kafka_source(
            session,
            settings.kafka,
            accept_gap=settings.stream.accept_gap,
            subscribe=",".join(topics),
            includeHeaders="true",
            maxOffsetsPerTrigger=str(settings.records_at_once),
        )

    identity = Identity(JOB, {"root": settings.root, "service_id": settings.service_id})
    return run_stream(
        session,
        frame,
        archiving.batch,
        settings.stream,
        identity,
        stop,
        kafka=settings.kafka,
        topics=topics,
    )


class _Archiving:
    """What lives as long as a run: clients, and the streams as they were declared last."""

    def __init__(self, settings: ArchiveSettings) -> None:
        self._settings = settings
        self._admin = Admin(settings.kafka)
        self._registry = None if settings.registry is None else Registry(settings.registry)
        self._statements: Statements | None = None
        self._streams: dict[str, Stream] = {}
        self._results: tuple[str, ...] = ()
        self._commits: Commits = {}
        if settings.streams or settings.all_streams:
            self._statements = Statements(settings.kafka, settings.service_id)

    def targets(self) -> list[Target]:
        """What to archive. Raises UnknownSource, TopicMissing, SettingsError, ArchiveMismatch."""
        settings = self._settings
        declared = {} if self._statements is None else self._statements.refresh()
        for name in settings.streams:
            if name not in declared:
                others = f"there are {', '.join(sorted(declared))}" if declared else "none is declared"
                raise UnknownSource(name, hint=f"{others}; views have no topic of their own to archive")
        names = sorted(declared) if settings.all_streams else settings.streams
        self._streams = {name: declared[name] for name in names}
        there = self._admin.topics()
        self._results = settings.results
        if settings.all_results:
            self._results = tuple(sorted(one for one in there if _is_results(settings.service_id, one)))
        found = self._made()
        for target in found:
            if target.topic not in there:
                raise TopicMissing(target.topic, hint="create it, or correct its name")
        if not found:
            what = "stream" if settings.all_streams else "result topic"
            raise SettingsError(f"there is no {what} to archive", hint="run again when there is one")
        return found

    def batch(self, rows: DataFrame, number: int, checkpoint: Checkpoint) -> BatchCounts:
        """One micro-batch."""
        ranges = self._ranges(rows.sparkSession, checkpoint.path, number)
        targets = self._present_targets()
        given = Circumstances(
            {topic: self._admin.topic_id(topic) for topic in ranges},
            time.time_ns() // 1_000_000,
            self._registry,
            self._settings.stream.accept_gap,
            self._admin.begin_offsets if self._settings.stream.accept_gap else None,
            self._commits,
        )
        counts: Counter[str] = Counter()
        rows.persist()
        try:
            for written in archive_batch(rows, ranges, targets, given):
                counts[written.table] += written.rows
        finally:
            rows.unpersist()
        return BatchCounts(counts["rows"], {UNDECODABLE: counts["quarantine"]})

    def _present_targets(self) -> list[Target]:
        """With columns that were declared since the run began; a stream that was dropped stays as it was."""
        declared = {} if self._statements is None else self._statements.refresh()
        for name, stream in self._streams.items():
            if name in declared and declared[name].topic == stream.topic:
                self._streams[name] = declared[name]
        return self._made()

    def _made(self) -> list[Target]:
        root, by = self._settings.root, self._settings.partition_by
        found = [stream_target(root, stream, by) for stream in self._streams.values()]
        return found + [results_target(root, topic) for topic in self._results]

    def _ranges(
        self, session: SparkSession, checkpoint: str, batch: int
    ) -> dict[str, dict[int, OffsetRange]]:
        """What the micro-batch has, by Spark's note of it and of the one before."""
        ends = _offsets(session, checkpoint, batch)
        begins = _offsets(session, checkpoint, batch - 1) if batch else {}
        found: dict[str, dict[int, OffsetRange]] = {}
        for topic, partitions in ends.items():
            known = begins.get(topic, {})
            first: dict[int, int] = {}
            if partitions.keys() - known.keys():  # met for the first time: read from their begin
                first = self._admin.begin_offsets(topic)
            for number, end in partitions.items():
                begin = known.get(number, min(first.get(number, 0), end))
                if number not in known or end > begin:
                    found.setdefault(topic, {})[number] = OffsetRange(begin, end)
        return found


def _is_results(service_id: str, topic: str) -> bool:
    names = TopicNames(service_id)
    return topic == names.results or topic.startswith(names.results_into(""))


def _check_names(targets: list[Target]) -> None:
    """Raises SettingsError: a stream has the name of a topic of results, so they would share a quarantine."""
    names = Counter(target.quarantine_uri for target in targets)
    for target in targets:
        if names[target.quarantine_uri] > 1:
            raise SettingsError(
                f"both a stream and a topic of results have the name {target.name}",
                hint="archive them into different directories",
            )


def _check_topics(session: SparkSession, checkpoint: str, topics: tuple[str, ...]) -> None:
    """Raises CheckpointMismatch: a topic that was read is to be read no more."""
    last = _last_batch(session, checkpoint)
    if last is None:
        return
    gone = sorted(_offsets(session, checkpoint, last).keys() - set(topics))
    if gone:
        raise CheckpointMismatch(
            checkpoint,
            f"has read {', '.join(gone)}, which is no longer to be archived",
            hint="archive it further, or name an empty directory as --checkpoint: tables know which records "
            "they have, and none is written twice",
        )


# --- Spark's note of offsets -------------------------------------------------------------------------


def _offsets(session: SparkSession, checkpoint: str, number: int) -> dict[str, dict[int, int]]:
    """topic -> partition -> where the micro-batch ended. Raises CheckpointMismatch."""
    jvm: Any = session._jvm
    path = jvm.org.apache.hadoop.fs.Path(f"{checkpoint.rstrip('/')}/offsets/{number}")
    stream = path.getFileSystem(_configuration(session)).open(path)
    try:
        text: str = jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
    finally:
        stream.close()
    try:
        version, _, *sources = text.splitlines()
        if version != "v1" or len(sources) != 1:
            raise ValueError(text)
        told = json.loads(sources[0])
        return {
            topic: {int(partition): int(offset) for partition, offset in partitions.items()}
            for topic, partitions in told.items()
        }
    except (ValueError, AttributeError) as error:
        raise CheckpointMismatch(
            checkpoint,
            f"has a note of micro-batch {number} that is not of this version of Spark",
            hint="give an empty directory: tables know which records they have, and none is written twice",
        ) from error


def _last_batch(session: SparkSession, checkpoint: str) -> int | None:
    jvm: Any = session._jvm
    path = jvm.org.apache.hadoop.fs.Path(f"{checkpoint.rstrip('/')}/offsets")
    files = path.getFileSystem(_configuration(session))
    if not files.exists(path):
        return None
    names = [str(one.getPath().getName()) for one in files.listStatus(path)]
    return max((int(name) for name in names if name.isdigit()), default=None)


def _configuration(session: SparkSession) -> Any:
    jsc: Any = session._jsc
    return jsc.hadoopConfiguration()

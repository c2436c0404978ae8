"""The two phases of a micro-batch, on Spark's executors.

    phase 1: records of Kafka are decoded into pieces, whose largest timestamps the driver collects
    phase 2: queries with state by shard, selections by partition; each writes what it tells

A writer of phase 2 writes once for each number of a micro-batch, however often it is done.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark import Broadcast
from pyspark.sql import DataFrame, SparkSession

from engine.model.source import SourceName, Stream
from engine.model.step import CreateSource, DropSource
from spark_jobs.kafka import reading_options
from spark_jobs.scale_out.clock import with_time
from spark_jobs.scale_out.decoding import PIECES, Decoding, decoded, records_of
from spark_jobs.scale_out.journal import Pending
from spark_jobs.scale_out.micro_batch import Definition, MicroBatch, Plan, RecordRange, Summary
from spark_jobs.scale_out.selections import PartitionsTask, told
from spark_jobs.scale_out.settings import ScaleOutSettings
from spark_jobs.scale_out.shards.layout import check_key
from spark_jobs.scale_out.shards.run import cut_pieces, run_shards
from spark_jobs.scale_out.writers import WriterJob
from tureen.errors import KafkaUnavailable, TureenError

PASSING = ("kafka_unavailable", "registry_unavailable", "transaction_aborted", "commit_unknown", "fenced")
"""Codes of errors by which a task fails, and after which the micro-batch is done again."""


@dataclass(slots=True)
class BatchReport:
    """What a micro-batch did. records: of results, of phase 2 that were not there before."""

    number: int
    rows: int = 0
    records: int = 0
    late: int = 0
    dead: int = 0
    broken: dict[str, dict[str, Any]] = field(default_factory=dict)
    phases_ms: dict[str, int] = field(default_factory=dict)


class Phases:
    """Does the phases of one run's micro-batches; used by the driver's thread alone."""

    def __init__(self, session: SparkSession, settings: ScaleOutSettings, run: str) -> None:
        """run: the checkpoint's name for itself."""
        self._session = session
        self._settings = settings
        self._run = run
        self._plan: tuple[int, Broadcast[Plan]] | None = None
        """The version that executors have, and theirs."""

    def check(self, definitions: Iterable[Definition]) -> None:
        """Whether new streams can be cut into shards. Raises NotSupported."""
        for one in definitions:
            if isinstance(one, CreateSource):
                check_key(one.stream, self._settings.layout)

    def pieces(self, batch: MicroBatch, streams: Mapping[SourceName, Stream]) -> DataFrame:
        """Phase 1: what was read, decoded where it is asked for."""
        by_topic: dict[str, list[Stream]] = {}
        ranges: dict[str, dict[int, RecordRange]] = {}
        for step in batch.steps:
            by_topic.setdefault(step.topic, []).append(streams[step.source])
            for one in step.ranges:
                if one.first < one.until:
                    known = ranges.setdefault(step.topic, {}).get(one.partition, one)
                    first, until = min(known.first, one.first), max(known.until, one.until)
                    ranges[step.topic][one.partition] = RecordRange(one.partition, first, until)
        if not ranges:
            return self._session.createDataFrame([], PIECES)
        starts = {topic: {str(p): one.first for p, one in found.items()} for topic, found in ranges.items()}
        ends = {topic: {str(p): one.until for p, one in found.items()} for topic, found in ranges.items()}
        kafka = (
            self._session.read.format("kafka")
            .options(**reading_options(self._settings.kafka))
            .option("kafka.isolation.level", "read_committed")
            .option("assign", json.dumps({topic: sorted(found) for topic, found in ranges.items()}))
            .option("startingOffsets", json.dumps(starts))
            .option("endingOffsets", json.dumps(ends))
            .option("includeHeaders", "true")
            .option("failOnDataLoss", str(not self._settings.stream.accept_gap).lower())
            .load()
        )
        decoding = Decoding(
            {topic: tuple(found) for topic, found in by_topic.items()},
            batch.clock_ms,
            {step.source: step.before for step in batch.steps},
            {step.source: {one.partition: one for one in step.ranges} for step in batch.steps},
        )
        return decoded(records_of(kafka), decoding)

    def with_times(
        self,
        batch: MicroBatch,
        streams: Mapping[SourceName, Stream],
        pieces: DataFrame,
        report: BatchReport,
    ) -> tuple[MicroBatch, set[tuple[str, int]]]:
        """The micro-batch with its times, and the partitions that have records."""
        summaries: dict[str, list[Summary]] = {step.source: [] for step in batch.steps}
        with_records: set[tuple[str, int]] = set()
        for row in pieces.select("source", "partition", "first", "rows", "records", "max_ms").collect():
            with_records.add((row.source, row.partition))
            report.rows += row.records
            if row.rows:
                summaries[row.source].append(Summary(row.partition, row.first, row.rows, row.max_ms))
        steps = tuple(
            with_time(streams[step.source], step, summaries[step.source], batch.clock_ms)
            for step in batch.steps
        )
        return replace(batch, steps=steps), with_records

    def _job(self, batch: MicroBatch) -> WriterJob:
        settings = self._settings
        return WriterJob(
            dict(settings.kafka),
            settings.service_id,
            settings.name,
            self._run,
            settings.state,
            settings.layout,
            settings.outputs,
            settings.limits,
            batch,
        )

    def tell_rows(
        self,
        batch: MicroBatch,
        plan: Plan,
        streams: Mapping[SourceName, Stream],
        pieces: DataFrame,
        with_records: set[tuple[str, int]],
        before: Iterable[Pending],
        report: BatchReport,
    ) -> list[Pending]:
        """Phase 2 of selections. before: what waited for NOW after the last micro-batch. Returns what does
        after this. Raises KafkaUnavailable, TureenError, by what a task failed.
        """
        nows = {step.source: step.now_ms for step in batch.steps}
        gone = {one.source for one in batch.definitions if isinstance(one, DropSource)}
        pending = {
            (one.source, one.partition): one
            for one in before
            if one.source in nows and one.source not in gone
        }
        due = [
            one
            for key, one in pending.items()
            if key not in with_records and _reached(one, nows[SourceName(one.source)])
        ]
        if not with_records and not due:
            return list(pending.values())
        work = pieces
        if due:
            marks = [(one.source, one.partition, -1, 0, 0, None, None, None) for one in due]
            marked = self._session.createDataFrame(marks, PIECES)
            work = pieces.unionAll(marked) if with_records else marked
        every = [(step.source, one.partition) for step in batch.steps for one in step.ranges]
        first = len(self._settings.layout.every)
        small = replace(batch, coming=(), definitions=(), going=(), placements={}, begins={})
        task = PartitionsTask(
            self._job(small),
            streams,
            pending,
            {key: first + place for place, key in enumerate(every)},
        )
        held = self._broadcast(plan)
        for row in told(work, task, lambda: held.value).collect():
            one = json.loads(row.told)
            _raise(one["failed"])
            report.records += one["records"]
            report.late += one["late"]
            report.dead += one["dead"]
            report.broken |= one["broken"]
            key = one["source"], one["partition"]
            pending.pop(key, None)
            if one["pending"] is not None:
                pending[key] = Pending(*key, *one["pending"])
        return list(pending.values())

    def _broadcast(self, plan: Plan) -> Broadcast[Plan]:
        """The plan on executors, sent once for each version."""
        if self._plan is None or self._plan[0] != plan.version:
            if self._plan is not None:
                self._plan[1].unpersist()
            self._plan = plan.version, self._session.sparkContext.broadcast(plan)
        return self._plan[1]

    def tell_shards(
        self,
        batch: MicroBatch,
        streams: Mapping[SourceName, Stream],
        pieces: DataFrame,
        report: BatchReport,
    ) -> int:
        """Phase 2 of all other queries. Returns from which micro-batch on shards may read again. Raises as
        :meth:`tell_rows`.
        """
        job = self._job(batch)
        needed = batch.number
        for one in run_shards(self._session, cut_pieces(pieces, job, streams), job):
            _raise(one.get("failed"))
            report.records += one["records"]
            report.broken |= one["broken"]
            needed = min(needed, one["needed_from"])
        return needed


def _reached(waiting: Pending, now_ms: int | None) -> bool:
    return now_ms is not None and waiting.first_ms <= now_ms


def _raise(failed: Mapping[str, Any] | None) -> None:
    """What a task said that it failed by."""
    if failed is None:
        return
    if failed.get("code") in PASSING:
        raise KafkaUnavailable(failed["message"])
    raise TureenError(failed["message"], hint=failed.get("hint"))

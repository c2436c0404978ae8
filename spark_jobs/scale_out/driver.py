"""The driver's side: micro-batch after micro-batch.

    registry -> what came and went          }
    Kafka    -> which records               }  begun/<number>.json
    phase 1, on executors: pieces, and their largest timestamps
    the clock -> NOW of every stream           batches/<number>.json
    phase 2, on executors: queries with state by shard, selections by partition
    .status, done.json

What is decided is written before it is acted upon, and every writer of phase 2 writes once for each number.
So a driver that begins after one that died does the micro-batch at which it died again: nothing is missing,
nothing is twice.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from confluent_kafka import Message
from py4j.protocol import Py4JJavaError
from pyspark import Broadcast, StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from engine.language.query import Query
from engine.model.source import SourceName, Stream
from engine.model.step import CreateSource, DropSource
from spark_jobs.kafka import reading_options
from spark_jobs.scale_out.clock import with_time
from spark_jobs.scale_out.decoding import PIECES, Decoding, decoded, records_of
from spark_jobs.scale_out.journal import Journal, LastDone, Pending
from spark_jobs.scale_out.micro_batch import MicroBatch, Placement, Plan, RecordRange, Summary
from spark_jobs.scale_out.ownership import Ownership
from spark_jobs.scale_out.reading import Reading
from spark_jobs.scale_out.registry import Changes, Registry, RegistryEntry, as_record
from spark_jobs.scale_out.selections import PartitionsTask, stateless, told
from spark_jobs.scale_out.settings import ScaleOutSettings
from spark_jobs.scale_out.shards.layout import check_key
from spark_jobs.scale_out.shards.placement import place
from spark_jobs.scale_out.shards.run import cut_pieces, run_shards
from spark_jobs.scale_out.writers import WriterJob
from topics.admin import Admin, Policies, service_topics
from topics.letters import forwarded
from topics.outputs import Outputs
from topics.producer import BatchProducer
from tureen.errors import KafkaUnavailable, NotSupported, TureenError
from tureen.protocol import TopicNames

PASSING = ("kafka_unavailable", "registry_unavailable", "transaction_aborted", "commit_unknown", "fenced")


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


class Driver:
    """One for a run of the job. ``stop_at``: called with the name of each stage before it."""

    def __init__(
        self,
        session: SparkSession,
        settings: ScaleOutSettings,
        run: str,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        stop_at: Callable[[str], None] = lambda stage: None,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        """run: the checkpoint's name for itself. clock: ms since 1970. say: is told what becomes of queries
        and streams, for people.

        Raises KafkaUnavailable, ServiceInUse, CheckpointMismatch, TopicPolicyMismatch, CheckpointUnreadable.
        """
        self._session = session
        self._settings = settings
        self._run = run
        self._clock = clock
        self._stop_at = stop_at
        self._say = say
        self._names = TopicNames(settings.service_id)
        self._admin = Admin(dict(settings.kafka))
        policies = Policies(replication=-1)
        wanted = [one for one in service_topics(self._names, policies) if one.name != self._names.steps]
        there = self._admin.topics()
        self._admin.ensure(replace(one, partitions=there.get(one.name, one.partitions)) for one in wanted)
        self.journal = Journal(settings.state)
        self._done = self.journal.done()
        self._ownership = Ownership(
            settings.kafka,
            self._admin,
            self._names,
            name=settings.name,
            checkpoint=run,
            path=settings.stream.checkpoint,
            fresh=not self._done.number and self.journal.find("begun", 1) is None,
            epoch=self._done.epoch + 1,
        )
        self._outputs = Outputs(settings.outputs, self._admin)
        self._producer = BatchProducer(dict(settings.kafka))
        self._registry = self._new_registry()
        self._reading = Reading(
            self._admin,
            rows_max=settings.rows_max,
            wait_ms=0 if settings.stream.once else settings.first_record_wait_ms,
            accept_gap=settings.stream.accept_gap,
        )
        self._told_lost: dict[SourceName, str] = {}
        self._whole = True
        self._epoch = self._ownership.epoch
        self._clock_ms = 0
        self._plan: tuple[int, Broadcast[Plan]] | None = None
        if self._done.number:
            last = self.journal.read(self._done.number)
            self._clock_ms = last.clock_ms
            self._reading.went_on(last.steps)
            self._registry.adopt(self.journal.read_plan(last.plan))

    def close(self) -> None:
        """Give the connections back, and the service."""
        self._registry.close()
        self._producer.close()
        self._ownership.close()

    def _new_registry(self) -> Registry:
        settings = self._settings
        return Registry(
            settings.kafka, self._names, settings.limits, self._outputs, self._place, self._letter
        )

    def _place(self, query: Query, streams: Mapping[SourceName, Stream]) -> Placement:
        if stateless(query, streams):
            if query.emit is not None and query.emit.snapshot and not self._settings.layout.shards:
                raise NotSupported(
                    "this scale-out has no shards, so there are no rows for a first answer",
                    hint="add WITH (snapshot = false), or start a scale-out with --shards",
                )
            return "rows"
        return place(query, streams, self._settings.layout)

    def _letter(self, message: Message, refused: TureenError) -> None:
        value, key, headers = forwarded(message, f"{refused.code}: {refused.message}")
        self._producer.send(self._names.dead_letters, value, key, headers=headers)

    # --- what is to be done -------------------------------------------------------------------------

    def next(self) -> BatchReport | None:
        """Do the next micro-batch; None where nothing came and no NOW would move.

        Raises KafkaUnavailable, ServiceInUse, RecordsLost, PathNotWritable, SparkError; NotSupported: a
        stream cannot be cut by its key; TopicMissing, TopicRecreated: a micro-batch that was begun is of
        records that went with it.
        """
        self._ownership.check()
        number = self._done.number + 1
        decided = self.journal.find("batches", number)
        batch = decided or self.journal.find("begun", number)
        if batch is not None:
            return self._again(batch, decided is not None)
        changes = self._registry.give_up(self._done.broken)
        polled = self._registry.poll(whole=self._whole)
        self._whole = False
        _join(changes, polled)
        for one in changes.definitions:
            if isinstance(one, CreateSource):
                check_key(one.stream, self._settings.layout)
            elif isinstance(one, DropSource):
                self._reading.dropped(one.source)
        self._clock_ms = max(self._clock_ms, self._clock())
        streams = self._registry.streams
        steps = self._reading.steps(streams.values())
        moved = any(one.first < one.until for step in steps for one in step.ranges)
        timed = {name for name, stream in streams.items() if self._registry.needs_time(stream)}
        if not moved and not changes and not self._reading.would_move(streams, timed, steps, self._clock_ms):
            self._tell(changes, None)
            return None
        batch = MicroBatch(
            number,
            self._epoch,
            self._clock_ms,
            self._registry.version,
            tuple(changes.definitions),
            tuple(changes.going),
            tuple(registration for registration, _ in changes.coming),
            {registration.query_id: placement for registration, placement in changes.coming},
            self._registry.begins(registration.query_id for registration, _ in changes.coming),
            steps,
        )
        self._stop_at("plan")
        if changes or not self._done.number:
            self.journal.write_plan(self._registry.plan())
        self.journal.write("begun", batch)
        return self._do(batch, self._registry.plan(), changes)

    def _again(self, batch: MicroBatch, decided: bool) -> BatchReport:
        """A micro-batch that was begun: as it was decided then."""
        plan = self.journal.read_plan(batch.plan)
        self._clock_ms = max(self._clock_ms, batch.clock_ms)
        if self._registry.version != plan.version:  # an earlier run decided it
            self._registry.close()
            self._registry = self._new_registry()
            self._registry.adopt(plan)
            self._whole = True
        entries = self._registry.entries
        gone: dict[str, RegistryEntry | None] = {one: entries.get(one) for one in batch.going}
        stand = [one.query_id for one in batch.coming if one.query_id in entries]
        came: dict[str, RegistryEntry | None] = {query_id: entries[query_id] for query_id in stand}
        streams = {stream.name: stream for stream, _ in plan.streams}
        batch = self._without_lost(batch, streams, decided)
        return self._do(batch, plan, Changes(told=gone | came), decided=decided)

    def _without_lost(
        self, batch: MicroBatch, streams: Mapping[SourceName, Stream], decided: bool
    ) -> MicroBatch:
        """The micro-batch without records of topics that are gone meanwhile; nothing rests on them yet.

        decided: something may. Raises TopicMissing, TopicRecreated then.
        """
        steps = self._reading.without_lost(batch.steps, streams)
        gone = [one.source for one, before in zip(steps, batch.steps, strict=True) if one.lost > before.lost]
        if not gone:
            return batch
        if decided:
            error = self._reading.lost[gone[0]]
            error.hint = "an unfinished micro-batch has records of it: start with an empty checkpoint"
            raise error
        batch = replace(batch, steps=steps)
        self.journal.write("begun", batch)
        return batch

    # --- doing it -----------------------------------------------------------------------------------

    def _do(self, batch: MicroBatch, plan: Plan, changes: Changes, *, decided: bool = False) -> BatchReport:
        """decided: it was before, and perhaps acted upon."""
        report = BatchReport(batch.number)
        streams = {stream.name: stream for stream, _ in plan.streams}
        self._stop_at("decode")
        began_s = time.monotonic()
        pieces = self._pieces(batch, streams)
        pieces.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            try:
                timed, with_records = self._with_times(batch, streams, pieces, report)
            except (PySparkException, Py4JJavaError):
                left = self._without_lost(batch, streams, decided)
                if left is batch:
                    raise
            else:
                left = self._without_lost(batch, streams, decided)
            if left is not batch:
                return self._do(left, plan, changes)
            batch = timed
            report.phases_ms["decode"] = round(1_000 * (time.monotonic() - began_s))
            self.journal.write("batches", batch)
            self._stop_at("shards")
            began_s = time.monotonic()
            needed = self._tell_shards(batch, streams, pieces, report)  # first: selections begin there
            report.phases_ms["shards"] = round(1_000 * (time.monotonic() - began_s))
            self._stop_at("tell")
            began_s = time.monotonic()
            pending = self._tell_rows(batch, plan, streams, pieces, with_records, report)
            report.phases_ms["rows"] = round(1_000 * (time.monotonic() - began_s))
        finally:
            pieces.unpersist()
        self._stop_at("done")
        self._tell(changes, batch)
        before = {one.file for one in self._done.pending} - {one.file for one in pending}
        done = LastDone(batch.number, batch.epoch, tuple(pending), report.broken)
        self.journal.finish(done, batch.plan, needed)
        self._done = done
        for name in before:
            self.journal.directory.remove(name)
        self._reading.went_on(batch.steps)
        return report

    def _pieces(self, batch: MicroBatch, streams: Mapping[SourceName, Stream]) -> DataFrame:
        """Phase 1."""
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

    def _with_times(
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

    def _tell_rows(
        self,
        batch: MicroBatch,
        plan: Plan,
        streams: Mapping[SourceName, Stream],
        pieces: DataFrame,
        with_records: set[tuple[str, int]],
        report: BatchReport,
    ) -> list[Pending]:
        """Phase 2 of selections. Returns what waits for NOW."""
        nows = {step.source: step.now_ms for step in batch.steps}
        gone = {one.source for one in batch.definitions if isinstance(one, DropSource)}
        pending = {
            (one.source, one.partition): one
            for one in self._done.pending
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

    def _tell_shards(
        self,
        batch: MicroBatch,
        streams: Mapping[SourceName, Stream],
        pieces: DataFrame,
        report: BatchReport,
    ) -> int:
        """Phase 2 of all other queries. Returns from which micro-batch on shards may read again."""
        job = self._job(batch)
        needed = batch.number
        for one in run_shards(self._session, cut_pieces(pieces, job, streams), job):
            _raise(one.get("failed"))
            report.records += one["records"]
            report.broken |= one["broken"]
            needed = min(needed, one["needed_from"])
        return needed

    # --- what is told -------------------------------------------------------------------------------

    def _tell(self, changes: Changes, batch: MicroBatch | None) -> None:
        lost = self._reading.lost
        for line in changes.lines():
            self._say(line)
        for name, error in lost.items():
            if self._told_lost.get(name) != error.code:
                self._say(f"stream {name} is read no more: {error}")
                for query_id, reader in self._registry.entries.items():
                    if reader.reads(name):
                        changes.told.setdefault(query_id, reader)
        self._told_lost = {name: error.code for name, error in lost.items()}
        position = None if batch is None else str(batch.position(0))
        for query_id, entry in changes.told.items():
            key, value = as_record(query_id, entry, position, lost)
            self._producer.send(self._names.status, value, key)
        self._producer.flush()


def _reached(waiting: Pending, now_ms: int | None) -> bool:
    return now_ms is not None and waiting.first_ms <= now_ms


def _join(changes: Changes, more: Changes) -> None:
    changes.definitions += more.definitions
    changes.going += more.going
    changes.coming += more.coming
    changes.told |= more.told


def _raise(failed: Mapping[str, Any] | None) -> None:
    """What a task said that it failed by."""
    if failed is None:
        return
    if failed.get("code") in PASSING:
        raise KafkaUnavailable(failed["message"])
    raise TureenError(failed["message"], hint=failed.get("hint"))

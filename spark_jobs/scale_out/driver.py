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

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from py4j.protocol import Py4JJavaError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from engine.language.query import Query
from engine.model.source import SourceName, Stream
from engine.model.step import DropSource
from spark_jobs.scale_out.journal import Journal, LastDone
from spark_jobs.scale_out.micro_batch import MicroBatch, Placement, Plan
from spark_jobs.scale_out.notices import Notices
from spark_jobs.scale_out.ownership import Claim, Ownership
from spark_jobs.scale_out.phases import BatchReport, Phases
from spark_jobs.scale_out.reading import Reading
from spark_jobs.scale_out.registry import Changes, Registry, RegistryEntry
from spark_jobs.scale_out.selections import stateless
from spark_jobs.scale_out.settings import ScaleOutSettings
from spark_jobs.scale_out.shards.layout import Layout
from spark_jobs.scale_out.shards.placement import place
from topics.admin import Admin, Policies, service_topics
from topics.outputs import Outputs
from tureen.errors import NotSupported
from tureen.protocol import TopicNames


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
        names = TopicNames(settings.service_id)
        admin = Admin(dict(settings.kafka))
        _ensure_topics(admin, names)
        self._clock = clock
        self._stop_at = stop_at
        self.journal = Journal(settings.state)
        self._done = self.journal.done()
        self._ownership = Ownership(
            settings.kafka,
            admin,
            names,
            Claim(
                name=settings.name,
                checkpoint=run,
                path=settings.stream.checkpoint,
                fresh=not self._done.number and self.journal.find("begun", 1) is None,
                epoch=self._done.epoch + 1,
            ),
        )
        self._notices = Notices(settings.kafka, names, say)
        self._new_registry = partial(
            Registry,
            settings.kafka,
            names,
            settings.limits,
            Outputs(settings.outputs, admin),
            partial(placed, settings.layout),
            self._notices.letter,
        )
        self._registry = self._new_registry()
        self._reading = Reading(
            admin,
            rows_max=settings.rows_max,
            wait_ms=0 if settings.stream.once else settings.first_record_wait_ms,
            accept_gap=settings.stream.accept_gap,
        )
        self._phases = Phases(session, settings, run)
        self._whole = True
        """The registry has to be read from its beginning."""
        self._clock_ms = 0
        """The clock of the last micro-batch: it never goes back."""
        if self._done.number:
            last = self.journal.read(self._done.number)
            self._clock_ms = last.clock_ms
            self._reading.went_on(last.steps)
            self._registry.adopt(self.journal.read_plan(last.plan))

    def close(self) -> None:
        """Give the connections back, and the service."""
        self._registry.close()
        self._notices.close()
        self._ownership.close()

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
        self._phases.check(changes.definitions)
        for one in changes.definitions:
            if isinstance(one, DropSource):
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
            self._ownership.epoch,
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
        pieces = self._phases.pieces(batch, streams)
        pieces.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            try:
                timed, with_records = self._phases.with_times(batch, streams, pieces, report)
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
            needed = self._phases.tell_shards(batch, streams, pieces, report)  # first: selections begin there
            report.phases_ms["shards"] = round(1_000 * (time.monotonic() - began_s))
            self._stop_at("tell")
            began_s = time.monotonic()
            pending = self._phases.tell_rows(
                batch, plan, streams, pieces, with_records, self._done.pending, report
            )
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

    def _tell(self, changes: Changes, batch: MicroBatch | None) -> None:
        position = None if batch is None else str(batch.position(0))
        self._notices.tell(changes, self._registry.entries, self._reading.lost, position)


def placed(layout: Layout, query: Query, streams: Mapping[SourceName, Stream]) -> Placement:
    """Where a query is at work: on partitions, if it needs no state, else on shards. Raises NotSupported."""
    if stateless(query, streams):
        if query.emit is not None and query.emit.snapshot and not layout.shards:
            raise NotSupported(
                "this scale-out has no shards, so there are no rows for a first answer",
                hint="add WITH (snapshot = false), or start a scale-out with --shards",
            )
        return "rows"
    return place(query, streams, layout)


def _ensure_topics(admin: Admin, names: TopicNames) -> None:
    """Make the service's topics that are not there, but for the journal of a broker."""
    wanted = [one for one in service_topics(names, Policies(replication=-1)) if one.name != names.steps]
    there = admin.topics()
    admin.ensure(replace(one, partitions=there.get(one.name, one.partitions)) for one in wanted)


def _join(changes: Changes, more: Changes) -> None:
    changes.definitions += more.definitions
    changes.going += more.going
    changes.coming += more.coming
    changes.told |= more.told

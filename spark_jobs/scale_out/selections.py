"""Phase 2 of selections, on executors: pieces of rows to result records, with no state but rows above NOW.

The first answer of a selection is written by shards, which have the rows (:mod:`shards.bodies`).

A selection that depends on single rows only (ISTREAM over one stream, no lagging or sliding window, no row
that may come as an equal one leaves) needs no state: each row that NOW reaches meets the engine's Query SteM
once, wherever it is, and is written for the queries that accept it. All queries over a stream share that
pass. Of a partition of a stream the rows above NOW wait in a file of the checkpoint directory, and
the next micro-batch in which NOW reaches one of them reads it.

Queries are compiled once in each worker process: a plan that differs from the last one by some queries costs
only those.

Cost: matching and encoding in the engine (docs/benchmarks.md, spark-scale-out), and a transaction for each
partition with something to write.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from engine.changes.operator import operator_over
from engine.changes.output import output_of
from engine.changes.transition import NEVER, SourceTransition, Transition
from engine.dataflow.graph import Graph
from engine.dataflow.plan import is_selection
from engine.language.exits import leave
from engine.language.functions import BUILT_IN
from engine.language.query import Query
from engine.language.templates import FixedQuery
from engine.model.batch import BATCH_ROWS_MAX, Batch, concatenate
from engine.model.changes import Changes
from engine.model.expressions import Column
from engine.model.limits import Limits
from engine.model.source import SourceName, Stream
from engine.model.step import BEGINNING, Registration
from engine.operators.scan import ScanAt
from engine.queries.approximations import Approximations, declared_samples
from engine.queries.catalogue import Catalogue
from engine.queries.registrations import bound
from engine.standing.query import StandingQuery
from engine.stems.data_stem import DataStem
from engine.stems.match_place import place_at
from engine.stems.pending import PendingRows
from engine.stems.query_stem import QueryStem
from engine.windows.clauses import NOW, TimeWindow
from engine.windows.source_clock import LATE, REJECTED
from spark_jobs.scale_out.clock import passage
from spark_jobs.scale_out.journal import Directory, Pending
from spark_jobs.scale_out.micro_batch import Plan, SourceStep
from spark_jobs.scale_out.outputs import Encoder
from spark_jobs.scale_out.pieces import RawRecord, read_letters, read_piece, to_piece
from spark_jobs.scale_out.writers import Letter, WriterJob, send_all, write_once
from topics.destination import Destination
from topics.letters import Place, letter
from topics.outputs import destination
from topics.producer import Transaction
from tureen.errors import TureenError
from tureen.protocol import (
    TopicNames,
)

TOLD = "told string"
_TOLD = pa.schema([("told", pa.string())])


def stateless(query: Query, streams: Mapping[SourceName, Stream]) -> bool:
    """Whether a query can be answered row by row."""
    read = {name: streams[name] for name in query.sources}
    if len(read) != 1 or any(stream.is_table for stream in read.values()):
        return False
    operator = operator_over(query, read)
    if operator != "istream" or not is_selection(query):
        return False
    if leave(query, (), operator) and not _has_timestamp(query, read[query.scan.source]):
        return False  # ISTREAM gives no row that comes as an equal one leaves, perhaps of another partition
    window = query.scan.window
    return isinstance(window, TimeWindow) and window.end == NOW and window.slide_ms is None


def _has_timestamp(query: Query, stream: Stream) -> bool:
    """Whether rows of a selection have their timestamps: then one that comes equals none that leaves."""
    (project,) = query.stages
    if stream.timestamp_column is None:
        return False
    place = stream.schema.index(stream.timestamp_column)
    return any(isinstance(one, Column) and one.index == place for one in project.expressions())


# --- queries --------------------------------------------------------------------------------------


@dataclass(slots=True)
class AtWork:
    """The selections over one stream."""

    stem: QueryStem
    graph: Graph = field(default_factory=Graph)
    slots: dict[str, int | None] = field(default_factory=dict)
    tags: Approximations = field(default_factory=lambda: Approximations((declared_samples,)))

    def add(self, registration: Registration, query: Query) -> None:
        predicate = query.scan.predicate
        slot = None if predicate is None else self.stem.add([predicate]).slots[0]
        self.slots[registration.query_id] = slot
        slots = () if slot is None else (place_at(int(slot), 0),)
        standing = StandingQuery(registration, FixedQuery.of(query), BEGINNING, "lazy", slots=slots)
        self.graph.add(standing, query, "istream")
        self.tags.look(standing)

    def remove(self, query_id: str) -> None:
        slot = self.slots.pop(query_id)
        self.tags.gone(query_id)
        self.graph.remove(query_id)
        if slot is not None:
            self.stem.remove([slot])

    def tell(
        self, stream: Stream, rows: Batch, since_ms: int | None, now_ms: int, limits: Limits
    ) -> Iterator[Changes]:
        """What rows tell that NOW reached since an instant, with the tags of queries. rows: in order."""
        held = DataStem(stream.stored_schema, self.stem)
        held.append(rows)
        at_source = SourceTransition(ScanAt.now(held.rows(), now_ms, None), moves=True)
        transition = Transition(NEVER if since_ms is None else since_ms, now_ms, {stream.name: at_source})
        broken: dict[str, Exception] = {}
        yield from self.tags.put_on(self.graph.advance(transition, limits, now_ms, broken))
        for refusal in broken.values():
            raise refusal


class Compiled:
    """The selections of a plan, compiled."""

    def __init__(self, limits: Limits) -> None:
        self.version = 0
        self.streams: dict[SourceName, AtWork] = {}
        self.to: dict[str, Destination] = {}
        self._limits = limits
        self._plan = Plan()
        self._catalogue = Catalogue(limits, BUILT_IN, None)
        self._of: dict[str, tuple[Registration, SourceName]] = {}

    def follow(self, plan: Plan, names: TopicNames) -> None:
        """Become those of a plan. O(what differs), O(plan) where streams or views do."""
        if plan.version == self.version:
            return
        if (plan.streams, plan.derived) != (self._plan.streams, self._plan.derived):
            self._begin(plan)
        wanted = {one.query_id: one for one, where in plan.queries if where == "rows"}
        for query_id, (registration, name) in list(self._of.items()):
            if wanted.get(query_id) != registration:
                self.streams[name].remove(query_id)
                del self._of[query_id], self.to[query_id]
        streams = {stream.name: stream for stream, _ in plan.streams}
        for query_id, registration in wanted.items():
            if query_id not in self._of:
                query = bound(registration, self._catalogue).query
                (name,) = query.sources
                to = destination(names, output_of(query, streams))
                assert to is not None
                self.streams[name].add(registration, query)
                self._of[query_id], self.to[query_id] = (registration, name), to
        self.version, self._plan = plan.version, plan

    def _begin(self, plan: Plan) -> None:
        self._catalogue = Catalogue(self._limits, BUILT_IN, None)
        self._of, self.to = {}, {}
        for stream, sql in plan.streams:
            self._catalogue.create(stream, sql)
        for one in plan.derived:
            self._catalogue.derive(one)
        self.streams = {stream.name: AtWork(QueryStem(stream.stored_schema)) for stream, _ in plan.streams}


_compiled: dict[tuple[str, str], Compiled] = {}


def compiled(plan: Plan, job: WriterJob) -> Compiled:
    """Those of a plan; made once a process."""
    key = job.checkpoint, job.name
    found = _compiled.get(key)
    if found is None or found.version > plan.version:
        _compiled.clear()
        found = _compiled[key] = Compiled(job.limits)
    found.follow(plan, job.names)
    return found


# --- partitions ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PartitionsTask:
    """What the partitions of a micro-batch are told. streams: by name. numbers: for their positions."""

    job: WriterJob
    streams: Mapping[SourceName, Stream]
    pending: Mapping[tuple[str, int], Pending]
    numbers: Mapping[tuple[str, int], int]


def told(pieces: DataFrame, task: PartitionsTask, plan: Callable[[], Plan]) -> DataFrame:
    """Do the work of the partitions that have pieces; one JSON object each (:class:`PartitionReport`).

    plan: gives the plan on executors. A piece of NULL with no letters stands for a partition without records.
    """
    return pieces.mapInArrow(_tell(task, plan), TOLD)


@dataclass(slots=True)
class PartitionReport:
    """What was done for a partition. written: False: it had been written before, or there was nothing to
    write.

    pending: number, rows and first instant of what waits. failed: an error of ours, after which it is to be
    run again.
    """

    source: str
    partition: int
    rows: int = 0
    records: int = 0
    late: int = 0
    dead: int = 0
    written: bool = False
    pending: list[int] | None = None
    broken: dict[str, dict[str, Any]] = field(default_factory=dict)
    failed: dict[str, Any] | None = None


def _tell(task: PartitionsTask, plan: Callable[[], Plan]) -> Callable[[Any], Any]:
    def each(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        taken: dict[tuple[str, int], list[tuple[int, bytes | None, bytes | None]]] = defaultdict(list)
        for batch in batches:
            columns = [batch.column(name).to_pylist() for name in _TAKEN]
            for source, partition, first, piece, letters in zip(*columns, strict=True):
                taken[source, partition].append((first, piece, letters))
        for (source, partition), found in sorted(taken.items()):
            run = _PartitionRun(task, source, partition)
            try:
                report = run.run(found, compiled(plan(), task.job))
            except TureenError as refused:
                report = PartitionReport(source, partition, failed=refused.as_dict())
            text = json.dumps({name: getattr(report, name) for name in PartitionReport.__slots__})
            yield pa.RecordBatch.from_arrays([pa.array([text], pa.string())], schema=_TOLD)

    return each


_TAKEN = ("source", "partition", "first", "piece", "letters")


class _PartitionRun:
    """One partition of a stream in one micro-batch."""

    def __init__(self, task: PartitionsTask, source: str, partition: int) -> None:
        self._task = task
        self._job = task.job
        self._stream = task.streams[SourceName(source)]
        self._partition = partition
        (self._step,) = (one for one in task.job.batch.steps if one.source == source)
        self._report = PartitionReport(source, partition)
        self._directory = Directory(task.job.checkpoint)

    def run(
        self, found: Sequence[tuple[int, bytes | None, bytes | None]], queries: Compiled
    ) -> PartitionReport:
        arrived, letters = assign_lateness(self._stream, self._step, self._job, self._partition, found)
        report, job = self._report, self._job
        report.rows = len(arrived)
        late = job.names.late
        report.late = sum(one.topic == late for one in letters)
        report.dead = len(letters) - report.late
        entering = self._enter(arrived)
        at_work = queries.streams[self._stream.name]
        if not letters and not (len(entering) and len(at_work.graph)):
            return report
        key = self._stream.name, self._partition
        encoder = Encoder(job, job.batch.position(self._task.numbers[key]), queries.to)

        def send(transaction: Transaction) -> None:
            send_all(transaction, (), letters)
            now_ms = self._step.now_ms
            if now_ms is None:
                return
            for start in range(0, len(entering), BATCH_ROWS_MAX):
                rows = entering.slice(start, min(len(entering), start + BATCH_ROWS_MAX))
                changes = at_work.tell(self._stream, rows, self._step.now_before_ms, now_ms, job.limits)
                for records in encoder.encode(changes):
                    report.records += len(records)
                    send_all(transaction, [records])

        report.written = write_once(job, f"{self._stream.name}.{self._partition}", send)
        report.broken = encoder.broken
        return report

    def _enter(self, arrived: Batch) -> Batch:
        """Rows that NOW has reached, in order; the others wait in a file."""
        stream, step = self._stream, self._step
        waiting = PendingRows(stream.stored_schema)
        known = self._task.pending.get((stream.name, self._partition))
        if known is not None:
            data = self._directory.read(known.file)
            if data is None:
                raise TureenError(f"{known.file} is missing in the checkpoint {self._job.checkpoint}")
            waiting.restore(0, read_piece(data, stream), step.now_before_ms)
        entering = waiting.pass_through(arrived, step.now_ms).batch()
        left = waiting.pieces()
        if left:
            rows = concatenate(stream.stored_schema, left)
            number, first_ms = self._job.batch.number, int(rows.timestamp.min())
            held = Pending(stream.name, self._partition, number, len(rows), first_ms)
            order = np.lexsort((rows.offset, rows.partition, rows.timestamp))
            self._directory.write(held.file, to_piece(rows.take(order)))
            self._report.pending = [held.number, held.rows, held.first_ms]
        return entering


def assign_lateness(
    stream: Stream,
    step: SourceStep,
    job: WriterJob,
    partition: int,
    found: Sequence[tuple[int, bytes | None, bytes | None]],
) -> tuple[Batch, list[Letter]]:
    """The rows of pieces that are taken, with the instants they have, and the letters of the others.

    found: (first offset, piece, letters) of pieces of one partition.
    """
    taken: list[Batch] = []
    letters: list[Letter] = []
    for first, piece, raw in found:
        records = {one.row: one for one in read_letters(raw) if one.row >= 0}
        letters += [
            _letter(job.names.dead_letters, step.topic, partition, one, one.reason or "")
            for one in read_letters(raw)
            if one.row < 0
        ]
        if piece is None:
            continue
        rows = read_piece(piece, stream)
        clock = passage(stream, step, job.batch.clock_ms, partition, first, rows.timestamp)
        limit_ms = max(step.before.clock_ms, job.batch.clock_ms) + stream.future_max_ms
        reason = f"the timestamp is beyond the clock plus future_max ({limit_ms} ms since 1970)"
        for row in np.flatnonzero(clock.fate).tolist():
            late = clock.fate[row] == LATE
            topic = job.names.late if late else job.names.dead_letters
            assert late or clock.fate[row] == REJECTED
            letters.append(_letter(topic, step.topic, partition, records[row], "late" if late else reason))
        rows = replace(rows, timestamp=clock.timestamp)
        taken.append(rows if not clock.fate.any() else rows.take(np.flatnonzero(clock.fate == 0)))
    return concatenate(stream.stored_schema, taken), letters


def _letter(topic: str, source_topic: str, partition: int, record: RawRecord, reason: str) -> Letter:
    place = Place(source_topic, partition, record.offset)
    value, key, headers = letter(record.value, record.key, record.headers, place, reason)
    return Letter(topic, key, value, headers)

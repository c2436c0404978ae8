"""A shard at work: micro-batch after micro-batch, in whatever process its turn comes up.

    engine as it was before  ->  rows journalled  ->  steps  ->  what they told

Engines stay in memory between micro-batches, by run, shard and micro-batch. Where the turn comes up in a
process that has not seen the last ones, it reads their rows from the journal of the shard and applies them
without telling; one that has nothing begins with a snapshot. A micro-batch that is done again, since its task
failed, ran twice, or the driver began anew, tells the same: rows, instants, and decisions are the same, and
an engine depends on nothing else. Nothing is told before the rows are journalled.

Cost: that of the engine; of a process that is new to a shard up to :data:`state.SNAPSHOT_BATCHES`
micro-batches more. Engines of shards that went elsewhere are forgotten after :data:`IDLE_BATCHES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from engine.changes.output import ChangesOutput
from engine.engine import Engine
from engine.model.batch import Batch
from engine.model.changes import Changes
from engine.model.limits import Limits
from engine.model.source import SourceName, Stream
from engine.model.step import Body, Position, Step, StepResult, Unregister
from spark_jobs.scale_out.micro_batch import MicroBatch
from spark_jobs.scale_out.shards.bodies import RowsOf, bodies_of
from spark_jobs.scale_out.shards.layout import Layout
from spark_jobs.scale_out.shards.state import SNAPSHOT_BATCHES, ShardState, is_due

IDLE_BATCHES = 16
"""An engine that was not needed for so many micro-batches of its run is forgotten."""


@dataclass(frozen=True, slots=True)
class ShardJob:
    """What all shards of a run have in common.

    run: the checkpoint's name for itself. snapshot_batches: a snapshot each so many micro-batches.
    """

    checkpoint: str
    run: str
    layout: Layout
    limits: Limits = field(default_factory=Limits)
    snapshot_batches: int = SNAPSHOT_BATCHES


@dataclass(frozen=True, slots=True)
class Told:
    """What a micro-batch caused in a shard.

    changes: of queries that emit, in order, over all of its steps; copies of equal rows have numbers that no
    other shard gives. outputs: where they go, by query. broken: query id -> why its changes could not be
    told. failed: query or source -> why it was refused. rows: how many the shard holds. needed_from: the
    first micro-batch it may read again.
    """

    changes: tuple[Changes, ...]
    outputs: Mapping[str, ChangesOutput]
    broken: dict[str, Exception]
    failed: dict[str, Exception]
    rows: int
    needed_from: int


@dataclass(slots=True)
class _Held:
    """An engine after a micro-batch. needed_from: the first that may be read again; told: what it told."""

    number: int
    engine: Engine
    needed_from: int
    told: Told | None = None


_held: dict[tuple[str, int], _Held] = {}


def forget() -> None:
    """As a process that has just begun."""
    _held.clear()


def advance(
    job: ShardJob,
    shard: int,
    batch: MicroBatch,
    rows_of: RowsOf,
    earlier: Callable[[int], MicroBatch],
) -> Told:
    """Do a micro-batch in a shard. rows_of: what it got; earlier: micro-batches by number.

    Raises CheckpointUnreadable, CheckpointMismatch, and what the engine refuses of rows (LimitExceeded).
    """
    _forget_others(job.run, batch.number)
    known = _held.get((job.run, shard))
    if known is not None and known.number == batch.number and known.told is not None:
        return known.told
    state = ShardState(job.checkpoint, shard, job.limits)
    held = _before(job, shard, batch.number, state, earlier)
    engine = held.engine
    got: dict[str, Batch] = {}

    def kept(stream: Stream) -> Batch:
        rows = rows_of(stream)
        if len(rows):
            got[stream.name] = rows
        return rows

    telling = _Telling(shard, job.layout)
    for body in bodies_of(batch, shard, job.layout, _stream_of(engine), kept):
        telling.before(body, engine)
        telling.add(_apply(engine, batch, body), engine)
    state.write_rows(batch.number, got)
    if is_due(batch.number, shard, job.snapshot_batches):
        state.write_engine(batch.number, engine)
        held.needed_from = state.needed_from()
    held.number = batch.number
    held.told = telling.told(engine, held.needed_from)
    _held[job.run, shard] = held
    return held.told


def _before(
    job: ShardJob,
    shard: int,
    number: int,
    state: ShardState,
    earlier: Callable[[int], MicroBatch],
) -> _Held:
    """The engine as it was before a micro-batch; nobody else has it until that is done."""
    held = _held.pop((job.run, shard), None)
    if held is None or held.number >= number:
        at, engine = state.read_engine(number - 1)
        held = _Held(at, engine, state.needed_from())
    engine = held.engine
    engine.tells = False
    for behind in range(held.number + 1, number):
        batch, rows_of = earlier(behind), state.read_rows(behind)
        for body in bodies_of(batch, shard, job.layout, _stream_of(engine), rows_of):
            _apply(engine, batch, body)
    engine.tells, held.told = True, None
    return held


def _forget_others(run: str, number: int) -> None:
    for key, held in list(_held.items()):
        if key[0] != run or held.number < number - IDLE_BATCHES:
            del _held[key]


def _stream_of(engine: Engine) -> Callable[[SourceName], Stream | None]:
    def found(name: SourceName) -> Stream | None:
        known = engine.catalogue.get(name)
        return known if isinstance(known, Stream) else None

    return found


def _apply(engine: Engine, batch: MicroBatch, body: Body) -> StepResult:
    position = Position(batch.epoch, engine.position.sequence + 1)
    engine.enqueue(Step(position, batch.clock_ms, body))
    (result,) = engine.run()
    return result


@dataclass(slots=True)
class _Telling:
    """What steps tell, as it comes together."""

    shard: int
    layout: Layout
    changes: list[Changes] = field(default_factory=list)
    outputs: dict[str, ChangesOutput] = field(default_factory=dict)
    broken: dict[str, Exception] = field(default_factory=dict)
    failed: dict[str, Exception] = field(default_factory=dict)

    def before(self, body: Body, engine: Engine) -> None:
        """Queries that go have their answers taken back, when nobody knows them any more."""
        if isinstance(body, Unregister):
            view = engine.view()
            self.outputs.update((one, view.output(one)) for one in body.query_ids if one in view.standing)

    def add(self, result: StepResult, engine: Engine) -> None:
        """After a step."""
        self.broken.update(result.broken)
        self.failed.update(result.failed)
        for changes in result.changes:
            for query_id in changes.query_ids:
                if query_id not in self.outputs:
                    self.outputs[query_id] = engine.view().output(query_id)
            self.changes.append(self._numbered(changes))

    def _numbered(self, changes: Changes) -> Changes:
        """Copies of equal rows are numbered apart from those of other shards."""
        if changes.copies is None or self.shard == self.layout.whole_shard:
            return changes
        copies = (changes.copies - 1) * self.layout.shards + self.shard + 1
        return replace(changes, copies=copies.astype(np.int32))

    def told(self, engine: Engine, needed_from: int) -> Told:
        rows = sum(one.rows + one.pending for one in engine.view().sources())
        return Told(tuple(self.changes), self.outputs, self.broken, self.failed, rows, needed_from)

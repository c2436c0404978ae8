"""All shards of a scale-out in one process, beside engines that get everything.

A driver in small: it cuts steps into micro-batches, decides each stream's time with the broker's own clock,
places queries, cuts rows, and hands each shard what is its own, in pieces and in any order.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from engine.language.query import Query
from engine.model.batch import Batch
from engine.model.changes import Changes
from engine.model.source import SourceName, Stream
from engine.model.step import (
    Body,
    CreateDerived,
    CreateSource,
    DropSource,
    Heartbeat,
    Position,
    Records,
    Register,
    Registration,
    Step,
    Unregister,
)
from engine.windows.source_clock import TAKEN, SourceClock
from spark_jobs.scale_out.micro_batch import ClockState, MicroBatch, Placement, SourceStep
from spark_jobs.scale_out.selections import stateless
from spark_jobs.scale_out.shards.cutting import cut, put_together
from spark_jobs.scale_out.shards.layout import Layout
from spark_jobs.scale_out.shards.placement import place
from spark_jobs.scale_out.shards.shard import ShardJob, Told, advance
from spark_jobs.scale_out.shards.state import open_shards
from tests.capacities import small_engine
from tests.differential.agreement import exact_rows, plain_rows
from tureen.errors import NotSupported, QueryError

Net = Counter[tuple[str, int, tuple[Any, ...]]]
"""How often a row came, less how often it went: by occasion, instant and row."""


@dataclass
class Round:
    """A micro-batch, the rows of each source as they were read, and which of its bodies are whose."""

    batch: MicroBatch
    rows: dict[SourceName, Batch] = field(default_factory=dict)
    read: dict[SourceName, Records | Heartbeat] = field(default_factory=dict)


class Sharded:
    """``shards``: how many parts; the whole shard comes on top."""

    def __init__(
        self, checkpoint: str, layout: Layout, rng: random.Random, snapshot_batches: int = 3
    ) -> None:
        self.layout = layout
        self.job = ShardJob(
            checkpoint, open_shards(checkpoint, layout), layout, snapshot_batches=snapshot_batches
        )
        self.batches: dict[int, MicroBatch] = {}
        self.placements: dict[str, Placement] = {}
        self._begins: dict[str, SourceName] = {}
        self._rng = rng
        self._clocks: dict[SourceName, SourceClock] = {}
        self._known = small_engine()
        self._epoch = 1
        self._clock_ms = 0

    # --- the driver ---------------------------------------------------------------------------------

    def rounds(self, steps: Sequence[Step]) -> Iterable[Round]:
        """Micro-batches of steps: cut anywhere, and wherever a source would come twice."""
        held: list[Step] = []
        for step in steps:
            body = step.body
            twice = isinstance(body, Records | Heartbeat) and any(
                isinstance(one.body, Records | Heartbeat) and one.body.source == body.source for one in held
            )
            first = isinstance(body, CreateSource | Unregister)  # what a micro-batch begins with
            if held and (twice or first or self._rng.random() < 0.4):
                yield self._round(held)
                held = []
            held.append(step)
        if held:
            yield self._round(held)

    def _round(self, steps: Sequence[Step]) -> Round:
        bodies = [step.body for step in steps]
        self._clock_ms = clock_ms = max(self._clock_ms, *(step.clock_ms for step in steps))
        number = len(self.batches) + 1
        definitions = tuple(
            one for one in bodies if isinstance(one, CreateSource | CreateDerived | DropSource)
        )
        for one in definitions:
            self._know(one)
            if isinstance(one, CreateSource):
                self._clocks[one.stream.name] = SourceClock(one.stream)
        going = tuple(name for one in bodies if isinstance(one, Unregister) for name in one.query_ids)
        asked = [one for body in bodies if isinstance(body, Register) for one in body.registrations]
        coming = tuple(one for one in asked if self._is_placed(one))
        found = Round(
            MicroBatch(
                number,
                self._epoch,
                clock_ms,
                1,
                definitions,
                going,
                coming,
                {one.query_id: self.placements[one.query_id] for one in coming},
                {one.query_id: self._begins[one.query_id] for one in coming if one.query_id in self._begins},
            )
        )
        taken = []
        for body in sorted(
            (one for one in bodies if isinstance(one, Records | Heartbeat)), key=lambda one: one.source
        ):
            if isinstance(body, Heartbeat):
                body = replace(body, below={})  # NOW of a scale-out does not move by promises
            found.read[body.source] = body
            taken.append(self._taken(body, clock_ms, found))
        found.batch = replace(found.batch, steps=tuple(taken))
        self.batches[number] = found.batch
        return found

    def _taken(self, body: Records | Heartbeat, clock_ms: int, to: Round) -> SourceStep:
        clock = self._clocks[body.source]
        batch = body.batch if isinstance(body, Records) else Batch.empty(clock.stream.stored_schema)
        passed = clock.records(batch, clock_ms, body.lagging)
        rows = replace(batch, timestamp=passed.timestamp).take(np.flatnonzero(passed.fate == TAKEN))
        to.rows[body.source] = rows
        return SourceStep(
            body.source, str(body.source), (), frozenset(), ClockState(), after=ClockState(clock.now_ms)
        )

    def _know(self, body: Body) -> None:
        last = self._known.position
        self._known.enqueue(Step(Position(1, last.sequence + 1), 0, body))
        (result,) = self._known.run()
        assert not result.failed

    def _is_placed(self, registration: Registration) -> bool:
        """Whether the driver takes a query."""
        if registration.query_id in self.placements:
            return True
        try:
            query = self._known.prepare(registration.sql)
            assert isinstance(query, Query)
            streams = self.streams()
            if stateless(query, streams):
                self.placements[registration.query_id] = "rows"
                if query.emit is not None and query.emit.snapshot:
                    self._begins[registration.query_id] = query.scan.source
            else:
                self.placements[registration.query_id] = place(query, streams, self.layout)
        except (NotSupported, QueryError):
            return False
        return True

    def streams(self) -> Mapping[SourceName, Stream]:
        """By name."""
        known = self._known.catalogue.values()
        return {one.name: one for one in known if isinstance(one, Stream)}

    # --- the executors ------------------------------------------------------------------------------

    def shard(self, shard: int, one: Round) -> Told:
        """A task: rows come in pieces, in any order."""

        def rows_of(stream: Stream) -> Batch:
            rows = one.rows[stream.name]
            bounds = sorted({0, len(rows), *(self._rng.randint(0, len(rows)) for _ in range(2))})
            pieces = [
                mine
                for start, stop in pairwise(bounds)
                for to, mine in cut(stream, rows.slice(start, stop), self.layout)
                if to == shard
            ]
            self._rng.shuffle(pieces)
            return put_together(stream, pieces)

        return advance(self.job, shard, one.batch, rows_of, self.batches.__getitem__)

    def all_shards(self, one: Round) -> list[Told]:
        return [self.shard(shard, one) for shard in self.layout.every]

    def began_anew(self) -> None:
        """Another run of the driver."""
        self._epoch += 1


class Whole:
    """An engine that gets all rows, and the queries of one placement; for selections that are told elsewhere
    it tells the answer they begin with, if their rows are here.
    """

    def __init__(self, placement: Placement, layout: Layout) -> None:
        self.placement = placement
        self.layout = layout
        self.engine = small_engine()

    def take(self, one: Round) -> list[Changes]:
        """A micro-batch, as steps of a broker."""
        batch = one.batch
        bodies: list[Body] = [Unregister(batch.going), *batch.definitions]
        bodies.append(
            Register(tuple(q for q in batch.coming if batch.placements[q.query_id] == self.placement))
        )
        begin = tuple(q for q in batch.coming if self._begins(batch, q.query_id))
        bodies += [Register(begin), Unregister(tuple(one.query_id for one in begin))]
        bodies += [one.read[step.source] for step in batch.steps]
        found: list[Changes] = []
        for body in bodies:
            last = self.engine.position
            self.engine.enqueue(Step(Position(1, last.sequence + 1), batch.clock_ms, body))
            (result,) = self.engine.run()
            assert not result.broken, result.broken
            found += result.changes
        return found

    def _begins(self, batch: MicroBatch, query_id: str) -> bool:
        source = batch.begins.get(query_id)
        return source is not None and (source in self.layout.keys) == (self.placement == "parts")


def net_of(changes: Iterable[Changes]) -> dict[str, Net]:
    """What was told of each query, added up at each instant."""
    found: dict[str, Net] = {}
    for one in changes:
        rows = exact_rows(plain_rows(one.table))
        for at, query_id in enumerate(one.query_ids):
            net = found.setdefault(query_id, Counter())
            for n in range(int(one.starts[at]), int(one.starts[at + 1])):
                net[one.occasion, int(one.at_ms[n]), rows[n]] += int(one.weights[n])
    cleared = {name: Counter({k: v for k, v in net.items() if v}) for name, net in found.items()}
    return {name: net for name, net in cleared.items() if net}


def keys_of(changes: Iterable[Changes]) -> dict[str, Counter[tuple[Any, ...]]]:
    """Which copies of which rows came, less those that went: what a compacted topic holds."""
    found: dict[str, Counter[tuple[Any, ...]]] = {}
    for one in changes:
        if one.copies is None:
            continue
        rows = exact_rows(plain_rows(one.table))
        for at, query_id in enumerate(one.query_ids):
            held = found.setdefault(query_id, Counter())
            for n in range(int(one.starts[at]), int(one.starts[at + 1])):
                held[rows[n], int(one.copies[n])] += int(one.weights[n])
    return found

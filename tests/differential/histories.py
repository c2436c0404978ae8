"""History for tests: what streams had, whatever became of it, and steps that bring some of it back."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from hypothesis import strategies as st

from engine.model.batch import Batch, versions
from engine.model.source import SourceName
from engine.model.step import Backfill, Position, Records, Step, StepResult
from engine.model.types import TIMESTAMP_MS_MIN
from engine.reference import Reference
from engine.reference.history import boundary_of
from engine.reference.rows import Row, python_rows
from tests.strategies import batch_of

BACK_MS = (0, 1, 5, 20, 60, 1_000, 100_000)


@dataclass
class Archive:
    """All rows that streams of a reference ever showed; with ``late`` also those that came too late."""

    reference: Reference
    late: bool = False
    rows: dict[str, dict[tuple[int, int], Row]] = field(default_factory=dict)

    def add(self, step: Step, result: StepResult) -> None:
        """After a step of the reference."""
        for name, source in self.reference.sources.items():
            self.rows.setdefault(name, {}).update({(row.partition, row.offset): row for row in source.rows})
        for name in self.rows.keys() - self.reference.sources.keys():
            del self.rows[name]
        if self.late and isinstance(step.body, Records) and not self.is_table(step.body.source):
            given = python_rows(step.body.batch)
            for place in result.late:
                row = given[place]
                self.rows[step.body.source].setdefault((row.partition, row.offset), row)

    def is_table(self, name: str) -> bool:
        return self.reference.sources[name].stream.is_table

    def between(self, name: str, from_ms: int, until_ms: int) -> list[Row]:
        """In order."""
        return sorted(row for row in self.rows[name].values() if from_ms <= row.timestamp < until_ms)

    def batch(self, name: str, rows: Sequence[Row]) -> Batch:
        stream = self.reference.sources[name].stream
        own = -1 if stream.schema.fields[-1].name == "ts" else None
        batch = batch_of(
            stream.schema, [(row.partition, row.offset, row.timestamp, row.values[:own]) for row in rows]
        )
        if not stream.is_table:
            return batch
        return versions(stream, batch, np.array([row.deleted for row in rows], np.bool_))

    def step(self, name: str, from_ms: int) -> Step | None:
        """All of a stream's history from an instant on, at the reference's next position."""
        boundary = boundary_of(self.reference.sources[name])
        if boundary is None:
            return None
        rows = self.between(name, from_ms, boundary)
        body = Backfill(SourceName(name), self.batch(name, rows), min(from_ms, boundary), boundary)
        return next_step(self.reference, body)

    def somewhere(self, draw: st.DrawFn | Callable[..., object]) -> Step | None:
        """Some history of some stream, now and then one that is refused, or that knows less than was."""
        names = sorted(name for name in self.rows if not self.is_table(name))
        if not names:
            return None
        name = draw(st.sampled_from(names))
        assert isinstance(name, str)
        boundary = boundary_of(self.reference.sources[name])
        if boundary is None:
            return None
        back_ms = draw(st.sampled_from(BACK_MS) | st.none())
        assert back_ms is None or isinstance(back_ms, int)
        from_ms = TIMESTAMP_MS_MIN if back_ms is None else boundary - back_ms
        rows = self.between(name, from_ms, boundary)
        how = draw(st.sampled_from(["all", "all", "all", "all", "some", "turned", "beyond", "short"]))
        rng = random.Random(draw(st.integers(0, 100)))
        until_ms = boundary
        if how == "some":
            rows = [row for row in rows if rng.random() < 0.6]
        elif how == "turned":
            rows = rows[::-1]
        elif how == "beyond":
            rows = self.between(name, from_ms, boundary + rng.choice([1, 5]))
        elif how == "short":
            until_ms -= 1
        return next_step(
            self.reference, Backfill(SourceName(name), self.batch(name, rows), from_ms, until_ms)
        )


def begun_late(steps: list[Step], draw: st.DrawFn | Callable[..., object]) -> list[Step]:
    """The steps of streams whose topics had lost rows when they were read first, here and there."""
    found = []
    for step in steps:
        body = step.body
        if isinstance(body, Records) and len(body.batch):
            late_ms = draw(st.sampled_from([None, None, -5, 0, 1, 40, 10**6]))
            if late_ms is not None:
                assert isinstance(late_ms, int)
                complete_from_ms = int(body.batch.timestamp[0]) + late_ms
                step = replace(step, body=replace(body, complete_from_ms=complete_from_ms))
        found.append(step)
    return found


def next_step(reference: Reference, body: Backfill) -> Step:
    last = reference.position
    return Step(Position(last.epoch, last.sequence + 1), 0, body)


def renumbered(step: Step, reference: Reference) -> Step:
    """The step at the reference's next position."""
    last = reference.position
    return Step(Position(1, last.sequence + 1), step.clock_ms, step.body)

"""Two evaluators behind one shape, and what it means that they agree.

Values agree when they are the same in type and to the bit (-0.0 is not 0.0; NaN is NaN), rows when they agree
in order.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Protocol

import pyarrow as pa
import pytest

from engine.engine import Engine
from engine.model.step import Position, Records, Step, StepResult
from engine.reference import Reference, ReferenceAnswer
from tests.memory_state import MemoryState
from tureen.errors import InstantOutOfRange, StoreFull


class Subject(Protocol):
    def apply(self, step: Step) -> StepResult: ...

    def answer(self, query_id: str, at_ms: int | None = None) -> ReferenceAnswer: ...

    def standing(self) -> list[str]: ...


class EngineSubject:
    """The engine, asked as the reference is asked."""

    def __init__(self, engine: Engine | None = None) -> None:
        self.engine = engine or Engine()

    def apply(self, step: Step) -> StepResult:
        self.engine.enqueue(step)
        (result,) = self.engine.run()
        return result

    def answer(self, query_id: str, at_ms: int | None = None) -> ReferenceAnswer:
        view = self.engine.view()
        answer = view.snapshot(query_id, at_ms=at_ms)
        assert answer.position == view.position
        return ReferenceAnswer(
            plain_rows(answer.table),
            answer.now_ms,
            answer.complete,
            answer.complete_from_ms,
            view.query(query_id).predicate_errors,
            answer.errors,
        )

    def standing(self) -> list[str]:
        return [query.query_id for query in self.engine.view().queries()]

    def restarted(self, store: MemoryState) -> EngineSubject:
        """Saved, forgotten and restored."""
        self.engine.save(store)
        return EngineSubject.from_store(store)

    def save_in_vain(self, store: MemoryState) -> None:
        """Try to save into a full store."""
        with pytest.raises(StoreFull):
            self.engine.save(store)

    @classmethod
    def from_store(cls, store: MemoryState) -> EngineSubject:
        return cls(Engine.restore(store))


def plain_rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows as tuples; dates as days, timestamps as milliseconds."""
    columns = []
    for column in table.columns:
        if pa.types.is_date32(column.type):
            column = column.cast(pa.int32())
        elif pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("ms")).cast(pa.int64())
        columns.append(column.to_pylist())
    return list(zip(*columns, strict=True))


def exact(value: Any) -> Any:
    """Something equal exactly where two values agree."""
    if isinstance(value, float):
        return "NaN" if value != value else struct.pack(">d", value)
    return (type(value).__name__, value if not hasattr(value, "as_tuple") else value.as_tuple())


def exact_rows(rows: Iterable[Sequence[Any]]) -> list[tuple[Any, ...]]:
    return [tuple(exact(value) for value in row) for row in rows]


def outcome(subject: Subject, query_id: str, at_ms: int | None) -> Any:
    """The answer in comparable form, or that the instant is out of range."""
    try:
        answer = subject.answer(query_id, at_ms)
    except InstantOutOfRange:
        return "out of range"
    return (
        exact_rows(answer.rows),
        answer.now_ms,
        answer.complete,
        answer.complete_from_ms,
        answer.errors,
        answer.predicate_errors,
    )


def assert_same_answers(one: Subject, other: Subject, backs: Sequence[int] = ()) -> None:
    """Every query's answer, now and at instants so far before NOW (negative: after)."""
    assert sorted(one.standing()) == sorted(other.standing())
    for query_id in other.standing():
        mine, theirs = outcome(one, query_id, None), outcome(other, query_id, None)
        assert mine == theirs, f"{query_id}: {mine} is not {theirs}"
        now = other.answer(query_id).now_ms
        for back in backs:
            at_ms = 1_000 if now is None else now - back
            mine, theirs = outcome(one, query_id, at_ms), outcome(other, query_id, at_ms)
            assert mine == theirs, f"{query_id} at {at_ms}: {mine} is not {theirs}"


def told(result: StepResult) -> Any:
    """What a step's result says, without reasons and messages."""
    return (
        result.now_ms,
        result.idle,
        result.entered,
        tuple(result.late),
        tuple(refusal.row for refusal in result.rejected),
        {query_id: type(error) for query_id, error in result.failed.items()},
    )


def cut(step: Step, places: Sequence[int]) -> list[Step]:
    """A step of records as several with the same clock, cut before these rows, all at its position."""
    body = step.body
    if not isinstance(body, Records):
        return [step]
    batch = body.batch
    edges = [0, *sorted(min(place, len(batch)) for place in places), len(batch)]
    rowless = {p: o for p, o in body.next_offsets.items() if p not in set(batch.partition.tolist())}
    parts = []
    for start, stop in pairwise(edges):
        waiting = frozenset(batch.partition[stop:].tolist())
        reached = dict(
            zip(batch.partition[start:stop].tolist(), batch.offset[start:stop].tolist(), strict=True)
        )
        next_offsets = rowless | {partition: offset + 1 for partition, offset in reached.items()}
        parts.append(Records(body.source, batch.slice(start, stop), next_offsets, body.lagging | waiting))
    return [Step(step.position, step.clock_ms, part) for part in parts]


def numbered(steps: Iterable[Step], epoch: int = 1, after: int = 0) -> list[Step]:
    """The same steps with sequence numbers counting on."""
    return [
        Step(Position(epoch, after + place), step.clock_ms, step.body)
        for place, step in enumerate(steps, start=1)
    ]


__all__ = [
    "EngineSubject",
    "Reference",
    "Subject",
    "assert_same_answers",
    "cut",
    "exact_rows",
    "numbered",
    "plain_rows",
    "told",
]

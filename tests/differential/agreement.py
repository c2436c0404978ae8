"""Two evaluators behind one shape, and what it means that they agree.

Values agree when they are the same in type and to the bit (-0.0 is not 0.0; NaN is NaN), rows when they agree
in order.
"""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Protocol

import pyarrow as pa
import pytest

from engine.engine import Engine
from engine.model.source import SourceName, Stream
from engine.model.step import Body, Position, Records, Register, Registration, Step, StepResult
from engine.reference import Reference, ReferenceAnswer
from engine.reference.nested import written
from tests.capacities import small_engine, small_restored
from tests.memory_state import MemoryState
from tureen.errors import InstantOutOfRange, QueryPaused, StoreFull


class Subject(Protocol):
    def apply(self, step: Step) -> StepResult: ...

    def answer(self, query_id: str, at_ms: int | None = None) -> ReferenceAnswer: ...

    def standing(self) -> list[str]: ...


class EngineSubject:
    """The engine, asked as the reference is asked."""

    def __init__(self, engine: Engine | None = None) -> None:
        self.engine = engine or small_engine()

    def apply(self, step: Step) -> StepResult:
        self.engine.enqueue(step)
        (result,) = self.engine.run()
        return result

    def answer(self, query_id: str, at_ms: int | None = None) -> ReferenceAnswer:
        view = self.engine.view()
        answer = view.snapshot(query_id, at=at_ms)
        assert answer.position == view.position
        columns = self.engine.prepare(view.query(query_id).sql).columns
        assert [(f.name, f.type) for f in answer.table.schema] == [(n, type_.arrow) for n, type_ in columns]
        return ReferenceAnswer(
            plain_rows(answer.table),
            answer.now_ms,
            answer.complete,
            answer.complete_from_ms,
            view.query(query_id).predicate_errors,
            answer.errors,
        )

    def register(self, query_id: str, sql: str, options: dict[str, str]) -> None:
        """A query of a test's own, at the end of what was applied."""
        body = Register((Registration(query_id, sql, options=options),))
        failed = self.apply(self.next_step(0, body)).failed
        assert not failed, (sql, failed)

    def next_step(self, clock_ms: int, body: Body) -> Step:
        last = self.engine.position
        return Step(Position(last.epoch, last.sequence + 1), clock_ms, body)

    def standing(self) -> list[str]:
        return [query.query_id for query in self.engine.view().queries()]

    @property
    def tables(self) -> set[SourceName]:
        """The sources that are tables."""
        known = self.engine.catalogue.values()
        return {stream.name for stream in known if isinstance(stream, Stream) and stream.is_table}

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
        return cls(small_restored(store))


def plain_rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows as tuples; dates as days, timestamps as milliseconds, nested values as canonical texts."""
    return list(zip(*(plain_values(column) for column in table.columns), strict=True))


def plain_values(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column as the reference has them."""
    type_ = column.type
    if pa.types.is_nested(type_):
        return [None if one is None else written(_part(type_, one)) for one in column.to_pylist()]
    if pa.types.is_binary(type_):
        return [None if one is None else one.hex() for one in column.to_pylist()]
    if pa.types.is_timestamp(type_):
        return list(column.cast(pa.timestamp("ms")).cast(pa.int64()).to_pylist())
    return list((column.cast(pa.int32()) if pa.types.is_date32(type_) else column).to_pylist())


def _part(type_: pa.DataType, value: Any) -> Any:
    """A value inside of others as JSON has it."""
    if value is None:
        return None
    if pa.types.is_map(type_):
        return {key: _part(type_.item_type, one) for key, one in value}
    if pa.types.is_list(type_):
        return [_part(type_.value_type, one) for one in value]
    if pa.types.is_struct(type_):
        return {field.name: _part(field.type, value[field.name]) for field in type_}
    if isinstance(type_, pa.JsonType):
        return json.loads(value)
    if pa.types.is_binary(type_):
        return base64.b64encode(value).decode()
    if pa.types.is_timestamp(type_):
        return f"{value.isoformat(timespec='milliseconds')}Z"
    if pa.types.is_date(type_):
        return value.isoformat()
    if pa.types.is_decimal(type_):
        return f"{value:f}"
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def exact(value: Any) -> Any:
    """Something equal exactly where two values agree."""
    if isinstance(value, float):
        return "NaN" if value != value else struct.pack(">d", value)
    if isinstance(value, tuple):
        return tuple(exact(part) for part in value)
    return (type(value).__name__, value if not hasattr(value, "as_tuple") else value.as_tuple())


def exact_rows(rows: Iterable[Sequence[Any]]) -> list[tuple[Any, ...]]:
    return [tuple(exact(value) for value in row) for row in rows]


def outcome(subject: Subject, query_id: str, at_ms: int | None) -> Any:
    """The answer in comparable form, or what it is refused with."""
    try:
        answer = subject.answer(query_id, at_ms)
    except (InstantOutOfRange, QueryPaused) as refusal:
        return type(refusal)
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
        if theirs is QueryPaused:
            continue
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
        parts.append(
            replace(
                body,
                batch=batch.slice(start, stop),
                next_offsets=next_offsets,
                lagging=body.lagging | waiting,
            )
        )
    return [Step(step.position, step.clock_ms, part) for part in parts]


def numbered(steps: Iterable[Step], epoch: int = 1, after: int = 0) -> list[Step]:
    """Number steps anew, counting on from ``after``."""
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


def with_registrations(
    steps: Iterable[Step], change: Callable[[Registration], list[Registration]]
) -> list[Step]:
    """Replace each registration of the steps by what ``change`` makes of it."""
    changed = []
    for step in steps:
        if isinstance(step.body, Register):
            made = [other for registration in step.body.registrations for other in change(registration)]
            step = replace(step, body=Register(tuple(made)))
        changed.append(step)
    return changed


def answers(subject: EngineSubject, query_ids: Iterable[str]) -> dict[str, object]:
    """Rows, NOW, completeness and errors; how many predicates erred depends on whether matches are kept."""
    found = {}
    for query_id in query_ids:
        answer = subject.answer(query_id)
        found[query_id] = (exact_rows(answer.rows), answer.now_ms, answer.complete_from_ms, answer.errors)
    return found

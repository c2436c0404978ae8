"""Rows that are shed: queries that allow it do not see them, and all others answer as without; the engine
against the reference, which looks for each row through all runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.batch import Batch, Column
from engine.model.shed import LEVEL_MAX, Shed
from engine.model.source import Stream
from engine.model.step import Body, CreateSource, Position, Records, Register, Registration, Step
from engine.model.types import Kind, Type
from engine.reference import Reference
from tests.capacities import small_engine
from tests.differential.agreement import EngineSubject, assert_same_answers, cut, numbered, outcome, told
from tests.differential.changes import agree
from tests.differential.engine import any_statement
from tests.memory_state import MemoryState
from tests.sql_joins import joining
from tests.strategies import journeys, scripts
from tests.worlds import worlds

SOME = settings(max_examples=max(10, settings.default.max_examples // 4))
BACKS = st.lists(st.sampled_from([-1, 0, 1, 7, 30, 90]), max_size=2)
ALLOWED: tuple[Mapping[str, str], ...] = (
    {},
    {"max_fn": "0.1"},
    {"max_fn": "1"},
    {"max_fn": "0.4", "max_error": "0.2"},
)
"""Options that queries get, each by its id."""
LEVELS = (None, None, 1, 150_000, 400_000, LEVEL_MAX)


def tolerant(one: Registration) -> Registration:
    """A query with what its id lets it lose."""
    allowed = ALLOWED[sum(one.query_id.encode()) % len(ALLOWED)]
    return replace(one, options={**one.options, **allowed})


def shed_all(body: Records, level: int) -> Records:
    """A step whose records are shed, all read."""
    batch = body.batch
    firsts = dict(zip(batch.partition[::-1].tolist(), batch.offset[::-1].tolist(), strict=True))
    ranges = {partition: (first, body.next_offsets[partition]) for partition, first in firsts.items()}
    return replace(body, shed=Shed(level, ranges))


def unread(body: Records) -> Records:
    """A shed step of which only the last record of each partition is read."""
    batch, shed = body.batch, body.shed
    assert shed is not None
    lasts = np.flatnonzero(np.diff(batch.partition, append=-1))
    left = len(batch) - len(lasts)
    return replace(body, batch=batch.take(lasts), shed=replace(shed, unread=left)) if left else body


@st.composite
def shedding(draw: st.DrawFn, steps: st.SearchStrategy[list[Step]], skips: bool = False) -> list[Step]:
    """These steps, of which some shed. skips: what they shed is not always read."""
    found = []
    for step in draw(steps):
        body = step.body
        if isinstance(body, Register):
            body = Register(tuple(tolerant(one) for one in body.registrations))
        elif (
            isinstance(body, Records)
            and len(body.batch)
            and len(body.batch.partitions()) == len(body.next_offsets)
        ):
            level = draw(st.sampled_from(LEVELS))
            if level is not None and not is_table(body):
                body = shed_all(body, level)
                if skips and draw(st.booleans()) and bool((np.diff(body.batch.partition) >= 0).all()):
                    body = unread(body)
        found.append(replace(step, body=body))
    return found


def is_table(body: Records) -> bool:
    return bool(body.batch.schema.fields) and body.batch.schema.fields[-1].name == "deleted"


def unshed(steps: list[Step]) -> list[Step]:
    """The steps without shedding."""
    return [
        replace(step, body=replace(step.body, shed=None)) if isinstance(step.body, Records) else step
        for step in steps
    ]


@SOME
@given(steps=shedding(scripts(any_statement), skips=True), backs=BACKS)
def test_answers_are_the_references(steps: list[Step], backs: list[int]) -> None:
    engine, reference = EngineSubject(), Reference()
    for step in steps:
        assert told(engine.apply(step)) == told(reference.apply(step))
        assert_same_answers(engine, reference, backs)
        engine.engine._check()


@SOME
@given(steps=shedding(worlds(joining, streams_count=2, tables_count=1)), backs=BACKS)
def test_rows_shed_take_part_in_no_pair(steps: list[Step], backs: list[int]) -> None:
    engine, reference = EngineSubject(), Reference()
    for step in steps:
        assert told(engine.apply(step)) == told(reference.apply(step))
        assert_same_answers(engine, reference, backs)


@SOME
@given(steps=shedding(worlds(joining, streams_count=2, tables_count=1)))
def test_queries_that_allow_nothing_answer_as_if_nothing_was_shed(steps: list[Step]) -> None:
    engine, other = EngineSubject(), EngineSubject()
    for step, plain in zip(steps, unshed(steps), strict=True):
        engine.apply(step)
        other.apply(plain)
        view = engine.engine.view()
        for query_id, query in view.standing.items():
            if not query.is_tolerant:
                assert outcome(engine, query_id, None) == outcome(other, query_id, None)
                assert not view.approximation(query_id)


@SOME
@given(
    steps=shedding(scripts(any_statement, steps_max=8)),
    cuts=st.lists(st.integers(0, 8), min_size=1, max_size=3),
)
def test_neither_cuts_nor_restarts_change_what_is_shed(steps: list[Step], cuts: list[int]) -> None:
    engine, reference, store, sequence = EngineSubject(), Reference(), MemoryState(), 0
    for step, whole in zip(steps, numbered(steps), strict=True):
        reference.apply(whole)
        parts = numbered(cut(step, cuts), after=sequence)
        sequence += len(parts)
        for part in parts:
            engine.apply(part)
        engine = engine.restarted(store)
        assert_same_answers(engine, reference, [0, 5])


@SOME
@given(steps=shedding(journeys(any_statement)))
def test_changes_are_told_as_defined(steps: list[Step]) -> None:
    agree(steps)


TICKS = "CREATE STREAM s (v BIGINT, ts TIMESTAMP NOT NULL) WITH (topic = 's', timestamp = 'ts') RETAIN 1 HOUR"


@pytest.mark.parametrize("options", [{"max_fn": "1"}, {"max_fn": "1", "maintenance": "none"}])
@pytest.mark.parametrize("source", ["s", "s SAMPLE(60)"])
def test_rows_of_table_functions_are_seen_as_those_of_the_stream(
    source: str, options: dict[str, str]
) -> None:
    """Columns that are made stand behind those of the stream, where a table function puts its own."""
    engine = small_engine()
    engine.create(TICKS)
    stream = engine.catalogue["s"]
    assert isinstance(stream, Stream)
    sql = f"SELECT v, COUNT(*) AS n FROM TUMBLE({source}, INTERVAL '10' MILLISECOND) GROUP BY window_end, v"
    bodies: list[Body] = [
        CreateSource(stream, TICKS),
        Register((Registration("q", sql, options=options),)),
    ]
    for begin in range(0, 48, 12):
        at = np.arange(begin, begin + 12, dtype=np.int64)
        columns = (Column(Type(Kind.BIGINT), at % 2), Column(Type(Kind.TIMESTAMP), 1_000 + 3 * at))
        batch = Batch(stream.schema, columns, np.zeros(12, np.int32), at, 1_000 + 3 * at)
        bodies.append(Records("s", batch, {0: begin + 12}))
    agree([Step(Position(1, number), 2_000, body) for number, body in enumerate(bodies, 1)])

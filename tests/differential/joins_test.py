"""Joins: the engine against the reference, row for row, whatever is joined and whatever happens."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.limits import Limits
from engine.model.step import Step
from engine.reference import Reference
from tests.capacities import small_engine
from tests.differential.agreement import EngineSubject, assert_same_answers, told
from tests.memory_state import MemoryState
from tests.sql_joins import joining
from tests.worlds import worlds

SOME = settings(max_examples=max(10, settings.default.max_examples // 4))
FEW = settings(max_examples=max(6, settings.default.max_examples // 6))
LIMITS = Limits(superseded_rows_max=0)
"""Tables let go of superseded versions at once."""
BACKS = st.lists(st.sampled_from([-1, 0, 1, 7, 30, 90]), max_size=2)


@SOME
@given(steps=worlds(joining, streams_count=2), backs=BACKS)
def test_streams(steps: list[Step], backs: list[int]) -> None:
    agree(steps, backs)


@SOME
@given(steps=worlds(joining, streams_count=2, tables_count=2), backs=BACKS)
def test_streams_and_tables(steps: list[Step], backs: list[int]) -> None:
    agree(steps, backs)


@FEW
@given(steps=worlds(joining, streams_count=3, tables_count=1, steps_max=6))
def test_many_sources(steps: list[Step]) -> None:
    agree(steps, [])


@FEW
@given(steps=worlds(joining, streams_count=1, tables_count=0), backs=BACKS)
def test_a_stream_with_itself(steps: list[Step], backs: list[int]) -> None:
    agree(steps, backs)


@FEW
@given(steps=worlds(joining, streams_count=2, tables_count=1), held_rows_max=st.integers(0, 8))
def test_rows_held_back_for_a_source_that_lags(steps: list[Step], held_rows_max: int) -> None:
    agree(steps, [0, 20], replace(LIMITS, held_rows_max=held_rows_max))


def agree(steps: list[Step], backs: list[int], limits: Limits = LIMITS) -> None:
    """At the end of every other step, and of the last."""
    engine, reference = EngineSubject(small_engine(limits)), Reference(limits)
    for place, step in enumerate(steps):
        assert told(engine.apply(step)) == told(reference.apply(step))
        engine.engine._check()
        if place % 2:
            assert_same_answers(engine, reference, backs)
    assert_same_answers(engine, reference, [0, 20])


@FEW
@given(steps=worlds(joining, tables_count=1), data=st.data())
def test_restarts(steps: list[Step], data: st.DataObject) -> None:
    store = MemoryState()
    engine, reference = EngineSubject(small_engine(LIMITS)), Reference(LIMITS)
    for step in steps:
        assert told(engine.apply(step)) == told(reference.apply(step))
        if data.draw(st.sampled_from([False, False, True])):
            engine = engine.restarted(store)
    assert_same_answers(engine, reference, [0, 20])

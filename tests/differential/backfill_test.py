"""History that comes back: afterwards all is as if it had been there, whatever was registered when."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.step import Register, Registration, Step
from engine.model.types import TIMESTAMP_MS_MIN
from engine.reference import Reference
from tests.differential.agreement import EngineSubject, assert_same_answers, exact_rows, told
from tests.differential.backfill import long_retained, whole
from tests.differential.changes import Sums
from tests.differential.engine import any_statement
from tests.differential.histories import Archive, begun_late, renumbered
from tests.differential.telling import (
    Followers,
    as_streams,
    assert_same_telling,
    follow_all,
    of_reference,
)
from tests.memory_state import MemoryState
from tests.sql_joins import joining
from tests.sql_selects import statement as any_select
from tests.strategies import journeys, scripts
from tests.worlds import worlds

FEW = settings(max_examples=max(8, settings.default.max_examples // 2))
FEWER = settings(max_examples=max(6, settings.default.max_examples // 4))
BACKS = st.lists(st.sampled_from([-1, 0, 1, 7, 30, 90]), max_size=2)


def agree(steps: list[Step], backs: list[int], data: st.DataObject) -> None:
    """With history in between, from streams that know rows which came too late, and restarts."""
    engine, reference, store = EngineSubject(), Reference(), MemoryState()
    archive = Archive(reference, late=True)
    for step in begun_late(steps, data.draw):
        step = renumbered(step, reference)
        result = reference.apply(step)
        assert told(engine.apply(step)) == told(result)
        archive.add(step, result)
        while data.draw(st.sampled_from([False, True])):
            history = archive.somewhere(data.draw)
            if history is None:
                break
            assert told(engine.apply(history)) == told(reference.apply(history))
            engine.engine._check()
            assert_same_answers(engine, reference, backs)
        event = data.draw(st.sampled_from(["none", "none", "none", "save", "restart"]))
        if event == "save":
            engine.engine.save(store)
        elif event == "restart":
            engine = engine.restarted(store)
    assert_same_answers(engine, reference, [0, 20])


@FEW
@given(steps=scripts(any_statement, steps_max=10), backs=BACKS, data=st.data())
def test_answers_are_the_references(steps: list[Step], backs: list[int], data: st.DataObject) -> None:
    agree(steps, backs, data)


@FEW
@given(steps=journeys(any_select, legs=2), backs=BACKS, data=st.data())
def test_answers_of_every_kind_are_the_references(
    steps: list[Step], backs: list[int], data: st.DataObject
) -> None:
    agree(steps, backs, data)


@FEWER
@given(steps=worlds(joining, streams_count=2, tables_count=1), backs=BACKS, data=st.data())
def test_joins_are_the_references(steps: list[Step], backs: list[int], data: st.DataObject) -> None:
    agree(steps, backs, data)


@FEWER
@given(steps=scripts(any_statement, steps_max=10), data=st.data())
def test_what_is_told_is_the_references_and_adds_up(steps: list[Step], data: st.DataObject) -> None:
    tell(as_streams(steps, data), data)


@FEWER
@given(steps=journeys(any_select, legs=2), data=st.data())
def test_what_is_told_of_every_kind_adds_up(steps: list[Step], data: st.DataObject) -> None:
    tell(as_streams(steps, data), data)


@FEWER
@given(steps=worlds(joining, streams_count=2, tables_count=1, steps_max=8), data=st.data())
def test_what_is_told_of_joins_adds_up(steps: list[Step], data: st.DataObject) -> None:
    tell(as_streams(steps, data), data)


def tell(steps: list[Step], data: st.DataObject) -> None:
    engine, reference, sums = Followers(), Reference(), Sums()
    archive = Archive(reference, late=True)
    for step in begun_late(steps, data.draw):
        step = renumbered(step, reference)
        expected = reference.apply(step)
        archive.add(step, expected)
        result, mine = engine.apply(step)
        assert_same_telling(mine, of_reference(reference))
        follow_all(reference)
        sums.add(engine.subject, mine)
        history = archive.somewhere(data.draw) if data.draw(st.booleans()) else None
        if history is not None:
            expected = reference.apply(history)
            result, mine = engine.apply(history)
            assert told(result) == told(expected)
            assert_same_telling(mine, of_reference(reference))
            sums.add(engine.subject, mine)


@FEW
@given(steps=journeys(any_select, legs=2, changes=False), chunks=st.integers(1, 4), data=st.data())
def test_as_if_the_rows_had_been_there_from_the_beginning(
    steps: list[Step], chunks: int, data: st.DataObject
) -> None:
    """Another engine got the same steps and let go of nothing. Half of the queries come after the history."""
    all_rows, engine, reference = EngineSubject(), EngineSubject(), Reference()
    archive = Archive(reference)
    wants = Register((Registration("wants", "SELECT COUNT(*) AS n FROM s [RANGE 11 DAYS]"),))
    early = data.draw(st.booleans())
    for step in begun_late(steps, data.draw):
        all_rows.apply(whole(long_retained(step)))
        if early or not isinstance(step.body, Register):
            step = renumbered(step, reference)
            archive.add(step, reference.apply(step))
            engine.apply(step)
    reference.apply(registering := renumbered(replace(steps[0], body=wants), reference))
    engine.apply(registering)
    rows = archive.between("s", TIMESTAMP_MS_MIN, 2**62)
    cuts = (
        sorted({row.timestamp for row in data.draw(st.lists(st.sampled_from(rows), max_size=chunks))})
        if rows
        else []
    )
    for from_ms in [*reversed(cuts), TIMESTAMP_MS_MIN]:
        history = archive.step("s", from_ms)
        if history is not None:
            assert told(engine.apply(history)) == told(reference.apply(history))
            engine.engine._check()
    if not early:
        for step in steps:
            if isinstance(step.body, Register):
                engine.apply(renumbered(step, reference))
                reference.apply(renumbered(step, reference))
    for query_id in all_rows.standing():
        mine, theirs = engine.answer(query_id), all_rows.answer(query_id)
        assert mine.now_ms == theirs.now_ms
        assert mine.complete or reference.sources["s"].complete_from is not None  # beyond NOW
        assert theirs.complete
        assert exact_rows(mine.rows) == exact_rows(theirs.rows), query_id
        assert mine.errors == theirs.errors

"""The engine against the reference: the same steps, the same answers, whatever the steps are cut into."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from engine.model.step import CreateSource, Heartbeat, Records, Register, Step
from engine.reference import Reference
from tests.differential.agreement import (
    EngineSubject,
    Subject,
    assert_same_answers,
    cut,
    exact_rows,
    numbered,
    told,
)
from tests.differential.engine import any_statement
from tests.memory_state import MemoryState
from tests.sql_selects import statement as any_select
from tests.strategies import journeys, scripts

LEG_STEPS = 4
BACKS = st.lists(st.sampled_from([-1, 0, 1, 7, 30, 90]), max_size=2)


@given(steps=scripts(any_statement), backs=BACKS)
def test_answers_and_results_are_the_references(steps: list[Step], backs: list[int]) -> None:
    engine, reference = EngineSubject(), Reference()
    for step in steps:
        assert told(engine.apply(step)) == told(reference.apply(step))
        assert_same_answers(engine, reference, backs)


@given(steps=journeys(any_select), backs=BACKS)
def test_every_query_meets_rows_and_answers_as_the_reference(steps: list[Step], backs: list[int]) -> None:
    """Compares, at the end of each leg, the rows of the stream and the answers of queries of all kinds."""
    engine, reference = EngineSubject(), Reference()
    for place, step in enumerate(steps):
        assert told(engine.apply(step)) == told(reference.apply(step))
        if place % LEG_STEPS == 0:
            assert_same_answers(engine, reference, backs)
    assert_same_answers(engine, reference, [0, 20])


def apply_in_parts(subject: Subject, steps: list[Step], cuts: list[int]) -> None:
    """Apply every step cut before the rows ``cuts``, and check it against the same step applied whole."""
    whole = type(subject)()
    sequence = 0
    for step, whole_step in zip(steps, numbered(steps), strict=True):
        expected = whole.apply(whole_step)
        parts = numbered(cut(step, cuts), after=sequence)
        sequence += len(parts)
        results, seen = [], 0
        late: list[int] = []
        rejected: list[int] = []
        for part in parts:
            result = subject.apply(part)
            late += [seen + row for row in result.late]
            rejected += [seen + refusal.row for refusal in result.rejected]
            seen += len(getattr(part.body, "batch", ()))
            results.append(result)
        assert results[-1].now_ms == expected.now_ms
        assert results[-1].idle == expected.idle
        assert sum(result.entered for result in results) == expected.entered
        assert (late, rejected) == (list(expected.late), [refusal.row for refusal in expected.rejected])
    assert_same_answers(subject, whole, [0, 1, 20])


CUTS = st.lists(st.integers(0, 8), min_size=1, max_size=3)


@given(steps=scripts(any_statement, steps_max=8), cuts=CUTS)
def test_where_input_is_cut_into_steps_changes_no_answer(steps: list[Step], cuts: list[int]) -> None:
    apply_in_parts(EngineSubject(), steps, cuts)


@given(steps=scripts(any_statement, steps_max=8), cuts=CUTS)
def test_the_rules_themselves_do_not_depend_on_where_input_is_cut(steps: list[Step], cuts: list[int]) -> None:
    apply_in_parts(Reference(), steps, cuts)


@given(steps=scripts(any_statement), data=st.data())
def test_a_restart_changes_nothing(steps: list[Step], data: st.DataObject) -> None:
    store = MemoryState()
    engine, reference = EngineSubject(), Reference()
    for step in steps:
        assert told(engine.apply(step)) == told(reference.apply(step))
        event = data.draw(st.sampled_from(["none", "none", "save", "restart", "full"]))
        if event == "save":
            engine.engine.save(store)
        elif event == "full":
            store.full = True
            engine.save_in_vain(store)
            store.full = False
        elif event == "restart":
            engine = engine.restarted(store)
            assert engine.engine.position == step.position
            assert_same_answers(engine, reference, [0, 5])
    assert_same_answers(engine, reference, [0, 1, 20])


@given(steps=scripts(any_statement), data=st.data())
def test_steps_lost_with_a_crash_are_replayed_to_the_same_answers(
    steps: list[Step], data: st.DataObject
) -> None:
    """The store lags behind: what came after its position is applied again."""
    store = MemoryState()
    engine, reference = EngineSubject(), Reference()
    saved = data.draw(st.sets(st.integers(1, len(steps)), max_size=4))
    crash = data.draw(st.integers(1, len(steps)))
    for step in steps[:crash]:
        reference.apply(step)
        engine.apply(step)
        if step.position.sequence in saved:
            engine.engine.save(store)
    engine = EngineSubject.from_store(store)
    position = store.position()
    for step in steps[0 if position is None else position.sequence : crash]:
        engine.apply(step)
    for step in steps[crash:]:
        assert told(engine.apply(step)) == told(reference.apply(step))
    assert_same_answers(engine, reference, [0, 1, 20])


@given(steps=scripts(any_statement, steps_max=8, drops=False, changes=False), data=st.data())
def test_the_order_of_registration_changes_no_answer(steps: list[Step], data: st.DataObject) -> None:
    """All queries up to the end, registered first, last, or where they stood: one answer each.

    Retention is the same for all, so windows that widen it are no difference between the two.
    """
    creations, registrations, rest = [], [], []
    for step in steps:
        match step.body:
            case CreateSource(stream):
                if not any(stream.name == known.body.stream.name for known in creations):
                    creations.append(step)
            case Register():
                registrations.append(step)
            case Records() | Heartbeat():
                rest.append(step)
    first, last = EngineSubject(), Reference()
    early = [replace(step, clock_ms=0) for step in data.draw(st.permutations(registrations))]
    for step in numbered([*creations, *early, *rest]):
        first.apply(step)
    for step in numbered([*creations, *rest, *registrations]):
        last.apply(step)
    for query_id in last.standing():
        one, other = first.answer(query_id), last.answer(query_id)
        assert one.now_ms == other.now_ms
        if one.complete and other.complete:
            assert exact_rows(one.rows) == exact_rows(other.rows)

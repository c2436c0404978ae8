"""Answers over history: those of an engine that let go of nothing, at NOW and at earlier instants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.batch import Batch
from engine.model.limits import Limits
from engine.model.period import Period
from engine.model.source import SourceName
from engine.model.step import Step
from engine.model.types import TIMESTAMP_MS_MIN
from engine.reference import Reference
from engine.reference.rows import Row
from engine.views.recompute import History, needed_from
from engine.views.view import View
from tests.differential.agreement import EngineSubject, exact_rows, plain_rows
from tests.differential.backfill import long_retained, whole
from tests.differential.engine import any_statement
from tests.differential.histories import Archive, begun_late
from tests.sql_joins import joining
from tests.sql_selects import statement as any_select
from tests.strategies import journeys, scripts
from tests.worlds import worlds
from tureen.errors import InstantOutOfRange

FEW = settings(max_examples=max(8, settings.default.max_examples // 2))
FEWER = settings(max_examples=max(6, settings.default.max_examples // 4))
LIMITS = Limits(superseded_rows_max=0)
BACKS = (0, 1, 7, 30, 90, 400)


def in_batches(rows: list[Row], archive: Archive, name: str, cut: int) -> list[Batch]:
    return [archive.batch(name, piece) for piece in (rows[:cut], rows[cut:])]


def histories(
    view: View, archive: Archive, cut: int, from_ms: int | None = None
) -> dict[SourceName, History]:
    """Histories of all sources that take some, from an instant on."""
    found = {}
    for name in archive.rows:
        until_ms = view.boundary_ms(name)
        if until_ms is not None:
            begin_ms = TIMESTAMP_MS_MIN if from_ms is None or archive.is_table(name) else from_ms
            rows = archive.between(name, begin_ms, until_ms)
            complete_from_ms = None if begin_ms == TIMESTAMP_MS_MIN else begin_ms
            found[SourceName(name)] = History(in_batches(rows, archive, name, cut), complete_from_ms)
    return found


def agree(steps: list[Step], cut: int, data: st.DataObject) -> None:
    """Also of streams whose topics had lost rows before, which the history has."""
    engine, patient, reference = EngineSubject(), EngineSubject(), Reference()
    archive = Archive(reference)
    for step in begun_late(steps, data.draw):
        archive.add(step, reference.apply(step))
        engine.apply(step)
        patient.apply(whole(long_retained(step)))
    view = engine.engine.view()
    for query_id, standing in view.standing.items():
        if standing.paused:
            continue
        answer = view.afresh(query_id, histories(view, archive, cut))
        expected = patient.answer(query_id)
        assert answer.complete
        assert answer.now_ms == expected.now_ms
        assert exact_rows(plain_rows(answer.table)) == exact_rows(expected.rows), query_id
        assert answer.errors == expected.errors
        for back_ms in BACKS if answer.now_ms is not None else ():
            assert answer.now_ms is not None
            at_ms = answer.now_ms - back_ms
            then = view.afresh(query_id, histories(view, archive, cut), at=at_ms)
            rows = exact_rows(plain_rows(then.table))
            assert rows == exact_rows(patient.answer(query_id, at_ms).rows), (query_id, at_ms)
            assert then.now_ms == at_ms
        if answer.now_ms is not None:
            over_periods(view, query_id, lambda: histories(view, archive, cut), patient)


def over_periods(
    view: View, query_id: str, given: Callable[[], dict[SourceName, History]], patient: EngineSubject
) -> None:
    """A period is that of a patient engine."""
    now_ms = view.now_ms(query_id)
    assert now_ms is not None
    for period in (Period(now_ms - 90), Period(now_ms - 30, now_ms - 7)):
        expected = patient.engine.view().snapshot(query_id, period)
        found = view.afresh(query_id, given(), at=period)
        assert exact_rows(plain_rows(found.table)) == exact_rows(plain_rows(expected.table)), period
        assert found.now_ms == expected.now_ms


@FEW
@given(steps=scripts(any_statement, steps_max=10), cut=st.integers(0, 9), data=st.data())
def test_of_selections_they_are_those_of_a_patient_engine(
    steps: list[Step], cut: int, data: st.DataObject
) -> None:
    agree(steps, cut, data)


@FEW
@given(steps=journeys(any_select, legs=2), cut=st.integers(0, 9), data=st.data())
def test_of_every_kind_they_are_those_of_a_patient_engine(
    steps: list[Step], cut: int, data: st.DataObject
) -> None:
    agree(steps, cut, data)


@FEWER
@given(steps=worlds(joining, streams_count=2, tables_count=1), cut=st.integers(0, 9), data=st.data())
def test_joins_are_those_of_a_patient_engine(steps: list[Step], cut: int, data: st.DataObject) -> None:
    agree(steps, cut, data)


@FEW
@given(steps=journeys(any_select, legs=2), back_ms=st.sampled_from(BACKS), cut=st.integers(0, 9))
def test_history_from_when_rows_are_needed_is_enough(steps: list[Step], back_ms: int, cut: int) -> None:
    """And with less an earlier instant is refused, or the answer is the same all the same."""
    engine, patient, reference = EngineSubject(), EngineSubject(), Reference()
    archive = Archive(reference)
    for step in steps:
        archive.add(step, reference.apply(step))
        engine.apply(step)
        patient.apply(long_retained(step))
    view = engine.engine.view()
    for query_id, standing in view.standing.items():
        now_ms = view.now_ms(query_id)
        if standing.paused or now_ms is None:
            continue
        at_ms = now_ms - back_ms
        expected = exact_rows(patient.answer(query_id, at_ms).rows)
        needed = needed_from(standing.query, at_ms)["s"]
        given = histories(view, archive, cut, needed)
        assert exact_rows(plain_rows(view.afresh(query_id, given, at=at_ms).table)) == expected
        less: Any = histories(view, archive, cut, (at_ms if needed is None else needed) + 5)
        try:
            answer = view.afresh(query_id, less, at=at_ms)
        except InstantOutOfRange as refused:
            if refused.earliest_ms is not None:
                first = view.afresh(
                    query_id,
                    histories(view, archive, cut, (at_ms if needed is None else needed) + 5),
                    at=refused.earliest_ms,
                )
                assert first.complete
        else:
            assert exact_rows(plain_rows(answer.table)) == expected

"""Answers over a period: at each of its instants the rows that are valid are the reference's answer there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.limits import Limits
from engine.model.period import Period
from engine.model.step import Step
from engine.reference import Reference
from engine.views.view import View
from tests.capacities import small_engine
from tests.differential.agreement import EngineSubject, Subject, exact_rows, plain_rows
from tests.differential.engine import any_statement
from tests.differential.telling import as_streams
from tests.sql_joins import joining
from tests.sql_selects import with_sketches
from tests.strategies import journeys
from tests.worlds import eventful_worlds
from tureen.errors import InstantOutOfRange

FEW = settings(max_examples=max(8, settings.default.max_examples // 2))
LIMITS = Limits(superseded_rows_max=0)
ENDS = st.tuples(st.integers(0, 60), st.integers(0, 30))
"""How long before NOW a period begins, and how long it is; 0: up to NOW."""

Rows = Sequence[tuple[Any, ...]]


def valid_at(rows: Rows, at_ms: int) -> Counter[tuple[Any, ...]]:
    return Counter(exact_rows(row[:-2] for row in rows if row[-2] <= at_ms < row[-1]))


def agree(steps: list[Step], ends: Sequence[tuple[int, int]], other: Subject | None = None) -> None:
    """other: who tells what is right; None: the reference."""
    subject = EngineSubject(small_engine(LIMITS))
    other = other or Reference(LIMITS)
    for step in steps:
        subject.apply(step)
        other.apply(step)
    view = subject.engine.view()
    for query_id, standing in view.standing.items():
        now_ms = view.now_ms(query_id)
        if now_ms is None or standing.paused:
            continue
        for back, length in ends:
            from_ms = now_ms - back
            to_ms = from_ms + length if 0 < length <= back else None
            check_over(subject.engine.view(), other, query_id, Period(from_ms, to_ms), now_ms)
    subject.engine._check()


def check_over(view: View, other: Subject, query_id: str, period: Period, now_ms: int) -> None:
    last_ms = now_ms if period.to_ms is None else period.to_ms - 1
    instants = range(period.from_ms, last_ms + 1)
    expected = {at_ms: rows_at(other, query_id, at_ms) for at_ms in instants}
    if None in expected.values():
        with pytest.raises(InstantOutOfRange):
            view.snapshot(query_id, period)
        return
    answer = view.snapshot(query_id, period)
    assert answer.now_ms == last_ms
    assert answer.complete
    rows = plain_rows(answer.table)
    lives = [row[-2:] for row in rows]
    assert lives == sorted(lives)
    assert all(period.from_ms <= begin < end <= last_ms + 1 for begin, end in lives)
    for at_ms in instants:
        assert valid_at(rows, at_ms) == expected[at_ms], (query_id, at_ms)


def rows_at(other: Subject, query_id: str, at_ms: int) -> Counter[tuple[Any, ...]] | None:
    try:
        return Counter(exact_rows(other.answer(query_id, at_ms).rows))
    except InstantOutOfRange:
        return None


@FEW
@given(steps=journeys(any_statement, legs=2), ends=st.lists(ENDS, min_size=1, max_size=2))
def test_of_every_statement(steps: list[Step], ends: list[tuple[int, int]]) -> None:
    agree(steps, ends)


@FEW
@given(steps=journeys(with_sketches, legs=2, changes=False), ends=st.lists(ENDS, min_size=1, max_size=2))
def test_of_every_kind_of_query(steps: list[Step], ends: list[tuple[int, int]]) -> None:
    """With functions that the reference does not have: held to the engine's own answers at each instant."""
    agree(steps, ends, EngineSubject(small_engine(LIMITS)))


@FEW
@given(
    steps=eventful_worlds(joining, rounds=3) | eventful_worlds(joining, rounds=3, roomy=True),
    ends=st.lists(ENDS, min_size=1, max_size=2),
    data=st.data(),
)
def test_of_joins_with_tables_and_without(
    steps: list[Step], ends: list[tuple[int, int]], data: st.DataObject
) -> None:
    agree(as_streams(steps, data), ends)


@FEW
@given(
    steps=eventful_worlds(joining, streams_count=0, tables_count=2),
    ends=st.lists(ENDS, min_size=1, max_size=2),
)
def test_of_tables(steps: list[Step], ends: list[tuple[int, int]]) -> None:
    agree(steps, ends)


def test_over_sources_without_a_row_it_is_told_that_there_is_none() -> None:
    engine = small_engine(LIMITS)
    engine.create("CREATE STREAM s (v BIGINT) WITH (topic = 's')")
    engine.register("q", "SELECT v FROM s")
    with pytest.raises(InstantOutOfRange) as refused:
        engine.view().snapshot("q", Period(5))
    assert refused.value.hint == "the query's sources have no row yet"

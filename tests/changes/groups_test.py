"""GROUP BY over lives is at every instant what the operator gives for the rows that are there, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.changes.course import FOREVER, NEVER
from engine.changes.groups import Groups, can
from engine.changes.lives import Lives, Touched, Way
from engine.language import expressions as ex
from engine.language.query import Aggregate, AggregateCall, Output
from engine.model.batch import Column
from engine.model.limits import Limits
from engine.model.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, STRING
from engine.operators.aggregate import aggregate
from engine.operators.relation import Relation
from tests.changes.given import Given, at, given_rows, inputs, shuffled, told_instants
from tests.operators.aggregate_test import FITTING, call_of, column
from tests.operators.relations import TYPES, exactly, rows_of
from tureen.errors import LimitExceeded

FRACTION = ex.Literal(0.25, DOUBLE)
COUNT = AggregateCall("n", "COUNT", (), BIGINT)
FUNCTIONS = [*sorted(FITTING), "APPROX_QUANTILE", "COUNT(*)"]


@st.composite
def calls(draw: st.DrawFn, function: str, place: int, condition: int) -> tuple[Any, AggregateCall]:
    """The type that the column at a place needs, and a call over it."""
    where = column(condition, BOOLEAN) if draw(st.booleans()) else None
    if function == "COUNT(*)":
        return INTEGER, AggregateCall("n", "COUNT", (), BIGINT, False, where)
    if function == "APPROX_QUANTILE":
        arguments = (column(place, DOUBLE), FRACTION)
        return DOUBLE, AggregateCall("q", function, arguments, DOUBLE, False, where)
    argument = draw(st.sampled_from(FITTING[function]))
    distinct = function in ("COUNT", "SUM", "AVG", "MIN", "MAX") and draw(st.booleans())
    return argument, call_of(function, argument, place, distinct=distinct, filter=where)


def expected(stage: Aggregate, below: Given, instant: int) -> list[tuple[Any, ...]]:
    result, _ = aggregate(stage, at(below, below.lives, instant))
    return rows_of(result)


def assert_same(stage: Aggregate, below: Given, lives: Lives, in_order: bool = True) -> None:
    lives._check()
    groups = Groups(stage, below, Limits())
    for instant in told_instants(below.way):
        found, wanted = exactly(rows_of(at(groups, lives, instant))), exactly(expected(stage, below, instant))
        if in_order:
            assert found == wanted, instant
        else:
            assert sorted(found, key=repr) == sorted(wanted, key=repr), instant


def keyed(types: list[Any], first: int) -> tuple[Output, ...]:
    return tuple(Output(f"k{n}", column(first + n, type_)) for n, type_ in enumerate(types))


@pytest.mark.parametrize("function", FUNCTIONS)
@given(st.data(), st.lists(st.sampled_from(TYPES), max_size=2))
def test_every_aggregate_at_every_instant(function, data, keys):
    type_, call = data.draw(calls(function, 0, 1))
    below = data.draw(inputs([type_, BOOLEAN, *keys]))
    stage = Aggregate(keyed(keys, 2), (call,))
    assert can(stage, below)
    groups = Groups(stage, below, Limits())
    assert groups.ordered
    assert_same(stage, below, groups.alive())


@given(st.data())
def test_what_changed_is_among_all_rows_and_has_all_that_came_and_went(data):
    below = data.draw(inputs([INTEGER, DOUBLE]))
    stage = Aggregate(keyed([INTEGER], 0), (call_of("SUM", DOUBLE, 1), COUNT))
    groups = Groups(stage, below, Limits())
    changed = groups.changed()
    assert bool((below.way.among(changed.begins) | below.way.among(changed.ends)).all())
    whole = Groups(stage, below, Limits()).alive()
    for instant in told_instants(below.way):
        if instant == below.way.since:
            continue
        before, now = (
            sorted(exactly(rows_of(at(groups, whole, t))), key=repr) for t in (instant - 1, instant)
        )
        for row in exactly(rows_of(changed.relation.take(changed.at(instant - 1)))):
            before.remove(row)
        for row in exactly(rows_of(changed.relation.take(changed.at(instant)))):
            now.remove(row)
        assert before == now


@given(st.data())
def test_touched_groups_alone(data):
    below = data.draw(inputs([INTEGER, STRING]))
    stage = Aggregate(keyed([INTEGER, STRING], 0), (COUNT,))
    asked = data.draw(st.sampled_from([(0,), (1, 0), (2,), (0, 2)]))
    groups = Groups(stage, below, Limits())
    whole = Groups(stage, below, Limits()).alive()
    some = whole.take(np.arange(0, len(whole), 3))
    keys = tuple(ex.Column(place, "c", (INTEGER, STRING, BIGINT)[place]) for place in asked)
    touched = Touched(keys, tuple(some.relation.columns[place] for place in asked), len(some))
    found, wanted = groups.alive(touched), whole.where(touched.among(whole.relation))
    assert exactly(rows_of(found.relation)) == exactly(rows_of(wanted.relation))
    assert found.begins.tolist() == wanted.begins.tolist()
    assert found.ends.tolist() == wanted.ends.tolist()


@pytest.mark.parametrize("function", ["COUNT", "SUM", "AVG", "MIN", "VAR_SAMP", "BOOL_OR"])
@given(st.data())
def test_rows_in_no_order(function, data):
    type_, call = data.draw(calls(function, 0, 1))
    below = data.draw(inputs([type_, BOOLEAN, STRING]))
    mixed = shuffled(below, data.draw(st.permutations(range(len(below.lives)))))
    stage = Aggregate(keyed([STRING], 2), (call,))
    if can(stage, mixed):
        assert_same(stage, below, Groups(stage, mixed, Limits()).alive(), in_order=False)
    else:
        assert function == "MIN"
        assert type_ == DOUBLE


@pytest.mark.parametrize("function", ["FIRST", "LAST", "ARRAY_AGG", "APPROX_COUNT_DISTINCT"])
def test_what_order_decides_is_refused_where_it_is_not_known(function):
    below = given_rows([INTEGER], [(1,)], [(1, 2)], Way(0, 3))
    stage = Aggregate((), (call_of(function, INTEGER),))
    assert can(stage, below)
    assert not can(stage, shuffled(below, [0]))


def test_without_keys_there_is_always_one_row():
    below = given_rows([INTEGER], [(1,)], [(5, 7)], Way(NEVER, 9))
    changed = Groups(Aggregate((), (COUNT,)), below, Limits()).changed()
    assert rows_of(changed.relation) == [(0,), (1,), (0,)]
    assert changed.begins.tolist() == [NEVER, 5, 7]
    assert changed.ends.tolist() == [5, 7, FOREVER]


def test_nothing_changes_where_no_row_comes_or_goes():
    rows = [(1,), (2,)]
    below = given_rows([INTEGER], rows, [(NEVER, FOREVER)] * 2, Way(3, 9))
    for keys in ((), keyed([INTEGER], 0)):
        assert len(Groups(Aggregate(keys, (COUNT,)), below, Limits()).changed()) == 0


def test_what_is_repeated_for_every_piece_is_limited():
    lives = [(instant, FOREVER) for instant in range(1, 41)]
    below = given_rows([INTEGER], [(1,)] * 40, lives, Way(0, 40))
    stage = Aggregate((), (call_of("ARRAY_AGG", INTEGER),))
    with pytest.raises(LimitExceeded, match="intermediate_rows_max"):
        Groups(stage, below, Limits(intermediate_rows_max=800)).alive()
    assert len(Groups(stage, below, Limits(intermediate_rows_max=1_000)).alive()) == 41


@pytest.mark.parametrize("function", ["SUM", "AVG", "VAR_POP"])
def test_many_doubles(function):
    random = np.random.default_rng(7)
    n, way = 30_000, Way(1_000, 1_010)
    begins = np.sort(random.integers(0, 1_011, n))
    ends = begins + random.integers(900, 950, n)
    there = np.flatnonzero((begins <= way.until) & (ends > way.since))
    columns = [
        Column(DOUBLE, random.normal(size=n) * 10.0 ** random.integers(-9, 9, n)),
        Column(INTEGER, random.integers(0, 2, n).astype(np.int32)),
    ]
    below = Given(Lives(Relation(columns, n), begins, ends).take(there), way)
    for keys in ((), keyed([INTEGER], 1)):
        stage = Aggregate(keys, (call_of(function, DOUBLE),))
        assert_same(stage, below, Groups(stage, below, Limits()).alive())

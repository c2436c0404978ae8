"""ROW_NUMBER, LIMIT and DISTINCT over lives are at every instant what the operators give; copies count on."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from engine.changes.copies import copies_of_whole
from engine.changes.distinct import Distincts
from engine.changes.lives import Input, Lives, Touched, Way
from engine.changes.numbered import Firsts, Numbered
from engine.language import expressions as ex
from engine.language.query import Limit, RowNumber, Sort, SortKey
from engine.model.limits import Limits
from engine.model.types import BOOLEAN, DOUBLE, INTEGER, STRING
from engine.operators.distinct import distinct
from engine.operators.limit import limit
from engine.operators.relation import Relation
from engine.operators.row_number import row_number
from engine.operators.sort import sort
from tests.changes.given import Given, at, given_rows, inputs, told_instants
from tests.operators.aggregate_test import column
from tests.operators.relations import exactly, rows_of

KINDS = (INTEGER, STRING, BOOLEAN, DOUBLE)

sort_keys = st.lists(
    st.builds(
        lambda place, descending, nulls: SortKey(column(place, KINDS[place]), descending, nulls),
        st.sampled_from(range(4)),
        st.booleans(),
        st.booleans(),
    ),
    min_size=1,
    max_size=2,
).map(tuple)


def assert_same(made: Input, below: Given, operator: Any) -> None:
    """At every instant, in order; and what changed is what comes and goes."""
    lives = made.alive()
    lives._check()
    assert made.ordered
    for instant in told_instants(below.way):
        found, wanted = at(below, lives, instant), operator(at(below, below.lives, instant))
        assert exactly(rows_of(found)) == exactly(rows_of(wanted)), instant


def assert_changes(made: Input, whole: Lives) -> None:
    changed = made.changed()
    way = made.way
    assert bool((way.among(changed.begins) | way.among(changed.ends)).all())
    for instant in told_instants(way):
        if instant == way.since:
            continue
        assert _difference(whole, instant) == _difference(changed, instant)


def _difference(lives: Lives, instant: int) -> dict[Any, int]:
    counted: Counter[Any] = Counter(exactly(rows_of(lives.relation.take(lives.at(instant)))))
    counted.subtract(exactly(rows_of(lives.relation.take(lives.at(instant - 1)))))
    return {row: count for row, count in counted.items() if count}


@given(st.data(), st.just(()) | sort_keys, st.lists(st.sampled_from(range(4)), max_size=2, unique=True))
def test_row_numbers(data, order, keys):
    below = data.draw(inputs(KINDS))
    stage = RowNumber(
        tuple(column(place, KINDS[place]) for place in keys), order, data.draw(st.none() | st.integers(1, 3))
    )
    assert_same(Numbered(stage, below, Limits()), below, lambda rows: row_number(stage, rows)[0])
    assert_changes(Numbered(stage, below, Limits()), Numbered(stage, below, Limits()).alive())


@given(st.data(), st.none() | sort_keys, st.none() | st.integers(0, 4), st.integers(0, 3))
def test_first_rows(data, keys, count, offset):
    below = data.draw(inputs(KINDS))
    by, few = None if keys is None else Sort(keys), Limit(count, offset)

    def operator(rows: Relation) -> Relation:
        return limit(few, rows if by is None else sort(by, rows)[0])

    assert_same(Firsts(by, few, below, Limits()), below, operator)
    assert_changes(Firsts(by, few, below, Limits()), Firsts(by, few, below, Limits()).alive())


@given(st.data())
def test_distinct_rows(data):
    below = data.draw(inputs(KINDS[data.draw(st.sampled_from([0, 2, 3])) :]))
    assert_same(Distincts(below), below, distinct)
    assert_changes(Distincts(below), Distincts(below).alive())


@given(st.data())
def test_touched_rows_alone(data):
    below = data.draw(inputs([INTEGER, BOOLEAN]))
    made = data.draw(
        st.sampled_from(
            [
                Distincts(below),
                Numbered(RowNumber((), (), 3), below, Limits()),
                Firsts(None, Limit(3), below, Limits()),
            ]
        )
    )
    value = data.draw(inputs([INTEGER], 3)).lives.relation
    touched = Touched((ex.Column(0, "c", INTEGER),), (value.columns[0],), len(value))
    some = made.alive(touched)
    whole = made.alive()
    wanted = whole.where(touched.among(whole.relation))
    assert exactly(rows_of(some.relation)) == exactly(rows_of(wanted.relation))
    since = below.way.since
    assert np.maximum(some.begins, since).tolist() == np.maximum(wanted.begins, since).tolist()


def test_the_first_of_all_rows_by_few_of_them():
    n = 5_000
    values = np.random.default_rng(5).integers(0, 1_000, n).tolist()
    lives = [(instant // 10, instant // 10 + 300) for instant in range(n)]
    below = given_rows([INTEGER], [(value,) for value in values], lives, Way(400, 420))
    by, few = Sort((SortKey(column(0, INTEGER), True),)), Limit(7, 2)
    assert_same(Firsts(by, few, below, Limits()), below, lambda rows: limit(few, sort(by, rows)[0]))


# --- copies -------------------------------------------------------------------------------------------


def test_copies_of_a_whole_answer():
    table = pa.table(
        {
            "x": pa.array([0.0, -0.0, 0.0, float("nan"), None, None, float("nan")]),
            "y": pa.array([[1], [1], [1], None, [2], [2], None]),
            "z": pa.nulls(7),
        }
    )
    assert copies_of_whole(table).tolist() == [1, 1, 2, 1, 1, 2, 2]
    assert copies_of_whole(table.slice(0, 0)).tolist() == []
    assert copies_of_whole(pa.table({"a": pa.array([1, 2]), "b": ["x", "y"]})).tolist() == [1, 1]

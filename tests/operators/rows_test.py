"""Filter, distinct, sort and limit against plain twins over lists of rows."""

from __future__ import annotations

from functools import cmp_to_key
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.algebra.filter.stage import Filter
from engine.algebra.limit.stage import Limit
from engine.algebra.row_number.stage import RowNumber
from engine.algebra.sort.stage import SortKey
from engine.model import expressions as ex
from engine.model.types import BOOLEAN, DOUBLE, INTEGER
from engine.operators.distinct import distinct
from engine.operators.filter import keep
from engine.operators.limit import limit
from engine.operators.row_number import row_number
from engine.operators.sort import sort
from engine.reference.values import identity, one_zero, order
from tests.operators.relations import PRICE, TYPES, exactly, relation, rows_of, tables

some_types = st.lists(st.sampled_from(TYPES), min_size=1, max_size=3)


def columns(types: list[Any]) -> list[ex.Column]:
    return [ex.Column(place, f"c{place}", type_) for place, type_ in enumerate(types)]


@given(st.data(), some_types)
def test_distinct_keeps_equal_rows_once(data, types):
    rows = data.draw(tables(types))
    first: dict[Any, Any] = {}
    for row in rows:
        first.setdefault(identity(row), tuple(map(one_zero, row)))
    result = distinct(relation(types, rows))
    assert exactly(rows_of(result)) == exactly(list(first.values()))


def test_distinct_rows_keep_their_ordinals():
    result = distinct(relation([INTEGER], [(1,), (1,), (2,)], [10, 20, 30]))
    assert result.stored_ordinals().tolist() == [10, 30]


@given(st.data(), some_types)
def test_sort_is_stable_and_knows_how_far_it_must_go(data, types):
    rows = data.draw(tables(types))
    keys = tuple(
        SortKey(column, data.draw(st.booleans()), data.draw(st.booleans())) for column in columns(types)
    )
    wanted = data.draw(st.none() | st.integers(0, 35))

    def compare(one: tuple[Any, ...], other: tuple[Any, ...]) -> int:
        for place, key in enumerate(keys):
            a, b = one[place], other[place]
            if a is None or b is None:
                if (a is None) != (b is None):
                    return -1 if (a is None) == key.nulls_first else 1
                continue
            sign = order(a, types[place], b, types[place])
            if sign:
                return -sign if key.descending else sign
        return 0

    expected = sorted([(*row, place) for place, row in enumerate(rows)], key=cmp_to_key(compare))
    placed = [(*row, place) for place, row in enumerate(rows)]
    numbered = relation([*types, INTEGER], placed, range(len(rows)))
    stop, ties = wanted, bool(wanted) and data.draw(st.booleans())
    while ties and stop < len(rows) and compare(expected[stop], expected[wanted - 1]) == 0:
        stop += 1
    result, errors = sort(keys, numbered, wanted, ties=ties)
    assert errors == 0
    assert [row[-1] for row in rows_of(result)] == [row[-1] for row in expected[:stop]]
    assert result.stored_ordinals().tolist() == [row[-1] for row in expected[:stop]]


def test_sort_counts_keys_that_are_errors_and_puts_them_where_nulls_go():
    a, b = columns([DOUBLE, DOUBLE])
    rows = [(1.0, 0.0), (6.0, 2.0), (1.0, 2.0), (None, 0.0)]
    result, errors = sort(
        (SortKey(ex.Arithmetic("/", a, b, DOUBLE)),), relation([DOUBLE, DOUBLE], rows), wanted=3
    )
    assert errors == 1
    assert rows_of(result) == [(1.0, 2.0), (6.0, 2.0), (1.0, 0.0)]


@given(tables([INTEGER]), st.none() | st.integers(0, 40), st.integers(0, 40))
def test_limit_is_a_slice(rows, count, offset):
    result = limit(Limit(count, offset), relation([INTEGER], rows))
    assert rows_of(result) == rows[offset : None if count is None else offset + count]


@given(tables([BOOLEAN, PRICE]))
def test_filter_keeps_where_true(rows):
    result, errors = keep(
        Filter(columns([BOOLEAN])[0]), relation([BOOLEAN, PRICE], rows, range(5, 5 + len(rows)))
    )
    assert rows_of(result) == [row for row in rows if row[0] is True]
    assert errors == 0
    assert result.stored_ordinals().tolist() == [
        5 + place for place, row in enumerate(rows) if row[0] is True
    ]


@pytest.mark.parametrize("wanted", [None, 1])
def test_nothing_sorts_to_nothing(wanted):
    result, errors = sort((SortKey(columns([DOUBLE])[0]),), relation([DOUBLE], []), wanted)
    assert (rows_of(result), errors) == ([], 0)


@given(st.data(), st.lists(st.sampled_from(TYPES), max_size=2), st.lists(st.sampled_from(TYPES), max_size=2))
def test_rows_are_numbered_within_their_keys(data, keys, ordering):
    types = [*keys, *ordering]
    rows = data.draw(tables([*types, INTEGER], 20))
    sort_keys = tuple(
        SortKey(column, data.draw(st.booleans()), data.draw(st.booleans()))
        for column in columns(types)[len(keys) :]
    )
    most = data.draw(st.none() | st.integers(1, 4))
    of_key: dict[Any, list[int]] = {}
    for place, row in enumerate(rows):
        of_key.setdefault(identity(row[: len(keys)]), []).append(place)
    number: dict[int, int] = {}
    for places in of_key.values():
        members = relation([*types, INTEGER], [(*rows[place][:-1], place) for place in places])
        in_order = members if not ordering else sort(sort_keys, members)[0]
        for count, row in enumerate(rows_of(in_order), 1):
            number[row[-1]] = count
    result, errors = row_number(
        RowNumber(tuple(columns(keys)), sort_keys, most),
        relation([*types, INTEGER], rows, range(7, 7 + len(rows))),
    )
    kept = [place for place in range(len(rows)) if most is None or number[place] <= most]
    assert exactly(rows_of(result)) == exactly([(*rows[place], number[place]) for place in kept])
    assert result.stored_ordinals().tolist() == [7 + place for place in kept]
    assert errors == 0


def test_filter_counts_errors():
    a, b = columns([DOUBLE, DOUBLE])
    positive = ex.Compare(">", ex.Arithmetic("/", a, b, DOUBLE), ex.Literal(0.0, DOUBLE))
    rows = [(1.0, 0.0), (1.0, 1.0), (None, 0.0), (-1.0, 1.0)]
    result, errors = keep(Filter(positive), relation([DOUBLE, DOUBLE], rows))
    assert (rows_of(result), errors) == ([(1.0, 1.0)], 1)

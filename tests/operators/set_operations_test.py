"""Set operations over random bags: as the reference has them, and as the equations say."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.algebra.project.stage import Output, Project
from engine.algebra.set_operation.stage import SetOperation, SetOperationKind
from engine.language.query import Query, Scan
from engine.model.expressions import Column
from engine.model.source import SourceName
from engine.model.types import BIGINT, DOUBLE, STRING, Type
from engine.operators.relation import Moments, Relation
from engine.operators.set_operations import set_operation
from engine.reference.rows import Placed
from engine.reference.set_operations import merged
from engine.reference.set_operations import set_operation as expected
from engine.reference.values import identity
from engine.windows.clauses import UNBOUNDED
from tests.operators.relations import TYPES, exactly, relation, rows_of, tables
from tureen.errors import LimitExceeded

Rows = list[tuple[Any, ...]]
KINDS: list[SetOperationKind] = ["union", "intersect", "except"]
MANY = 10_000


def inner(types: list[Type]) -> Query:
    outputs = [Output(f"c{place}", Column(place, f"c{place}", type_)) for place, type_ in enumerate(types)]
    return Query("", Scan(SourceName("s"), UNBOUNDED), (Project(tuple(outputs)),))


def placed(rows: Rows) -> list[Placed]:
    return [Placed(None, row) for row in rows]


@given(
    st.data(),
    st.lists(st.sampled_from(TYPES), min_size=1, max_size=2),
    st.sampled_from(KINDS),
    st.booleans(),
)
def test_as_the_reference(
    data: st.DataObject, types: list[Type], kind: SetOperationKind, copies: bool
) -> None:
    left, right = data.draw(tables(types, 12)), data.draw(tables(types, 12))
    right += data.draw(st.lists(st.sampled_from(left), max_size=6)) if left else []
    stage = SetOperation(kind, inner(types), copies or kind == "union")
    found = set_operation(stage, relation(types, left), relation(types, right), MANY)
    wanted = [row.values for row in expected(stage, placed(left), placed(right))]
    assert exactly(rows_of(found)) == exactly(wanted)
    count, others = (Counter(map(identity, rows)) for rows in (left, right))
    given_ = Counter(map(identity, rows_of(found)))
    for row in count | others:
        v1, v2 = count[row], others[row]
        bag = {"union": v1 + v2, "intersect": min(v1, v2), "except": max(v1 - v2, 0)}[kind]
        once = v1 > 0 and (v2 > 0) is (kind == "intersect")
        assert given_[row] == (bag if stage.all else once)


@given(st.data())
def test_except_on_some_columns_keeps_the_last_left_rows_whole(data: st.DataObject) -> None:
    left, right = data.draw(tables([BIGINT, DOUBLE, STRING], 12)), data.draw(tables([DOUBLE, BIGINT], 12))
    right += [(row[1], row[0]) for row in left[: data.draw(st.integers(0, len(left)))]]
    on = data.draw(st.sampled_from([((0, 1),), ((1, 0),), ((0, 1), (1, 0))]))
    stage = SetOperation("except", inner([DOUBLE, BIGINT]), True, on)
    found = set_operation(
        stage, relation([BIGINT, DOUBLE, STRING], left), relation([DOUBLE, BIGINT], right), MANY
    )
    assert exactly(rows_of(found)) == exactly(
        [row.values for row in expected(stage, placed(left), placed(right))]
    )
    kept = []
    for row in left:
        key = identity([row[place] for place, _ in on])
        of_value = [other for other in left if identity([other[place] for place, _ in on]) == key]
        against = sum(identity([other[place] for _, place in on]) == key for other in right)
        kept.append(any(row is other for other in of_value[min(against, len(of_value)) :]))
    assert exactly(rows_of(found)) == exactly([row for row, stays in zip(left, kept, strict=True) if stays])


def test_zeros_are_one_value_and_nan_and_null_too() -> None:
    left: Rows = [(-0.0,), (float("nan"),), (None,), (1.0,)]
    right: Rows = [(0.0,), (float("nan"),), (None,)]
    both = SetOperation("intersect", inner([DOUBLE]))
    found = set_operation(both, relation([DOUBLE], left), relation([DOUBLE], right), MANY)
    assert exactly(rows_of(found)) == exactly([(0.0,), (float("nan"),), (None,)])
    on = SetOperation("except", inner([DOUBLE]), True, ((0, 0),))
    found = set_operation(on, relation([DOUBLE], left), relation([DOUBLE], [(1.0,)]), MANY)
    assert exactly(rows_of(found)) == exactly([(-0.0,), (float("nan"),), (None,)])


def in_time(rows: list[tuple[int, int, int]], first: int) -> tuple[Relation, list[Placed]]:
    moments = Moments(*(np.array([row[place] for row in rows], np.int64) for place in range(3)))
    values: Rows = [(first + place,) for place in range(len(rows))]
    plain = relation([BIGINT], values)
    made = [Placed(None, row, moment) for row, moment in zip(values, rows, strict=True)]
    return Relation(plain.columns, len(plain), None, lambda: moments), made


MOMENTS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1), st.integers(0, 3)), max_size=12).map(
    sorted
)


@given(MOMENTS, MOMENTS, MOMENTS)
def test_rows_of_streams_are_united_in_the_order_of_time(one: Any, two: Any, three: Any) -> None:
    stage = SetOperation("union", inner([BIGINT]))
    (a, placed_a), (b, placed_b), (c, placed_c) = (
        in_time(rows, 100 * place) for place, rows in enumerate((one, two, three))
    )
    kept = set_operation(stage, a, b, MANY)
    found = set_operation(stage, kept, c, MANY)
    wanted = merged(merged(placed_a, placed_b), placed_c)
    assert rows_of(found) == [row.values for row in wanted]
    assert list(zip(*map(np.ndarray.tolist, found.moments()), strict=True)) == [row.moment for row in wanted]


def test_rows_in_no_order_of_time_stand_behind_the_left_ones() -> None:
    stage = SetOperation("union", inner([BIGINT]))
    timed, _ = in_time([(1, 0, 0), (5, 0, 1)], 0)
    found = set_operation(stage, timed, relation([BIGINT], [(7,), (6,)]), MANY)
    assert rows_of(found) == [(0,), (1,), (7,), (6,)]
    assert not found.is_in_time


def test_too_many_rows_are_refused() -> None:
    rows = relation([BIGINT], [(1,), (2,)])
    with pytest.raises(LimitExceeded):
        set_operation(SetOperation("union", inner([BIGINT])), rows, rows, 3)

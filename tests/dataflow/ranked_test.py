"""LIMIT and ROW_NUMBER kept incrementally: at every instant what the operators that are evaluated give."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.algebra.limit.stage import Limit
from engine.algebra.row_number.stage import RowNumber
from engine.algebra.sort.stage import SortKey
from engine.changes.temporal_relation import TemporalRelation
from engine.dataflow.operators.ranked import RankedNode, RankedSpec
from engine.model.types import BIGINT, DOUBLE, STRING
from engine.operators.limit import limit
from engine.operators.row_number import row_number
from engine.operators.sort import sort
from tests.changes.given import Given, inputs
from tests.dataflow.given_node import GivenNode
from tests.dataflow.group import of_column
from tests.dataflow.watched import built_anew_at_any_time, watched
from tests.operators.aggregate import column
from tests.operators.relations import PRICE, exactly, rows_of

TYPES = (BIGINT, STRING, DOUBLE, PRICE)
COLUMNS = 3


def expected(stage: RankedSpec, rows: TemporalRelation, instant: int) -> list[Any]:
    relation = rows.relation.take(rows.at(instant))
    if stage.numbered:
        relation, _ = row_number(RowNumber(stage.keys, stage.order, stage.most), relation)
    else:
        if stage.order:
            relation, _ = sort(stage.order, relation)
        count = None if stage.most is None else stage.most - stage.offset
        relation = limit(Limit(count, stage.offset), relation)
    return sorted(exactly(rows_of(relation)), key=repr)


def order_of(data: Any, least: int) -> tuple[SortKey, ...]:
    places = data.draw(st.lists(st.sampled_from(range(len(TYPES))), min_size=least, max_size=2, unique=True))
    return tuple(
        SortKey(column(place, TYPES[place]), data.draw(st.booleans()), data.draw(st.booleans()))
        for place in places
    )


def stage_of(data: Any, *, numbered: bool, order: tuple[SortKey, ...]) -> RankedSpec:
    count = data.draw(st.none() | st.integers(1, 4))
    if not numbered:
        offset = data.draw(st.integers(0, 3))
        return RankedSpec((), order, offset, None if count is None else offset + count, False, None)
    keys = data.draw(st.lists(st.sampled_from((0, 1, 2)), max_size=2, unique=True))
    return RankedSpec(tuple(column(place, TYPES[place]) for place in keys), order, 0, count, True, None)


@pytest.mark.parametrize("numbered", [False, True])
@given(st.data())
def test_rows_of_every_column_at_every_instant(numbered: bool, data: Any) -> None:
    """Columns come and go between transitions; heaps are built anew at any time."""
    below: Given = data.draw(inputs(TYPES, 25))
    owners = [sorted(data.draw(st.sets(st.integers(0, COLUMNS - 1)))) for _ in range(len(below.temporal))]
    node = GivenNode(below.temporal, owners, range(len(owners)))
    stage = stage_of(data, numbered=numbered, order=order_of(data, 0))
    few = data.draw(st.booleans())
    with built_anew_at_any_time() if few else contextlib.nullcontext():
        check(RankedNode(node, stage), node, stage, below, data)


@given(st.data())
def test_rows_that_the_order_tells_apart(data: Any) -> None:
    """Their ids are in any order."""
    below: Given = data.draw(inputs(TYPES, 25))
    firsts = dict[Any, int]()
    for place, (row, *_) in enumerate(exactly(rows_of(below.temporal.relation))):
        firsts.setdefault(repr(row), place)
    below = Given(below.temporal.take(np.array(list(firsts.values()), np.int64)), below.interval)
    owners = [sorted(data.draw(st.sets(st.integers(0, COLUMNS - 1)))) for _ in range(len(below.temporal))]
    node = GivenNode(below.temporal, owners, data.draw(st.permutations(range(len(owners)))))
    order = (*order_of(data, 0), SortKey(column(0, BIGINT)))
    stage = stage_of(data, numbered=data.draw(st.booleans()), order=order)
    check(RankedNode(node, stage), node, stage, below, data)


def check(ranked: RankedNode, node: GivenNode, stage: RankedSpec, below: Given, data: Any) -> None:
    turns = watched(ranked, node, below, data, partial(expected, stage), columns=COLUMNS, cuts_max=4)
    for context, interval, wanted in turns:
        standing = list(ranked.standing(context, np.array(sorted(wanted), np.int32)))
        for one in wanted:
            found = [row for each in standing for row in exactly(rows_of(of_column(each, one).relation))]
            assert sorted(found, key=repr) == expected(stage, node.of(one), interval.until)

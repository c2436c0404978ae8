"""Window functions kept incrementally: at every instant what the operator that is evaluated gives."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.algebra.sort.stage import SortKey
from engine.algebra.window_functions.stage import DEFAULT_FRAME, WindowFunctionCall, WindowFunctions
from engine.changes.temporal_relation import Interval, TemporalRelation
from engine.changes.transition import FOREVER
from engine.dataflow.operators.window_functions import WindowFunctionsNode, WindowFunctionsSpec
from engine.dataflow.turn import Turn
from engine.model.batch import Column
from engine.model.types import BIGINT, DOUBLE, STRING
from engine.operators.relation import Relation
from engine.operators.window_functions import window_functions
from tests.changes.given import Given, inputs
from tests.dataflow.given_node import GivenNode, transitions
from tests.dataflow.group import of_column
from tests.dataflow.watched import built_anew_at_any_time, watched
from tests.operators.aggregate import column
from tests.operators.relations import PRICE, exactly, rows_of
from tests.operators.window_calls import stages

TYPES = (BIGINT, STRING, DOUBLE, PRICE)
COLUMNS = 3
LOCAL = ("LAG", "LEAD", "SUM", "COUNT", "FIRST_VALUE")
BEFORE = ("LAG", "RANK", "DENSE_RANK")
"""Of those that look back alone, rows that come behind all others are looked at once."""


def expected(stage: WindowFunctions, rows: TemporalRelation, instant: int) -> list[Any]:
    relation, _ = window_functions(stage, rows.relation.take(rows.at(instant)))
    return sorted(exactly(rows_of(relation)), key=repr)


@pytest.mark.parametrize("functions", [(), LOCAL, BEFORE], ids=["all", "local", "before"])
@given(st.data())
def test_rows_of_every_column_at_every_instant(functions: tuple[str, ...], data: Any) -> None:
    """Columns come and go between transitions; heaps are built anew at any time."""
    check(data, functions, 25)


@pytest.mark.slow
@settings(max_examples=1_000)
@given(st.data())
def test_many_rows(data: Any) -> None:
    check(data, (), 80)


def check(data: Any, functions: tuple[str, ...], most: int) -> None:
    below: Given = data.draw(inputs(TYPES, most))
    owners = [sorted(data.draw(st.sets(st.integers(0, COLUMNS - 1)))) for _ in range(len(below.temporal))]
    node = GivenNode(below.temporal, owners, range(len(owners)))
    stage = data.draw(stages(TYPES, functions))
    few = data.draw(st.booleans())
    with built_anew_at_any_time() if few else contextlib.nullcontext():
        spec = WindowFunctionsSpec.of(stage, None)
        follow(WindowFunctionsNode(node, spec), node, stage, below, data)


def follow(
    functions: WindowFunctionsNode, node: GivenNode, stage: WindowFunctions, below: Given, data: Any
) -> None:
    def begun(context: Any, interval: Interval, wanted: set[int]) -> None:
        standing = list(functions.standing(context, np.array(sorted(wanted), np.int32)))
        for one in wanted:
            found = [row for each in standing for row in exactly(rows_of(of_column(each, one).relation))]
            assert sorted(found, key=repr) == expected(stage, node.of(one), interval.since)

    given_of = partial(expected, stage)
    for _ in watched(functions, node, below, data, given_of, columns=COLUMNS, cuts_max=4, begun=begun):
        pass


@given(st.data())
def test_rows_whose_values_stay_are_not_told(data: Any) -> None:
    below: Given = data.draw(inputs(TYPES, 20))
    node = GivenNode(below.temporal, [[0]] * len(below.temporal), range(len(below.temporal)))
    functions = WindowFunctionsNode(node, WindowFunctionsSpec.of(data.draw(stages(TYPES)), None))
    functions.want(0)
    for context, interval in transitions(below.interval, []):
        functions.begin(context)
        delta = functions.delta(Turn(context, interval))
        rows = rows_of(delta.temporal.relation)
        ids = [tuple(each) for each in delta.ids_of().tolist()]
        ends = dict[Any, Any]()
        order = np.argsort(delta.temporal.valid_from, kind="stable")
        for row in order.tolist():
            key = ids[row], int(delta.temporal.valid_from[row])
            assert ends.get(key) != exactly(rows[row])
            ends[ids[row], int(delta.temporal.valid_to[row])] = exactly(rows[row])


@given(st.data())
def test_rows_that_come_behind_all_others(data: Any) -> None:
    """In the order of the window, as those of a stream by its time: rows that stand do not change."""
    below: Given = data.draw(inputs(TYPES, 20))
    begins = np.sort(below.temporal.valid_from)
    order = (SortKey(column(0, BIGINT)),)
    if data.draw(st.booleans()):
        keys = np.cumsum(np.diff(begins, prepend=begins[:1]) > 0)  # peers come at one instant
    else:
        keys = np.arange(len(begins)) // data.draw(st.integers(1, 3))
    columns = [Column(BIGINT, keys.astype(np.int64)), *list(below.temporal.relation.columns)[1:]]
    stays = np.full(len(begins), FOREVER)
    rows = TemporalRelation(Relation(columns, len(begins)), begins, stays)
    node = GivenNode(rows, [[0, 1]] * len(rows), range(len(rows)))
    stage = data.draw(
        stages(TYPES, ("LAG", "RANK", "DENSE_RANK", "SUM", "COUNT", "FIRST_VALUE", "LAST_VALUE"))
    )
    stage = WindowFunctions(stage.keys, order, tuple(_plain(call) for call in stage.calls))
    spec = WindowFunctionsSpec.of(stage, None)
    follow(WindowFunctionsNode(node, spec), node, stage, Given(rows, below.interval), data)


def _plain(call: WindowFunctionCall) -> WindowFunctionCall:
    """The call with a frame that goes with any order, the default one mostly."""
    return call if call.frame.unit == "rows" else replace(call, frame=DEFAULT_FRAME)

"""Set operations kept incrementally: at every instant what counting plain rows gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.changes.temporal_relation import Interval
from engine.changes.transition import FOREVER
from engine.dataflow.operators.set_operations import CopiesNode, UnionNode
from engine.dataflow.operators.set_rows import LeftRows, LeftRowsNode
from engine.dataflow.operators.two_inputs import TwoInputs
from engine.dataflow.turn import Turn
from engine.kernels import set_copies as kernels
from tests.changes.given import Given, given_rows
from tests.dataflow.given_node import GivenNode, transitions
from tests.dataflow.set_twin import (
    FORMS,
    TYPES,
    WHOLE,
    Twin,
    check,
    compared_of,
    node_of,
    plain,
    sides,
)


@given(sides(), st.data())
def test_union_gives_the_rows_of_both(given_sides: tuple[Given, Given], data: Any) -> None:
    left, right = (node_of(data, side) for side in given_sides)
    twin = Twin(left, right)
    node = UnionNode(left, right)
    assert node.id_words == 2
    check(node, left, right, given_sides[0], data, twin.union)


@pytest.mark.parametrize("form", FORMS)
@given(sides(), st.data())
def test_copies_of_every_value_at_every_instant(
    form: int, given_sides: tuple[Given, Given], data: Any
) -> None:
    left, right = (node_of(data, side) for side in given_sides)
    compared = compared_of(form, WHOLE)
    twin = Twin(left, right)

    def expected(one: int, other: int, instant: int) -> list[Any]:
        return plain([row for _, row in twin.compared(compared, one, other, instant)])

    with pytest.MonkeyPatch.context() as patched:
        if data.draw(st.booleans()):
            patched.setattr("engine.dataflow.kept_columns.DEAD_MIN", -2)
        check(CopiesNode(left, right, compared), left, right, given_sides[0], data, expected)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("on", [WHOLE, ((0, 0),), ((1, 1),)])
@given(sides(), st.data())
def test_left_rows_of_every_value_at_every_instant(
    on: tuple[tuple[int, int], ...], form: int, given_sides: tuple[Given, Given], data: Any
) -> None:
    left, right = (node_of(data, side) for side in given_sides)
    compared = compared_of(form, on)
    twin = Twin(left, right)
    left.ordered = True

    def expected(one: int, other: int, instant: int) -> list[Any]:
        rows = [row for _, row in twin.compared(compared, one, other, instant)]
        return plain(rows) if on == WHOLE else rows

    with pytest.MonkeyPatch.context() as patched:
        if data.draw(st.booleans()):
            patched.setattr("engine.dataflow.kept_columns.DEAD_MIN", -2)
        node = LeftRowsNode(left, right, LeftRows(compared, on == WHOLE, None))
        check(node, left, right, given_sides[0], data, expected)


def negation(left: list[tuple[int, int]], right: list[tuple[int, int]]) -> list[list[int]]:
    """(row, from, until) of EXCEPT ALL ON of rows of one value with these lives, in the order of rows."""
    given_sides = []
    for lives in (left, right):
        rows = given_rows(TYPES, [(1.5, "a")] * len(lives), lives, _whole(20))
        given_sides.append(GivenNode(rows.temporal, [[0]] * len(lives), range(len(lives))))
    node = LeftRowsNode(
        given_sides[0], given_sides[1], LeftRows(compared_of(kernels.EXCEPT_ALL, ((0, 0),)), False, None)
    )
    node.want(node.column(0, 0))
    for context, interval in transitions(_whole(20), []):
        for each in (*given_sides, node):
            each.begin(context)
        delta = node.delta(Turn(context, interval))
    assert 0 <= node.premature <= node.entered
    temporal = delta.temporal
    return sorted(np.stack([delta.ids_of()[:, 0], temporal.valid_from, temporal.valid_to], axis=1).tolist())


def _whole(until: int) -> Interval:
    return Interval(0, until)


def test_left_row_enters_unless_a_right_row_holds_it_back() -> None:
    assert negation([(1, FOREVER)], []) == [[0, 1, FOREVER]]
    assert negation([(2, FOREVER)], [(1, FOREVER)]) == []


def test_right_row_takes_the_oldest_row_away() -> None:
    assert negation([(1, FOREVER), (2, FOREVER)], [(3, FOREVER)]) == [[0, 1, 3], [1, 2, FOREVER]]


def test_right_exit_brings_the_youngest_row_that_is_out_back() -> None:
    lives = [(1, FOREVER), (2, FOREVER), (3, FOREVER)]
    assert negation(lives, [(1, 5), (1, FOREVER)]) == [[1, 5, FOREVER], [2, 3, FOREVER]]


def test_left_exit_of_a_row_that_is_out_takes_the_oldest_of_the_answer_away() -> None:
    """Rows 0 and 1, one right row: the answer is row 1. Row 0 leaves, and nothing is left over."""
    assert negation([(1, 4), (2, FOREVER)], [(3, FOREVER)]) == [[0, 1, 3], [1, 2, 4]]


def test_left_exit_of_a_row_in_the_answer_is_its_own() -> None:
    assert negation([(1, FOREVER), (2, 4)], [(3, FOREVER)]) == [[0, 1, 3], [1, 2, 4]]


def test_exits_and_entries_of_one_instant_are_one_change() -> None:
    assert negation([(1, 5), (5, FOREVER)], [(5, FOREVER)]) == [[0, 1, 5]]
    assert negation([(1, FOREVER)], [(0, 5), (5, FOREVER)]) == []
    assert negation([(1, 5), (5, FOREVER)], []) == [[0, 1, 5], [1, 5, FOREVER]]


def test_a_row_gives_way_to_an_equal_one_in_silence() -> None:
    left = given_rows(TYPES, [(1.5, "a")] * 2, [(1, 5), (5, FOREVER)], _whole(20))
    nodes = GivenNode(left.temporal, [[0]] * 2), GivenNode(left.temporal.take(np.arange(0)), [])
    node: TwoInputs = CopiesNode(*nodes, compared_of(kernels.EXCEPT_ALL, WHOLE))
    node.want(node.column(0, 0))
    for context, interval in transitions(_whole(20), []):
        for each in (*nodes, node):
            each.begin(context)
        delta = node.delta(Turn(context, interval))
    assert (delta.temporal.valid_from.tolist(), delta.temporal.valid_to.tolist()) == ([1], [FOREVER])

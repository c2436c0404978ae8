"""Set operations over rows whose exits are known: at every instant what counting plain rows gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.dataflow.operators.known_exit_except import KnownExitExceptNode
from engine.dataflow.operators.known_exit_sets import KnownExitIntersectNode
from engine.dataflow.operators.set_operations import UnionNode
from engine.dataflow.operators.set_rows import LeftRows
from engine.dataflow.policy import KeptEdge, Policy
from engine.kernels import set_copies as kernels
from engine.model.maintenance import Structure
from tests.changes.given import Given
from tests.dataflow.given_node import KnownExitGivenNode
from tests.dataflow.set_twin import WHOLE, Twin, check, compared_of, known_exits_of, node_of, plain, sides

SPAN = 12
STRUCTURES: tuple[Structure, ...] = ("partitioned", "indexed")


def edge_of(data: Any, node: KnownExitGivenNode) -> KeptEdge:
    """An edge as it is, or one that promises less."""
    begins, exits = node.whole.temporal.valid_from, node.exits
    order = np.argsort(np.maximum(begins, 0), kind="stable")
    in_order = bool((exits[order][1:] >= exits[order][:-1]).all())
    is_early = bool((exits > node.whole.temporal.valid_to).any()) or data.draw(st.booleans())
    policy = Policy("upa", data.draw(st.sampled_from(STRUCTURES)), data.draw(st.none() | st.integers(1, 5)))
    return KeptEdge(policy, SPAN, in_order and data.draw(st.booleans()), is_early)


def expected_of(twin: Twin, form: int, on: tuple[tuple[int, int], ...]) -> Any:
    compared = compared_of(form, on)

    def expected(one: int, other: int, instant: int) -> list[Any]:
        rows = [row for _, row in twin.compared(compared, one, other, instant)]
        return plain(rows) if on == WHOLE else rows

    return expected


@given(sides(), st.data())
def test_union_passes_exits_on(given_sides: tuple[Given, Given], data: Any) -> None:
    left, right = (known_exits_of(data, side) for side in given_sides)
    twin = Twin(left, right)
    node = UnionNode(left, right)
    assert node.exits_known
    check(node, left, right, given_sides[0], data, twin.union)


@pytest.mark.parametrize("tells", [False, True])
@pytest.mark.parametrize("on", [WHOLE, ((0, 0),), ((1, 1),)])
@given(sides(), st.data())
def test_left_rows_that_no_right_row_holds_back(
    on: tuple[tuple[int, int], ...], tells: bool, given_sides: tuple[Given, Given], data: Any
) -> None:
    left = known_exits_of(data, given_sides[0])
    right = data.draw(st.sampled_from((known_exits_of, node_of)))(data, given_sides[1])
    left.ordered = True
    kept = edge_of(data, left), edge_of(data, right) if isinstance(right, KnownExitGivenNode) else None
    shape = LeftRows(compared_of(kernels.EXCEPT_ALL, on), on == WHOLE, None)
    node = KnownExitExceptNode(left, right, shape, kept, tells=tells)
    node.ordered = on != WHOLE
    with pytest.MonkeyPatch.context() as patched:
        if data.draw(st.booleans()):
            patched.setattr("engine.dataflow.kept_columns.DEAD_MIN", -2)
        check(node, left, right, given_sides[0], data, expected_of(Twin(left, right), kernels.EXCEPT_ALL, on))
    assert 0 <= node.premature <= node.entered


@given(sides(), st.data())
def test_pairs_of_equal_rows(given_sides: tuple[Given, Given], data: Any) -> None:
    left, right = (known_exits_of(data, side) for side in given_sides)
    compared = compared_of(kernels.INTERSECT_ALL, WHOLE)
    node = KnownExitIntersectNode(left, right, compared, (edge_of(data, left), edge_of(data, right)))
    with pytest.MonkeyPatch.context() as patched:
        if data.draw(st.booleans()):
            patched.setattr("engine.dataflow.kept_columns.DEAD_MIN", -2)
        expected = expected_of(Twin(left, right), kernels.INTERSECT_ALL, WHOLE)
        check(node, left, right, given_sides[0], data, expected)

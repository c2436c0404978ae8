"""Set operations kept incrementally: at every instant what counting plain rows gives."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.changes.temporal_relation import Interval, TemporalRelation
from engine.changes.transition import FOREVER, NEVER
from engine.dataflow.delta import Delta
from engine.dataflow.node import Node
from engine.dataflow.operators.set_operations import Compared, CopiesNode, UnionNode
from engine.dataflow.operators.set_rows import LeftRows, LeftRowsNode
from engine.dataflow.operators.two_inputs import TwoInputs
from engine.dataflow.turn import Turn
from engine.kernels import set_copies as kernels
from engine.model.types import DOUBLE, STRING, Type
from tests.changes.given import Given, ends_differ, given_rows, ways
from tests.dataflow.given_node import GivenNode, transitions
from tests.operators.relations import exactly, rows_of

TYPES = (DOUBLE, STRING)
VALUES = st.tuples(st.sampled_from([None, 0.0, -0.0, float("nan"), 1.5]), st.sampled_from(["a", "b", None]))
FORMS = {
    kernels.INTERSECT: lambda left, right: min(left, right, 1),
    kernels.INTERSECT_ALL: min,
    kernels.EXCEPT: lambda left, right: int(left > 0 and not right),
    kernels.EXCEPT_ALL: lambda left, right: max(left - right, 0),
}
BELOW = 2
"""Columns of each input."""


@st.composite
def sides(draw: st.DrawFn) -> tuple[Given, Given]:
    """Rows of two inputs that come and go in any order, or leave in the order in which they came."""
    interval = draw(ways())

    def side() -> Given:
        rows = draw(st.lists(VALUES, max_size=16))
        lives = st.lists(ends_differ, min_size=len(rows), max_size=len(rows))
        if draw(st.booleans()):
            length = draw(st.integers(1, 5))
            lives = lives.map(
                lambda found: sorted((max(0, begin), max(0, begin) + length) for begin, _ in found)
            )
        temporal = draw(lives)
        if interval.since == NEVER:
            temporal = [(max(begin, 0), max(end, 1)) for begin, end in temporal]
        return given_rows(TYPES, rows, temporal, interval)

    return side(), side()


def node_of(data: Any, below: Given) -> GivenNode:
    """Rows each of some columns, with ids in their order."""
    n = len(below.temporal)
    owners = [sorted(data.draw(st.sets(st.integers(0, BELOW - 1)))) for _ in range(n)]
    return GivenNode(below.temporal, owners, range(n))


def key_of(row: Any, places: Any) -> Any:
    return tuple(
        exactly(row[place] + 0.0 if isinstance(row[place], float) else row[place]) for place in places
    )


class Twin:
    """What a set operation gives, by its definition."""

    def __init__(self, left: GivenNode, right: GivenNode) -> None:
        self.left, self.right = left, right

    def there(self, node: GivenNode, column: int, instant: int) -> list[tuple[int, Any]]:
        """(id, row) of those of a column at an instant."""
        temporal, of_column = node.whole.temporal, node.whole.rows()[node.whole.owners == column]
        rows = rows_of(temporal.relation)
        return [
            (place, rows[place])
            for place in temporal.at(instant).tolist()
            if place in set(of_column.tolist())
        ]

    def union(self, one: int, other: int, instant: int) -> list[Any]:
        found = [row for _, row in self.there(self.left, one, instant)]
        return found + [row for _, row in self.there(self.right, other, instant)]

    def compared(self, compared: Compared, one: int, other: int, instant: int) -> list[tuple[int, Any]]:
        """The left rows in the order of their ids, as each form has it."""
        of_left, of_right = [left for left, _ in compared.on], [right for _, right in compared.on]
        right = Counter(key_of(row, of_right) for _, row in self.there(self.right, other, instant))
        by_value = defaultdict(list)
        for place, row in self.there(self.left, one, instant):
            by_value[key_of(row, of_left)].append((place, row))
        found = list[tuple[int, Any]]()
        for value, rows in by_value.items():
            size = FORMS[compared.form](len(rows), right[value])
            found += rows[len(rows) - size :] if compared.form == kernels.EXCEPT_ALL else rows[:size]
        return sorted(found, key=lambda each: each[0])


def plain(rows: list[Any]) -> list[Any]:
    """With 0.0 for -0.0."""
    return [tuple(value + 0.0 if isinstance(value, float) else value for value in row) for row in rows]


def in_bag(rows: Any) -> list[Any]:
    return sorted(exactly(list(rows)), key=repr)


def of_column(delta: Delta, column: int) -> tuple[TemporalRelation, np.ndarray]:
    rows = delta.rows()[delta.owners == column]
    return delta.temporal.take(rows), delta.ids_of()[rows]


class Followed:
    """An answer by what is told of it: rows by their ids."""

    def __init__(self) -> None:
        self.rows: dict[tuple[int, ...], Any] = {}

    def take(self, temporal: TemporalRelation, ids: np.ndarray, instant: int, telling: bool) -> None:
        rows = rows_of(temporal.relation)
        left = list[Any]()
        for place in np.flatnonzero(temporal.valid_to == instant).tolist():
            gone = self.rows.pop(tuple(ids[place].tolist()))
            assert exactly(gone) == exactly(rows[place])
            left.append(exactly(gone))
        for place in np.flatnonzero(temporal.valid_from == instant).tolist():
            assert self.rows.setdefault(tuple(ids[place].tolist()), rows[place]) is rows[place]
            assert not telling or exactly(rows[place]) not in left


def check(node: Any, left: GivenNode, right: GivenNode, below: Given, data: Any, expected: Any) -> None:
    """Columns come and go between transitions, which are cut anywhere."""
    first = max(0, below.interval.since)
    cuts = sorted(data.draw(st.sets(st.integers(first, below.interval.until), max_size=4)))
    pairs = [(one, other) for one in range(BELOW) for other in range(BELOW)]
    wanted: dict[tuple[int, int], int] = {}
    for context, interval in transitions(below.interval, cuts):
        for pair in pairs:
            if data.draw(st.booleans()):
                if pair in wanted:
                    node.leave(wanted.pop(pair))
                else:
                    wanted[pair] = node.column(*pair)
                    node.want(wanted[pair])
        if data.draw(st.booleans()):
            node.forget()
        for each in (left, right, node):
            each.begin(context)
        known = {pair: Followed() for pair in wanted}
        for pair, column in wanted.items():
            known[pair].rows = standing(node, context, column)
            assert in_bag(known[pair].rows.values()) == in_bag(expected(*pair, interval.since))
        turns = sorted(data.draw(st.sets(st.integers(max(0, interval.since), interval.until), max_size=2)))
        for _, part in transitions(interval, turns):
            delta = node.delta(Turn(context, part))
            delta.temporal._check()
            assert set(delta.owners.tolist()) <= set(wanted.values())
            for pair, column in wanted.items():
                told = of_column(delta, column)
                for instant in range(max(0, part.since + 1), part.until + 1):
                    known[pair].take(*told, instant, node.telling is not None)
                    assert in_bag(known[pair].rows.values()) == in_bag(expected(*pair, instant))
            node._check()
        for pair, column in wanted.items():
            there = standing(node, context, column)
            if not isinstance(node, UnionNode):  # which asks its inputs, as they were at the beginning
                assert {each: exactly(row) for each, row in there.items()} == {
                    each: exactly(row) for each, row in known[pair].rows.items()
                }
            if node.ordered and not isinstance(node, UnionNode):
                rows = [row for _, row in sorted(known[pair].rows.items())]
                assert exactly(rows) == exactly(expected(*pair, interval.until))
        for each in (left, right, node):
            each.rest()


def standing(node: Node, context: Any, column: int) -> dict[tuple[int, ...], Any]:
    found: dict[tuple[int, ...], Any] = {}
    for delta in node.standing(context, np.array([column], np.int32)):
        temporal, ids = of_column(delta, column)
        for each, row in zip(ids.tolist(), rows_of(temporal.relation), strict=True):
            assert tuple(each) not in found
            found[tuple(each)] = row
    return found


def compared_of(form: int, on: tuple[tuple[int, int], ...]) -> Compared:
    types: list[Type] = [TYPES[right] for _, right in on]
    return Compared(form, on, tuple(types))


WHOLE = ((0, 0), (1, 1))


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

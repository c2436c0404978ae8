"""Set operations over given rows by their definition, and what is told of them, instant by instant."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np
from hypothesis import strategies as st

from engine.changes.temporal_relation import Interval, TemporalRelation
from engine.changes.transition import FOREVER, NEVER
from engine.dataflow.delta import Delta
from engine.dataflow.node import Node
from engine.dataflow.operators.set_operations import Compared, UnionNode
from engine.dataflow.turn import Turn
from engine.kernels import set_copies as kernels
from engine.model.types import DOUBLE, STRING, Type
from tests.changes.given import Given, ends_differ, given_rows, ways
from tests.dataflow.given_node import GivenNode, KnownExitGivenNode, transitions
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
    """An answer by what is told of it: rows and their exits by their ids. exits_known: exits are not told
    again.
    """

    def __init__(self, *, exits_known: bool) -> None:
        self.rows: dict[tuple[int, ...], Any] = {}
        self.exits: dict[tuple[int, ...], int] = {}
        self._exits_known = exits_known

    def take(self, temporal: TemporalRelation, ids: np.ndarray, part: Interval, instant: int) -> list[Any]:
        """What happens at an instant; the rows that leave."""
        rows, left = rows_of(temporal.relation), list[Any]()
        if self._exits_known:
            for each in [each for each, exit_at in self.exits.items() if exit_at == instant]:
                left.append(exactly(self.rows.pop(each)))
                del self.exits[each]
        leaving = temporal.valid_to == instant
        if self._exits_known:
            leaving &= temporal.valid_from <= part.since
        for place in np.flatnonzero(leaving).tolist():
            name = tuple(ids[place].tolist())
            gone, exit_at = self.rows.pop(name), self.exits.pop(name)
            assert exactly(gone) == exactly(rows[place])
            assert not self._exits_known or exit_at > instant
            left.append(exactly(gone))
        for place in np.flatnonzero(temporal.valid_from == instant).tolist():
            name = tuple(ids[place].tolist())
            assert self.rows.setdefault(name, rows[place]) is rows[place]
            self.exits[name] = int(temporal.valid_to[place])
        return left


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
        known = {pair: Followed(exits_known=node.exits_known) for pair in wanted}
        for pair, column in wanted.items():
            known[pair].rows, known[pair].exits = standing(node, context, column)
            assert in_bag(known[pair].rows.values()) == in_bag(expected(*pair, interval.since))
        turns = sorted(data.draw(st.sets(st.integers(max(0, interval.since), interval.until), max_size=2)))
        for _, part in transitions(interval, turns):
            delta = node.delta(Turn(context, part)).apart()
            delta.temporal._check()
            assert set(delta.owners.tolist()) <= set(wanted.values())
            for pair, column in wanted.items():
                told = of_column(delta, column)
                for instant in range(max(0, part.since + 1), part.until + 1):
                    left_rows = known[pair].take(*told, part, instant)
                    came = told[0].valid_from == instant
                    entered = exactly(rows_of(told[0].relation.take(np.flatnonzero(came))))
                    assert node.telling is None or not set(entered).intersection(left_rows)
                    assert in_bag(known[pair].rows.values()) == in_bag(expected(*pair, instant))
            node._check()
        for pair, column in wanted.items():
            there, exits = standing(node, context, column)
            if not isinstance(node, UnionNode):  # which asks its inputs, as they were at the beginning
                assert {each: exactly(row) for each, row in there.items()} == {
                    each: exactly(row) for each, row in known[pair].rows.items()
                }
                assert not node.exits_known or exits == known[pair].exits
            if node.ordered and not isinstance(node, UnionNode):
                rows = [row for _, row in sorted(known[pair].rows.items())]
                assert exactly(rows) == exactly(expected(*pair, interval.until))
        for each in (left, right, node):
            each.rest()


def standing(node: Node, context: Any, column: int) -> tuple[dict[Any, Any], dict[Any, int]]:
    """The rows of a column that stand, and their exits, by their ids."""
    found: dict[Any, Any] = {}
    exits: dict[Any, int] = {}
    for delta in node.standing(context, np.array([column], np.int32)):
        temporal, ids = of_column(delta, column)
        for each, row, exit_at in zip(
            ids.tolist(), rows_of(temporal.relation), temporal.valid_to.tolist(), strict=True
        ):
            assert tuple(each) not in found
            found[tuple(each)], exits[tuple(each)] = row, exit_at
    return found, exits


def compared_of(form: int, on: tuple[tuple[int, int], ...]) -> Compared:
    types: list[Type] = [TYPES[right] for _, right in on]
    return Compared(form, on, tuple(types))


WHOLE = ((0, 0), (1, 1))


def known_exits_of(data: Any, below: Given) -> KnownExitGivenNode:
    """A node with the rows of :func:`node_of`, some of which leave earlier than was told."""
    node = node_of(data, below)
    exits = node.whole.temporal.valid_to
    later = data.draw(st.lists(st.integers(0, 3), min_size=len(exits), max_size=len(exits)))
    is_early = data.draw(st.booleans())
    longer = np.array(later, np.int64) if is_early else np.zeros(len(exits), np.int64)
    planned = np.where(exits == FOREVER, FOREVER, np.minimum(exits, 1 << 40) + longer)
    return KnownExitGivenNode(node, planned)

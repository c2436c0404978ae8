"""EXCEPT ALL of many queries over the same rows, with long chains: at the end of each turn its definition."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import pytest

from engine.changes.temporal_relation import Interval
from engine.changes.transition import NEVER
from engine.dataflow.operators.known_exit_except import KnownExitExceptNode
from engine.dataflow.operators.set_rows import LeftRows
from engine.dataflow.policy import KeptEdge, Policy
from engine.dataflow.turn import Turn
from engine.kernels import set_copies
from engine.kernels.word_chains import LONG
from tests.changes.given import given_rows
from tests.dataflow.given_node import GivenNode, KnownExitGivenNode, transitions
from tests.dataflow.set_twin import TYPES, WHOLE, compared_of, key_of
from tests.operators.relations import rows_of

UNTIL = 80
SPAN = 60
VALUES = ((None, "a"), (float("nan"), "a"), (-0.0, "b"), (0.0, "b"), (1.5, None), (1.5, "a"))
ON = ((0, 0),)


@dataclass(frozen=True)
class Case:
    """rows: of each input. values: of so many different ones. columns: queries. share: of the rows that each
    has. late: of rows that leave before they were told to. known: exits of the right input are known.
    """

    rows: int
    values: int
    columns: int
    share: float
    late: float = 0.2
    known: bool = True


def side(case: Case, rng: np.random.Generator, *, known: bool) -> GivenNode:
    """Rows that enter in the order of their ids."""
    begins = np.sort(rng.integers(0, UNTIL, case.rows))
    ends = begins + rng.integers(1, SPAN, case.rows)
    values = [VALUES[place] for place in rng.integers(0, case.values, case.rows)]
    lives = list(zip(begins.tolist(), ends.tolist(), strict=True))
    given = given_rows(TYPES, values, lives, Interval(NEVER, UNTIL))
    owners = [np.flatnonzero(rng.random(case.columns) < case.share).tolist() for _ in range(case.rows)]
    node = GivenNode(given.temporal, owners, range(case.rows))
    if not known:
        return node
    later = np.where(rng.random(case.rows) < case.late, rng.integers(1, 9, case.rows), 0)
    found = KnownExitGivenNode(node, given.temporal.valid_to + later)
    found.ordered = True
    return found


class Twin:
    """What the operator gives, by its definition."""

    def __init__(self, left: GivenNode, right: GivenNode, on: tuple[tuple[int, int], ...]) -> None:
        self._sides = []
        for place, node in enumerate((left, right)):
            rows = rows_of(node.whole.temporal.relation)
            keys = [key_of(row, [pair[place] for pair in on]) for row in rows]
            self._sides.append((node.whole, keys))

    def there(self, column: int, instant: int) -> list[dict[object, list[int]]]:
        """Of each input the rows of a column by value, in their order."""
        found = []
        for whole, keys in self._sides:
            by_value = defaultdict(list)
            there = set(whole.temporal.at(instant).tolist())
            for row in whole.rows()[whole.owners == column].tolist():
                if row in there:
                    by_value[keys[row]].append(row)
            found.append(by_value)
        return found

    def youngest(self, column: int, instant: int) -> set[int]:
        """The rows of the answer of a column."""
        left, right = self.there(column, instant)
        return {row for key, rows in left.items() for row in rows[len(right[key]) :]}

    def counts(self, column: int, instant: int) -> dict[object, int]:
        """How many rows of each value the answer has."""
        left, right = self.there(column, instant)
        counts = {key: len(rows) - len(right[key]) for key, rows in left.items()}
        return {key: count for key, count in counts.items() if count > 0}

    def counted(self, rows: set[int]) -> dict[object, int]:
        """Left rows by value."""
        found: dict[object, int] = defaultdict(int)
        for row in rows:
            found[self._sides[0][1][row]] += 1
        return dict(found)


class Told:
    """Answers by what is told of them: by row and column when it is to leave."""

    def __init__(self, node: KnownExitExceptNode) -> None:
        self._node = node
        self.exits: dict[tuple[int, int], int] = {}

    def take(self, turn: Turn, wanted: set[int]) -> None:
        """A turn passes."""
        delta, known, interval = self._node.delta(turn).apart(), self._node.exits_known, turn.interval
        delta.temporal._check()
        assert set(delta.owners.tolist()) <= wanted
        ids = list(map(tuple, delta.ids_of().tolist()))
        begins, ends = delta.temporal.valid_from.tolist(), delta.temporal.valid_to.tolist()
        events = [
            (at, 1, each, end) for at, each, end in zip(begins, ids, ends, strict=True) if at > interval.since
        ]
        for begin, each, end in zip(begins, ids, ends, strict=True):
            if end <= interval.until and (begin <= interval.since or not known):
                events.append((end, 0, each, end))
        for at, comes, each, end in sorted(events):
            if known:
                self.expire(at - comes)
            if comes:
                assert self.exits.setdefault(each, end) is end
            else:
                assert not known or self.exits[each] > at
                del self.exits[each]
        if known:
            self.expire(interval.until)

    def expire(self, until: int) -> None:
        self.exits = {each: end for each, end in self.exits.items() if end > until}


CASES = (
    Case(40, 6, 3, 0.9, known=False),
    Case(1_400, 2, 130, 0.1),
    Case(700, 1, 70, 0.7, late=0.0),
    Case(300, 5, 200, 0.02),
    Case(800, 1, 66, 0.3, known=False),
)


@pytest.mark.parametrize("on", [ON, WHOLE])
@pytest.mark.parametrize("tells", [False, True])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_many_queries_over_the_same_rows(case: Case, tells: bool, on: tuple[tuple[int, int], ...]) -> None:
    rng = np.random.default_rng(case.rows + case.columns)
    left, right = side(case, rng, known=True), side(case, rng, known=case.known)
    twin = Twin(left, right, on)
    edges = [KeptEdge(Policy("upa", partitions=3), 2 * SPAN, False, True) for _ in range(2)]
    shape = LeftRows(compared_of(set_copies.EXCEPT_ALL, on), on == WHOLE, None)
    node = KnownExitExceptNode(left, right, shape, (edges[0], edges[1] if case.known else None), tells=tells)
    wanted: dict[int, int] = {}
    longest, told = 0, Told(node)
    cuts = sorted(set(rng.integers(0, UNTIL, 7).tolist()))
    for context, interval in transitions(Interval(NEVER, UNTIL), cuts):
        for column in range(case.columns):
            if rng.random() < (0.8 if interval.since == NEVER else 0.15):
                if column in wanted:
                    node.leave(wanted.pop(column))
                else:
                    wanted[column] = node.column(column, column)
                    node.want(wanted[column])
        for each in (left, right, node):
            each.begin(context)
        columns = np.sort(np.array(list(wanted.values()), np.int32))
        told.exits = {}
        for delta in node.standing(context, columns):
            told.exits |= dict(
                zip(map(tuple, delta.ids_of().tolist()), delta.temporal.valid_to.tolist(), strict=True)
            )
        ends = sorted(set(rng.integers(max(0, interval.since), interval.until + 1, 4).tolist()))
        for _, part in transitions(interval, ends):
            told.take(Turn(context, part), set(wanted.values()))
            node._check()
            longest = max(longest, int(node._state._cells.lengths.max()))
            for column, number in list(wanted.items())[:: 1 + case.columns // 20]:
                rows = {row for row, of in told.exits if of == number}
                if on == WHOLE:  # nobody sees which rows of a value they are
                    assert twin.counted(rows) == twin.counts(column, part.until)
                else:
                    assert rows == twin.youngest(column, part.until)
        for each in (left, right, node):
            each.rest()
    assert longest > LONG or case.rows / case.values < 3 * LONG
    for number in wanted.values():
        node.leave(number)
    node._bury()
    node._check()
    assert not node.rows
    assert not len(node._state.left)

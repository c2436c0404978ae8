"""Where the rules of Golab and Oezsu (2005) are silent or wrong: a counterexample of each.

What the paper says is written down here as it says it, and held against the definition of the answer, which
the evaluator of answers knows (:mod:`engine.operators`). The others, of rewrites, are in
:mod:`tests.dataflow.rewrites.illegal_test`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pytest

from engine.algebra.set_operation.stage import SetOperation
from engine.dataflow.policy import Policy
from engine.language.query import Query
from engine.language.update_patterns import Pattern, update_patterns
from tests.changes.ways import bound
from tests.dataflow.cost.known import cost, statistics, term
from tests.dataflow.rewrites.answers import Rows, answer, of_key, s
from tests.dataflow.rewrites.small_plans import base, closed, then


def test_a_union_of_windows_of_unequal_spans_is_not_first_in_first_out() -> None:
    """Rule 2 gives WKS where both inputs are WKS."""
    short, long = (f"SELECT k, v FROM s [RANGE {span} MILLISECONDS]" for span in (2, 6))
    query = closed(then(base(long), SetOperation("union", base(short))))
    rows: Rows = {"s": [s(1, 1, 0.5), s(2, 2, 0.5)]}
    held = [answer(query, rows, at_ms) for at_ms in range(10)]
    older, younger = "(1, 0.5)", "(2, 0.5)"
    assert held[3] == Counter({older: 2, younger: 2})
    # a younger row left before an older one
    assert held[5] == Counter({older: 1, younger: 1})
    assert update_patterns(query)[-1] is Pattern.WK
    alike = then(base(long), SetOperation("union", base(long)))
    assert update_patterns(alike)[-1] is Pattern.WKS


@dataclass
class PaperNegation:
    """Section 2.1, word by word. strict: whether a right row that expires lets a left one in where v1 > v2,
    instead of v1 >= v2. mends: whether a left row that expires outside the answer takes the oldest with it.
    """

    strict: bool = False
    mends: bool = False
    left: list[int] = field(default_factory=list)
    right: int = 0
    answer: list[int] = field(default_factory=list)

    def left_comes(self, row: int) -> None:
        self.left.append(row)
        if len(self.left) > self.right:
            self.answer.append(row)

    def right_comes(self) -> None:
        self.right += 1
        if self.right <= len(self.left):
            self.answer.remove(min(self.answer))

    def left_goes(self, row: int) -> None:
        if row in self.answer:
            self.answer.remove(row)
        elif self.mends and len(self.left) > self.right:
            self.answer.remove(min(self.answer))
        self.left.remove(row)

    def right_goes(self) -> None:
        self.right -= 1
        more = len(self.left) > self.right if self.strict else len(self.left) >= self.right
        if more:
            self.answer.append(max(row for row in self.left if row not in self.answer))

    @property
    def wanted(self) -> int:
        """Equation 1."""
        return max(len(self.left) - self.right, 0)


def test_a_left_row_that_expires_outside_the_answer_takes_one_with_it() -> None:
    """The paper lacks the case, and is left with a row too many."""
    for mends, rows in ((False, [2]), (True, [])):
        paper = PaperNegation(strict=True, mends=mends)
        paper.left_comes(1)
        paper.left_comes(2)
        paper.right_comes()
        assert paper.answer == [2]
        paper.left_goes(1)
        assert paper.answer == rows
        assert paper.wanted == 0
    query = negation("[RANGE 4 MILLISECONDS]", "[RANGE 9 MILLISECONDS]")
    rows_in: Rows = {"s": [s(1, 1, 0.5), s(3, 1, 1.5)], "u": [of_key(4, 1, 0)]}
    assert [answer(query, rows_in, at_ms).total() for at_ms in (3, 4, 5, 6)] == [2, 1, 1, 0]


def test_a_right_row_that_expires_lets_a_left_one_in_only_where_there_are_more() -> None:
    """The paper has v1 >= v2."""
    for strict, rows in ((False, [1]), (True, [])):
        paper = PaperNegation(strict=strict)
        paper.right_comes()
        paper.right_comes()
        paper.left_comes(1)
        paper.right_goes()
        assert (paper.answer, paper.wanted) == (rows, 0)
    query = negation("[RANGE 9 MILLISECONDS]", "[RANGE 2 MILLISECONDS]")
    rows_in: Rows = {"s": [s(3, 1, 0.5)], "u": [of_key(1, 1, 0), of_key(2, 1, 0)]}
    assert [answer(query, rows_in, at_ms).total() for at_ms in (3, 4, 5)] == [0, 0, 1]


def negation(left: str, right: str) -> Query:
    """EXCEPT ALL ON (k) of two windows."""
    stage = SetOperation("except", base(f"SELECT k, n FROM u {right}"), on=((0, 0),))
    return closed(then(base(f"SELECT k, v FROM s {left}"), stage))


@pytest.mark.parametrize(("latest", "lost"), [(False, [7, 8]), (True, [])])
def test_the_youngest_duplicate_may_leave_first(latest: bool, lost: list[int]) -> None:
    """delta* keeps the youngest duplicate. Over rows that leave in another order than they came, as those of
    a join do, the value is lost while a duplicate lives; the one that leaves last keeps it.
    """
    lives = [(0, 5), (1, 9), (2, 7)]  # of one value: from, to
    output, kept = lives[0], lives[0]
    missed = []
    for now in range(9):
        for row in lives[1:]:
            if row[0] == now:
                kept = max(kept, row, key=lambda each: each[1]) if latest else row
        if output[1] <= now:
            output = kept
        given = output[1] > now
        if given != any(start <= now < stop for start, stop in lives):
            missed.append(now)
    assert missed == lost


def test_a_row_of_a_join_probes_the_other_side() -> None:
    """The paper prints l1 N1 + l2 N2; counted by nested loops over lists."""
    rates, spans = (4, 1), (10, 5)
    held: tuple[list[int], list[int]] = ([], [])
    read = steps = 0
    for now in range(200):
        for side in (0, 1):
            held[side][:] = [each for each in held[side] if each > now - spans[side]]
        for side in (0, 1):
            for _ in range(rates[side]):
                read += len(held[1 - side]) if now >= 100 else 0
            held[side].extend([now] * rates[side])
        steps += now >= 100
    rows = [rate * span for rate, span in zip(rates, spans, strict=True)]
    crossed, printed = rates[0] * rows[1] + rates[1] * rows[0], rates[0] * rows[0] + rates[1] * rows[1]
    assert abs(read / steps - crossed) <= 0.1 * crossed
    assert printed > 2.5 * crossed
    text = "SELECT s.k, n FROM s [RANGE 9 MILLISECONDS] JOIN u [RANGE 4 MILLISECONDS] ON s.k = u.k"
    known = statistics({"s": 4.0, "u": 1.0}, {"s": 40.0, "u": 5.0})
    assert term(cost(text, Policy("upa"), known), "probe") == crossed


def test_a_group_goes_when_its_next_row_comes_at_an_instant_that_is_not_known() -> None:
    """Rule 4 gives WK, whose exits are known beforehand; but equal answers may go on otherwise."""
    query = bound("SELECT k, COUNT(*) AS c FROM s [RANGE 9 MILLISECONDS] GROUP BY k")
    alone: Rows = {"s": [s(1, 1, 0.5)]}
    followed: Rows = {"s": [s(1, 1, 0.5), s(3, 1, 0.5)]}
    assert answer(query, alone, 2) == answer(query, followed, 2) == Counter({"(1, 1)": 1})
    assert answer(query, alone, 3) != answer(query, followed, 3)


def test_unions_and_joins_of_what_never_goes_never_go() -> None:
    """Rules 2 and 3 have no word for monotonic inputs."""
    for text in ("SELECT k FROM s UNION ALL SELECT k FROM u", "SELECT s.k FROM s JOIN u ON s.k = u.k"):
        assert update_patterns(bound(text))[-1] is Pattern.MON

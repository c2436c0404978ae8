"""What no rule does, each with rows for which it would give a wrong answer."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from engine.algebra.aggregate.stage import Aggregate, AggregateCall
from engine.algebra.distinct.stage import Distinct
from engine.algebra.join.stage import Join
from engine.algebra.project.stage import Output, Project
from engine.algebra.set_operation.stage import SetOperation
from engine.dataflow.rewrites import alternatives
from engine.dataflow.rewrites.rule import moved
from engine.language.query import Query
from engine.model.expressions import Column
from engine.model.types import BIGINT
from tests.changes.ways import STREAMS, bound
from tests.dataflow.rewrites.answers import Rows, answer, of_key, s
from tests.dataflow.rewrites.small_plans import OPERATORS, K, base, closed, then

A = "SELECT k, v FROM s [RANGE 9 MILLISECONDS]"
B = "SELECT k, v FROM s [RANGE 9 MILLISECONDS] WHERE w = 'b'"
C = "SELECT k, n FROM u [RANGE 9 MILLISECONDS]"


def versions() -> tuple[Query, Join]:
    """A scan of s, and its join with the versions of m."""
    query = bound("SELECT s.k, p FROM s [RANGE 9 MILLISECONDS] JOIN m ON s.k = m.k")
    (as_of,) = [stage for stage in query.stages if isinstance(stage, Join)]
    return replace(query, stages=(), sql="", uses=()), as_of


def rules_give(query: Query, other: Query) -> bool:
    """Whether some rules make the one of the other."""
    return any(found == other for found, _ in alternatives(query, STREAMS))


def difference(left: Query, right: str = C) -> Query:
    """Left rows but for those that a right row of the same k takes away, the oldest first."""
    return then(left, SetOperation("except", base(right), on=((0, 0),)))


def join(left: Query, right: str, *, on: Column = K) -> Query:
    inner = base(right)
    return then(left, Join(inner, "inner", ((on, replace(on, index=0)),)))


def wrong(query: Query, other: Query, rows: Rows) -> tuple[int, int]:
    """How many rows a query gives, and how many what it must not become. They have other answers."""
    assert not rules_give(query, other)
    right, given = answer(query, rows), answer(other, rows)
    assert right != given
    return right.total(), given.total()


def test_a_bag_difference_counts_left_rows_not_their_pairs_with_two_partners() -> None:
    """Two left rows of a value, one right row, two partners: the younger left row has two pairs; of all four
    the right row takes one.
    """
    text = "SELECT k, w FROM s [RANGE 9 MILLISECONDS] WHERE w = 'c'"
    rows = {"s": [s(1, 1, 0.5), s(2, 1, 1.5), s(3, 1, 0, "c"), s(4, 1, 1, "c")], "u": [of_key(5, 1, 0)]}
    left = base("SELECT k, v FROM s [RANGE 9 MILLISECONDS] WHERE w = 'a'")
    assert wrong(closed(join(difference(left), text)), closed(difference(join(left, text))), rows) == (2, 3)


def test_a_bag_difference_counts_left_rows_that_have_no_partner() -> None:
    """One partner at most, but by another column than is compared: the younger of two rows of a value stays
    and has no partner; of pairs the older has the only one, which the right row takes away.
    """
    text = "SELECT k, p FROM h"
    keyed = Column(1, "n", BIGINT)
    left = base(C)
    right = "SELECT k, n FROM u [RANGE 9 MILLISECONDS] WHERE n = 7"
    rows = {"u": [of_key(1, 1, 7), of_key(2, 1, 5), of_key(3, 1, 3)], "h": [of_key(0, 5, 0)]}
    query = then(left, SetOperation("except", base(right), on=((0, 0),)))
    query = then(query, Join(base(text), "inner", ((keyed, K),)))
    other = then(left, Join(base(text), "inner", ((keyed, K),)))
    other = then(other, SetOperation("except", base(right), on=((0, 0),)))
    assert wrong(_project(query), _project(other), rows) == (1, 0)


def _project(query: Query) -> Query:
    return then(query, Project((Output("k", K), Output("n", Column(1, "n", BIGINT)))))


def test_a_bag_difference_stays_below_a_join_with_the_version_of_each_row() -> None:
    """Rows of a value have other versions, or none, by their instants."""
    left, as_of = versions()
    negation = SetOperation("except", base(C), on=((0, 0),))
    columns = Project((Output("k", K), Output("p", Column(5, "p", BIGINT))))
    query, other = then(left, negation, as_of, columns), then(left, as_of, negation, columns)
    rows = {"s": [s(1, 1, 0.5), s(4, 1, 1.5)], "m": [of_key(3, 1, 8)], "u": [of_key(5, 1, 0)]}
    assert wrong(query, other, rows) == (1, 0)


def test_the_set_form_of_a_difference_is_not_that_of_pairs() -> None:
    """EXCEPT gives a value once: over pairs it gives each pair once, of two partners two."""
    rows = {"s": [s(1, 1, 0.5), s(2, 1, 0.5)], "u": [of_key(3, 1, 0), of_key(4, 1, 1)]}
    negation = SetOperation("except", base(B), all=False)
    with_pairs = Join(base(C), "inner", ((K, K),))
    on_pairs = SetOperation("except", base(B), on=((0, 0), (1, 1)))
    query, other = then(base(A), negation, with_pairs), then(base(A), with_pairs, on_pairs)
    assert wrong(closed(query), closed(other), rows) == (2, 4)


def test_a_selection_on_a_column_that_is_not_compared_stays_above_a_bag_difference() -> None:
    """Two rows have one value. Above the difference the younger row stays, and satisfies the condition; below
    it, the condition leaves that row alone to be counted, and the right row takes it away.
    """
    rows = {"s": [s(1, 1, 1.5), s(2, 1, 0.5)], "u": [of_key(3, 1, 0)]}
    low = OPERATORS["select v"]
    assert wrong(closed(low(difference(base(A)))), closed(difference(low(base(A)))), rows) == (1, 0)


def test_distinct_does_not_cross_a_bag_difference() -> None:
    """Two equal left rows and one right row leave one; distinct ones none."""
    rows = {"s": [s(1, 1, 0.5), s(2, 1, 0.5), s(3, 1, 0.5, "b")]}
    left = "SELECT k, v FROM s [RANGE 9 MILLISECONDS] WHERE w = 'a'"
    right = then(base(B), Distinct())
    query = then(base(left), SetOperation("except", base(B)), Distinct())
    other = then(base(left), Distinct(), SetOperation("except", right))
    assert wrong(query, other, rows) == (1, 0)


def test_distinct_does_not_cross_a_join_with_the_version_of_each_row() -> None:
    """Rows that are equal in what is given, of two instants, have two versions of the table."""
    scan, as_of = versions()
    assert as_of.latest is not None
    ts = as_of.latest.outer
    columns = Project((Output("k", K), Output("p", Column(5, "p", BIGINT))))
    query = then(scan, as_of, columns, Distinct())
    once = Aggregate((Output("k", K),), (AggregateCall("ts", "FIRST", (ts,), ts.type),))
    latest = replace(as_of.latest, outer=Column(1, "ts", ts.type))
    condition = None if as_of.condition is None else moved(as_of.condition, {7: 5})
    above = Project((Output("k", K), Output("p", Column(3, "p", BIGINT))))
    other = then(scan, once, replace(as_of, latest=latest, condition=condition), above)
    rows = {"s": [s(2, 1, 0.5), s(5, 1, 0.5)], "m": [of_key(1, 1, 7), of_key(4, 1, 8)]}
    assert wrong(query, other, rows) == (2, 1)


def test_a_negative_tuple_does_not_find_the_version_that_its_row_was_joined_with() -> None:
    """Why no rule puts a join with the versions of a table above a negation. Who keeps no pairs and joins the
    negative tuple as it joined the row finds another version: a pair stays that should go, and one goes that
    never was there.
    """
    table, pairs = {1: 7}, Counter[tuple[int, int]]()
    pairs[1, table[1]] += 1  # a left row comes
    table[1] = 8  # no update touches what has come
    pairs[1, table[1]] -= 1  # the left row goes
    assert dict(pairs) == {(1, 7): 1, (1, 8): -1}
    scan, as_of = versions()
    columns = Project((Output("k", K), Output("p", Column(5, "p", BIGINT))))
    query = then(scan, SetOperation("except", base(C), on=((0, 0),)), as_of, columns)
    rows = {"s": [s(1, 1, 0.5)], "m": [of_key(0, 1, 7), of_key(3, 1, 8)], "u": [of_key(5, 1, 0)]}
    assert [answer(query, rows, at_ms) for at_ms in (4, 5)] == [Counter({"(1, 7)": 1}), Counter()]

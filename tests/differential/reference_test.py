"""The reference itself, by examples that can be followed with a pencil."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

from engine.algebra.aggregate.stage import Aggregate, AggregateCall
from engine.algebra.distinct.stage import Distinct
from engine.algebra.filter.stage import Filter
from engine.algebra.limit.stage import Limit
from engine.algebra.operators import Stage
from engine.algebra.project.stage import Output, Project
from engine.algebra.semi_join.stage import SemiJoin
from engine.algebra.sort.stage import Sort, SortKey
from engine.language.query import Query, Scan
from engine.model.expressions import Arithmetic, Column, Compare, Expression, Literal
from engine.model.source import Derived, Field, Schema, SourceName, Stream
from engine.model.step import CreateSource, DropSource, Position, Step
from engine.model.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, STRING, Type, decimal
from engine.reference import Reference
from engine.reference.aggregates import aggregate
from engine.reference.rows import Placed, Row, Source
from engine.reference.seen import Seen
from engine.reference.stages import answer
from engine.windows.clauses import UNBOUNDED, RowWindow
from tureen.errors import SourceConflict

K, X, D = Column(0, "k", STRING), Column(1, "x", INTEGER), Column(2, "d", DOUBLE)
SCHEMA = Schema((Field("k", STRING), Field("x", INTEGER), Field("d", DOUBLE)))
NAN = float("nan")


def source(*values: tuple[Any, ...]) -> Source:
    """A stream that retains all of these, a row a millisecond."""
    stream = Stream(SourceName("s"), SCHEMA, "s")
    return Source(
        stream, now=1_000, rows=[Row(n, 0, n, row) for n, row in enumerate(values)], retained_from=0
    )


def rows(*stages: Stage, of: Source, scan: Scan | None = None) -> list[tuple[Any, ...]]:
    query = Query("", scan or Scan(SourceName("s"), UNBOUNDED), stages)
    return answer(query, {"s": Seen(of, 1_000)})[0]


def call(
    function: str, argument: Expression | None, type_: Type, distinct: bool = False, filter_: Any = None
) -> AggregateCall:
    return AggregateCall("o", function, () if argument is None else (argument,), type_, distinct, filter_)


@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        ("SUM", (1e16, 1.0, 1.0, -1e16), 2.0),
        ("SUM", (0.1,) * 10, 1.0),
        ("SUM", (1e308, 1e308, -1e308), 1e308),
        ("SUM", (1e308, 1e308), math.inf),
        ("AVG", (1e308, 1e308), 1e308),
        ("VAR_POP", (1e16, 1e16 + 2), 1.0),
        ("STDDEV_SAMP", (0.1, 0.1, 0.1), 0.0),
    ],
)
def test_doubles_are_added_exactly_and_rounded_once(
    function: str, values: tuple[float, ...], expected: float
) -> None:
    placed = [Placed(n, ("k", 0, value)) for n, value in enumerate(values)]
    for rows_of_group in (placed, placed[::-1]):
        assert aggregate(call(function, D, DOUBLE), rows_of_group) == (expected, 0)


def test_a_sum_that_is_zero_is_positive() -> None:
    for values in ([-0.0], [-0.0, -0.0], [1.5, -1.5]):
        total, _ = aggregate(call("SUM", D, DOUBLE), [Placed(n, ("k", 0, v)) for n, v in enumerate(values)])
        assert math.copysign(1.0, total) == 1.0


@pytest.mark.parametrize(
    ("function", "type_", "expected"),
    [
        ("COUNT", BIGINT, 3),
        ("SUM", BIGINT, 2**32 - 3),
        ("AVG", DOUBLE, (2**32 - 3) / 3),
        ("MIN", INTEGER, -1),
        ("MAX", INTEGER, 2**31 - 1),
        ("FIRST", INTEGER, 2**31 - 1),
        ("LAST", INTEGER, -1),
        ("ARRAY_AGG", BIGINT, "[2147483647,null,2147483647,-1]"),
    ],
)
def test_aggregates_pass_null_over(function: str, type_: Type, expected: Any) -> None:
    placed = [Placed(n, ("k", value, 0.0)) for n, value in enumerate([2**31 - 1, None, 2**31 - 1, -1])]
    assert aggregate(call(function, X, type_), placed) == (expected, 0)


def test_a_total_that_does_not_fit_is_an_error_but_not_one_on_the_way_to_it() -> None:
    wide = Column(0, "b", BIGINT)
    placed = [Placed(n, (value,)) for n, value in enumerate([2**63 - 1, 1, -1])]
    assert aggregate(call("SUM", wide, BIGINT), placed) == (2**63 - 1, 0)
    assert aggregate(call("SUM", wide, BIGINT), placed[:2]) == (None, 1)
    assert aggregate(call("AVG", wide, DOUBLE), placed[:2]) == (float(2**62), 0)


def test_a_mean_of_decimals_is_rounded_once() -> None:
    price = Column(0, "p", decimal(5, 2))
    placed = [Placed(n, (Decimal(text),)) for n, text in enumerate(["0.10", "0.20", "0.03"])]
    assert aggregate(call("AVG", price, DOUBLE), placed) == (0.11, 0)
    assert aggregate(call("SUM", price, decimal(18, 2)), placed) == (Decimal("0.33"), 0)


def test_variance_wants_two_rows() -> None:
    placed = [Placed(n, ("k", value, 0.0)) for n, value in enumerate([2, 4, 4, 4, 5, 5, 7, 9])]
    assert aggregate(call("VAR_POP", X, DOUBLE), placed) == (4.0, 0)
    assert aggregate(call("STDDEV_POP", X, DOUBLE), placed) == (2.0, 0)
    assert aggregate(call("VAR_SAMP", X, DOUBLE), placed)[0] == pytest.approx(32 / 7)
    assert aggregate(call("VAR_SAMP", X, DOUBLE), placed[:1]) == (None, 0)
    assert aggregate(call("VAR_POP", X, DOUBLE), placed[:1]) == (0.0, 0)


def test_nan_and_zeros_and_null_are_one_group_each() -> None:
    stream = source(
        ("a", 1, NAN), ("a", 2, -0.0), ("a", 3, None), ("a", 4, NAN), ("a", 5, 0.0), ("a", 6, None)
    )
    grouped = Aggregate((Output("d", D),), (call("COUNT", None, BIGINT), call("MAX", X, INTEGER)))
    assert repr(rows(grouped, of=stream)) == "[(nan, 2, 4), (0.0, 2, 5), (None, 2, 6)]"
    assert repr(rows(Project((Output("d", D),)), Distinct(), of=stream)) == "[(nan,), (0.0,), (None,)]"


def test_one_group_even_of_no_rows() -> None:
    calls = (call("COUNT", None, BIGINT), call("SUM", X, BIGINT))
    assert rows(Aggregate((), calls), of=source()) == [(0, None)]
    assert rows(Aggregate((Output("k", K),), calls), of=source()) == []


def test_sort_is_stable_and_places_null_where_it_is_told() -> None:
    stream = source(("a", 2, 0.0), ("b", None, 0.0), ("c", 1, 0.0), ("d", 2, 0.0))
    keys = Project((Output("k", K), Output("x", X)))
    by_x = Column(1, "x", INTEGER)
    assert rows(keys, Sort((SortKey(by_x),)), of=stream) == [("c", 1), ("a", 2), ("d", 2), ("b", None)]
    descending = Sort((SortKey(by_x, descending=True, nulls_first=True),))
    assert rows(keys, descending, Limit(2, 1), of=stream) == [("a", 2), ("d", 2)]


@pytest.mark.parametrize(
    ("inner", "found", "missing"),
    [([1, 2], [1], [3]), ([1, None], [1], []), ([], [], [1, 3, None]), ([None], [], [])],
)
def test_in_and_not_in_a_subquery(inner: list[Any], found: list[Any], missing: list[Any]) -> None:
    """The rows of the outer query are 1, 3 and NULL; those of the inner one have another key."""
    stream = source(*[("o", x, 0.0) for x in (1, 3, None)], *[("i", x, 0.0) for x in inner])
    outer, within = (Compare("=", K, Literal(key, STRING)) for key in ("o", "i"))
    name = SourceName("s")
    query = Query("", Scan(name, UNBOUNDED, within), (Project((Output("x", X),)),))
    for negated, expected in [(False, found), (True, missing)]:
        join = SemiJoin((X,), query, negated, null_aware=True)
        kept = rows(join, Project((Output("x", X),)), of=stream, scan=Scan(name, UNBOUNDED, outer))
        assert [row[0] for row in kept] == expected


def test_the_last_rows_of_each_key_and_of_those_that_a_filter_passes() -> None:
    stream = source(("a", 1, 0.0), ("b", 2, 0.0), ("a", 3, 0.0), ("a", 4, 0.0))
    project = Project((Output("x", X),))
    by_key = Scan(SourceName("s"), RowWindow(1, keys=(K,)))
    assert rows(project, of=stream, scan=by_key) == [(2,), (4,)]
    odd = RowWindow(1, filter=Compare("<", X, Literal(4, INTEGER)))
    assert rows(project, of=stream, scan=Scan(SourceName("s"), odd)) == [(3,)]
    large = Filter(Compare(">", Column(0, "x", INTEGER), Literal(2, INTEGER)))
    assert rows(project, large, of=stream, scan=by_key) == [(4,)]


def test_an_argument_or_filter_that_errs_is_passed_over_and_counted() -> None:
    placed = [Placed(n, ("k", value, 0.0)) for n, value in enumerate([0, 1, 2])]
    inverse = Arithmetic("/", Literal(2, INTEGER), X, INTEGER)
    assert aggregate(call("SUM", inverse, BIGINT), placed) == (3, 1)
    positive = Compare(">", inverse, Literal(1, INTEGER))
    assert aggregate(call("COUNT", None, BIGINT, filter_=positive), placed) == (1, 1)
    apart = Compare(">", X, Literal(0, INTEGER))
    assert aggregate(call("SUM", inverse, BIGINT, filter_=apart), placed) == (3, 0)
    assert aggregate(call("BOOL_AND", Compare(">", X, Literal(0, INTEGER)), BOOLEAN), placed) == (False, 0)


def test_a_view_that_cannot_be_understood_reads_what_its_text_mentions() -> None:
    reference = Reference()
    for sequence, name in enumerate("stu", start=1):
        stream = Stream(SourceName(name), SCHEMA, name)
        reference.apply(Step(Position(1, sequence), 0, CreateSource(stream, "")))
    reference.derived["v"] = Derived(SourceName("v"), 'SELECT GONE(s.k) AS k FROM S JOIN "t" ON s.k = "t".k')
    for sequence, name in enumerate("stu", start=4):
        dropped = reference.apply(Step(Position(1, sequence), 0, DropSource(SourceName(name))))
        assert [type(refusal) for refusal in dropped.failed.values()] == [SourceConflict] * (name != "u")

"""Groups and every aggregate against the reference, to the bit where it is exact and near where it is not."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.algebra.aggregate.stage import Aggregate, AggregateCall
from engine.algebra.project.stage import Output
from engine.model import expressions as ex
from engine.model.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, STRING, Kind, Type
from engine.operators.aggregate import FUNCTIONS, aggregate
from engine.operators.aggregates import arrays, pairs
from engine.reference.aggregates import aggregate as plain
from engine.reference.rows import Placed
from engine.reference.values import identity, one_zero
from tests.operators.aggregate import SPREADS, call_of, column
from tests.operators.relations import PRICE, TYPES, exactly, relation, rows_of, tables

NUMERIC = [type_ for type_ in TYPES if type_.is_numeric]
FITTING: dict[str, list[Type]] = {
    "SUM": NUMERIC,
    "AVG": NUMERIC,
    **dict.fromkeys(SPREADS, NUMERIC),
    "BOOL_AND": [BOOLEAN],
    "BOOL_OR": [BOOLEAN],
    "COUNT": list(TYPES),
    "MIN": list(TYPES),
    "MAX": list(TYPES),
    "FIRST": list(TYPES),
    "LAST": list(TYPES),
    "ARRAY_AGG": list(TYPES),
    "APPROX_COUNT_DISTINCT": list(TYPES),
    "MEDIAN": NUMERIC,
    "PERCENTILE_CONT": NUMERIC,
    "PERCENTILE_DISC": list(TYPES),
    "MODE": list(TYPES),
    "STRING_AGG": [STRING],
    **{key: [BIGINT] for key in ("BIT_AND", "BIT_OR", "BIT_XOR")},
}
WITH_DISTINCT = ("COUNT", "SUM", "AVG", "MIN", "MAX", "MEDIAN", "PERCENTILE_DISC", "STRING_AGG", "BIT_XOR")
OF_TWO = {"ARG_MIN", "ARG_MAX", *pairs.FUNCTIONS}
"""Random statements compare these."""


def expected(stage: Aggregate, rows: list[Placed]) -> tuple[list[tuple[Any, ...]], int]:
    """Group by group, call by call."""
    groups: dict[Any, tuple[tuple[Any, ...], list[Placed]]] = {} if stage.keys else {(): ((), [])}
    for row in rows:
        key = tuple(row.values[key.expression.index] for key in stage.keys)  # type: ignore[union-attr]
        groups.setdefault(identity(key), (tuple(map(one_zero, key)), []))[1].append(row)
    made, errors = [], 0
    for key, members in groups.values():
        outcomes = [plain(call, members) for call in stage.calls]
        errors += sum(met for _, met in outcomes)
        made.append((*key, *(value for value, _ in outcomes)))
    return made, errors


def test_the_reference_has_all_but_the_quantile():
    assert set(FUNCTIONS) == {*FITTING, *OF_TWO, "APPROX_QUANTILE"}


@given(
    st.data(), st.sampled_from(sorted(FITTING)), st.lists(st.sampled_from(TYPES), max_size=2), st.booleans()
)
def test_every_aggregate_of_every_type(data, function, keys, narrowed):
    argument = data.draw(st.sampled_from(FITTING[function]))
    types = [argument, BOOLEAN, *keys]
    distinct = function in WITH_DISTINCT and data.draw(st.booleans())
    rows = data.draw(tables(types))
    stage = Aggregate(
        tuple(Output(f"k{place}", column(2 + place, type_)) for place, type_ in enumerate(keys)),
        (call_of(function, argument, distinct=distinct, filter=column(1, BOOLEAN) if narrowed else None),),
    )
    placed = [Placed(n, row) for n, row in enumerate(rows)]
    result, errors = aggregate(stage, relation(types, rows))
    outcome, met = expected(stage, placed)
    assert (exactly(rows_of(result)), errors) == (exactly(outcome), met)


@given(st.data(), st.sampled_from(["SUM", "AVG", *SPREADS]), st.booleans())
def test_sums_of_doubles_depend_on_no_order(data, function, grouped):
    rows = data.draw(tables([DOUBLE, INTEGER], 40))
    keys = (Output("k", column(1, INTEGER)),) if grouped else ()
    stage = Aggregate(keys, (call_of(function, DOUBLE),))
    result, _ = aggregate(stage, relation([DOUBLE, INTEGER], rows))
    assert exactly(rows_of(result)) == exactly(
        expected(stage, [Placed(n, row) for n, row in enumerate(rows)])[0]
    )
    mixed, _ = aggregate(stage, relation([DOUBLE, INTEGER], data.draw(st.permutations(rows))))
    assert sorted(map(repr, exactly(rows_of(mixed)))) == sorted(map(repr, exactly(rows_of(result))))


def test_rows_are_counted_without_an_argument():
    count = AggregateCall("n", "COUNT", (), BIGINT)
    stage = Aggregate((Output("k", column(0, STRING)),), (count,))
    result, _ = aggregate(stage, relation([STRING], [("b",), (None,), ("b",), (None,), ("a",)]))
    assert rows_of(result) == [("b", 2), (None, 2), ("a", 1)]
    alone, _ = aggregate(Aggregate((), (count,)), relation([STRING], []))
    assert rows_of(alone) == [(0,)]


def test_a_total_that_does_not_fit_is_an_error_once_a_group():
    rows = [(2**63 - 1, 1), (1, 1), (2**63 - 1, 2), (1, 2), (-1, 2), (-(2**63), 3), (-1, 3)]
    stage = Aggregate((Output("k", column(1, INTEGER)),), (call_of("SUM", BIGINT),))
    result, errors = aggregate(stage, relation([BIGINT, INTEGER], rows))
    assert (rows_of(result), errors) == ([(1, None), (2, 2**63 - 1), (3, None)], 2)


def test_arguments_behind_a_filter_are_not_computed_where_it_is_not_true():
    a, b = column(0, DOUBLE), column(1, DOUBLE)
    share = AggregateCall(
        "s",
        "SUM",
        (ex.Arithmetic("/", a, b, DOUBLE),),
        DOUBLE,
        filter=ex.Compare("<>", b, ex.Literal(0.0, DOUBLE)),
    )
    rows = relation([DOUBLE, DOUBLE], [(1.0, 0.0), (3.0, 2.0), (None, 1.0)])
    result, errors = aggregate(Aggregate((), (share,)), rows)
    assert (rows_of(result), errors) == ([(1.5,)], 0)
    unguarded = AggregateCall("s", "SUM", share.arguments, DOUBLE)
    result, errors = aggregate(Aggregate((), (unguarded,)), rows)
    assert (rows_of(result), errors) == ([(1.5,)], 1)


def test_an_array_has_a_longest(monkeypatch):
    monkeypatch.setattr(arrays, "ARRAY_ELEMENTS_MAX", 2)
    stage = Aggregate((Output("k", column(1, INTEGER)),), (call_of("ARRAY_AGG", STRING),))
    rows = [("a", 1), ("b", 2), ("c", 1), ("d", 1), (None, 2)]
    result, errors = aggregate(stage, relation([STRING, INTEGER], rows))
    assert (rows_of(result), errors) == ([(1, None), (2, '["b",null]')], 1)


@pytest.mark.parametrize("n", [1, 2, 1_000, 30_000])
def test_quantiles_are_near_the_rank(n):
    rows = [(float((place * 7_919) % n),) for place in range(n)]
    for share in (0.0, 0.01, 0.5, 0.9, 1.0):
        call = AggregateCall("q", "APPROX_QUANTILE", (column(0, DOUBLE), ex.Literal(share, DOUBLE)), DOUBLE)
        ((value,),) = rows_of(aggregate(Aggregate((), (call,)), relation([DOUBLE], rows))[0])
        assert abs(value - share * (n - 1)) <= max(0.5, 0.01 * n)


def test_quantiles_pass_over_what_is_not_finite():
    call = AggregateCall("q", "APPROX_QUANTILE", (column(0, DOUBLE), ex.Literal(0.5, DOUBLE)), DOUBLE)
    stage = Aggregate((Output("k", column(1, INTEGER)),), (call,))
    rows = [(math.nan, 1), (2.0, 2), (math.inf, 2), (None, 2), (-math.inf, 1)]
    assert rows_of(aggregate(stage, relation([DOUBLE, INTEGER], rows))[0]) == [(1, None), (2, 2.0)]


@pytest.mark.parametrize("type_", [BIGINT, DOUBLE, STRING, PRICE])
def test_distinct_counts_stay_near_for_many_values(type_):
    make: dict[Kind, Any] = {Kind.BIGINT: int, Kind.DOUBLE: float, Kind.STRING: str}
    rows = [(make[type_.kind](place) if type_.kind in make else _price(place),) for place in range(50_000)]
    call = call_of("APPROX_COUNT_DISTINCT", type_)
    ((estimate,),) = rows_of(aggregate(Aggregate((), (call,)), relation([type_], rows + rows[:1_000]))[0])
    assert abs(estimate - 50_000) < 0.03 * 50_000


def _price(place: int) -> Any:
    return Decimal(place).scaleb(-2)

"""Joins against a plain twin: every row of the one relation with every row of the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.algebra.join.stage import Join, Latest
from engine.algebra.project.stage import Output, Project
from engine.language.query import Query, Scan
from engine.model import expressions as ex
from engine.model.lazy_columns import LazyColumns
from engine.model.source import SourceName
from engine.model.types import BIGINT, DOUBLE, INTEGER, STRING, TIMESTAMP, Type, decimal
from engine.operators.join import join
from engine.operators.relation import Relation
from engine.reference.expressions import evaluate
from engine.reference.values import ERROR, order
from engine.windows.clauses import UNBOUNDED
from tests.operators.relations import PRICE, TYPES, exactly, relation, rows_of, tables
from tureen.errors import LimitExceeded

KINDS = ("inner", "left", "right", "full", "semi", "anti")
EXACT = decimal(9, 3)
PAYLOAD: tuple[Type, ...] = (INTEGER, BIGINT, DOUBLE, STRING, PRICE, EXACT, TIMESTAMP)
"""What both sides have behind their keys."""


def inner_query(types: Sequence[Type]) -> Query:
    outputs = tuple(Output(f"i{place}", ex.Column(place, "i", type_)) for place, type_ in enumerate(types))
    return Query("", Scan(SourceName("t"), UNBOUNDED), (Project(outputs),))


# --- the twin -------------------------------------------------------------------------------------


def twin(stage: Join, width: int, rows: list[Any], others: list[Any]) -> tuple[list[Any], int]:
    """The joined rows, and how many errors were met."""
    errors, partners = 0, []
    ours, theirs = [key for key, _ in stage.keys], [key for _, key in stage.keys]
    if stage.latest is not None:
        ours, theirs = [*ours, stage.latest.outer], [*theirs, stage.latest.inner]
    here = [[evaluate(key, row) for key in ours] for row in rows]
    there = [[evaluate(key, row) for key in theirs] for row in others]
    errors += sum(value is ERROR for keys in here + there for value in keys)
    equal = len(stage.keys)
    for row, keys in zip(rows, here, strict=True):
        placed = []
        for place, candidate in enumerate(there):
            values = list(zip(keys, candidate, [key.type for key in ours], strict=True))
            if any(a is None or b is None or a is ERROR or b is ERROR for a, b, _ in values):
                continue
            orders = [order(b, type_, a, type_) for a, b, type_ in values]
            if not any(orders[:equal]):
                placed.append((place, orders[equal:]))
        if stage.latest is not None:
            before = [
                (place, which) for place, which in placed if which[0] < (0 if stage.latest.strict else 1)
            ]
            placed = []
            for each in before:  # the last of the greatest
                instants = [evaluate(stage.latest.inner, others[place]) for place, _ in (*placed, each)]
                type_ = stage.latest.inner.type
                if len(instants) == 1 or order(instants[0], type_, instants[1], type_) <= 0:
                    placed = [each]
        found = []
        for place, _ in placed:
            outcome = True if stage.condition is None else evaluate(stage.condition, row + others[place])
            errors += outcome is ERROR
            if outcome is True:
                found.append(place)
        partners.append(found)
    if stage.kind in ("semi", "anti"):
        kept = [
            row for row, found in zip(rows, partners, strict=True) if bool(found) is (stage.kind == "semi")
        ]
        return kept, errors
    joined = []
    for row, found in zip(rows, partners, strict=True):
        joined += [row + others[place] for place in found]
        if not found and stage.kind in ("left", "full"):
            joined.append(row + (None,) * len(stage.inner.columns))
    if stage.kind in ("right", "full"):
        met = {place for found in partners for place in found}
        joined += [(None,) * width + other for place, other in enumerate(others) if place not in met]
    return joined, errors


# --- random joins ---------------------------------------------------------------------------------


@st.composite
def conditions(draw: st.DrawFn, width: int) -> ex.Expression | None:
    """Inequalities across, with literals, arithmetic that may err, and what no sorting answers."""

    def side(inner: bool, place: int) -> ex.Expression:
        at = (width if inner else 0) + width - len(PAYLOAD) + place
        return ex.Column(at, "c", PAYLOAD[place])

    def one() -> ex.Expression:
        a, b = draw(st.sampled_from(COMPARED))
        left, right = side(False, a), side(True, b)
        shape = draw(st.sampled_from(["plain", "band", "quotient", "opaque"]))
        if shape == "band" and PAYLOAD[b] in (INTEGER, BIGINT):
            step = ex.Literal(draw(st.integers(0, 3)), INTEGER)
            low, high = (ex.Arithmetic(op, right, step, PAYLOAD[b]) for op in ("-", "+"))
            return ex.And((ex.Compare(">=", left, low), ex.Compare("<=", left, high)))
        if shape == "quotient":
            quotient = ex.Arithmetic("/", side(False, 2), side(draw(st.booleans()), 2), DOUBLE)
            return ex.Compare("<", quotient, side(True, 2))
        op = draw(st.sampled_from(["<", "<=", ">", ">=", "<>"]))
        compared = ex.Compare(op, *((left, right) if draw(st.booleans()) else (right, left)))
        return ex.Or((compared, ex.IsNull(left))) if shape == "opaque" else compared

    parts = [one() for _ in range(draw(st.integers(0, 3)))]
    return ex.And(tuple(parts)) if len(parts) > 1 else (parts or [None])[0]


COMPARED = [(0, 0), (0, 1), (1, 1), (1, 2), (2, 2), (2, 4), (3, 3), (4, 4), (4, 5), (5, 4), (6, 6)]


@st.composite
def keys_of(draw: st.DrawFn, types: Sequence[Type]) -> tuple[tuple[ex.Expression, ex.Expression], ...]:
    def key(place: int, type_: Type) -> ex.Expression:
        column = ex.Column(place, "k", type_)
        if type_ == DOUBLE and draw(st.booleans()):
            return ex.Arithmetic("/", column, column, DOUBLE)
        return column

    return tuple((key(place, type_), key(place, type_)) for place, type_ in enumerate(types))


@given(st.data(), st.lists(st.sampled_from(TYPES), max_size=2), st.sampled_from(KINDS), st.booleans())
def test_every_row_is_compared_with_every_row(data, key_types, kind, asof):
    types = [*key_types, *PAYLOAD]
    rows, others = data.draw(tables(types, 15)), data.draw(tables(types, 15))
    latest = None
    if asof:
        place = len(key_types) + data.draw(st.sampled_from([0, 2, 3, 6]))
        instants = [ex.Column(place, "at", types[place]) for _ in range(2)]
        latest = Latest(*instants, strict=data.draw(st.booleans()))
    keys, condition = data.draw(keys_of(key_types)), data.draw(conditions(len(types)))
    stage = Join(inner_query(types), kind, keys, condition, latest)
    joined, errors = join(stage, relation(types, rows), relation(types, others), 1_000)
    expected, wrong = twin(stage, len(types), rows, others)
    assert exactly(rows_of(joined)) == exactly(expected)
    assert errors == wrong


MANY = [(place % 2, (place * 37) % 50, place // 10) for place in range(48)]
NUMBERS = (INTEGER, BIGINT, TIMESTAMP)


def number(place: int, inner: bool = False) -> ex.Expression:
    return ex.Column(place + 3 * inner, "c", NUMBERS[place])


def shifted(expression: ex.Expression, by: int) -> ex.Expression:
    return ex.Arithmetic("+", expression, ex.Literal(by, BIGINT), BIGINT)


BANDS = {
    "below": ex.Compare("<", number(1), number(1, inner=True)),
    "above": ex.Compare(">=", number(2, inner=True), number(2)),
    "left in a band": ex.And(
        (
            ex.Compare(">=", number(1), shifted(number(1, inner=True), -2)),
            ex.Compare("<", number(1), shifted(number(1, inner=True), 3)),
        )
    ),
    "right in a band": ex.And(
        (
            ex.Compare(">", number(1, inner=True), shifted(number(1), -2)),
            ex.Compare("<=", number(1, inner=True), shifted(number(1), 3)),
            ex.Compare("<>", number(0), number(0, inner=True)),
        )
    ),
    "no band": ex.Compare("<>", number(1), number(1, inner=True)),
}


@pytest.mark.parametrize("band", BANDS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("keyed", [False, True])
def test_inequalities_of_many_rows(band, kind, keyed):
    keys = ((number(0), number(0)),) if keyed else ()
    stage = Join(inner_query(NUMBERS), kind, keys, BANDS[band])
    others = MANY[::-2]
    joined, errors = join(stage, relation(NUMBERS, MANY), relation(NUMBERS, others), 10_000)
    expected, wrong = twin(stage, 3, MANY, others)
    assert rows_of(joined) == expected
    assert errors == wrong == 0


@pytest.mark.parametrize("band", ["left in a band", "right in a band"])
def test_an_operand_that_errs_does_so_in_every_pair(band):
    most = 2**63 - 1
    rows = [*MANY[:30], (0, most, 7), (1, most, 8), (1, None, 8)]
    stage = Join(inner_query(NUMBERS), "full", (), BANDS[band])
    joined, errors = join(stage, relation(NUMBERS, rows), relation(NUMBERS, rows), 10_000)
    assert (rows_of(joined), errors) == twin(stage, 3, rows, rows)
    assert errors > 0


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_latest_of_ties_is_the_last(kind, strict):
    types = (BIGINT, STRING)
    rows = [(4, "a"), (2, "b"), (None, "c"), (1, "d"), (9, "e"), (3, "f")]
    others = [(4, "one"), (2, "two"), (4, "three"), (2, "four"), (None, "five"), (2, "six")]
    instant = ex.Column(0, "at", BIGINT)
    stage = Join(inner_query(types), kind, (), None, Latest(instant, instant, strict))
    joined, errors = join(stage, relation(types, rows), relation(types, others), 100)
    assert (rows_of(joined), errors) == twin(stage, 2, rows, others)
    if kind == "inner":
        names = [(row[1], row[3]) for row in rows_of(joined)]
        later = [("a", "six"), ("e", "three"), ("f", "six")]
        assert names == (later if strict else [("a", "three"), ("b", "six"), *later[1:]])


@given(st.lists(st.sampled_from([0, 1, 2, 3, None]), max_size=12), st.integers(0, 12))
def test_strings_of_two_dictionaries_are_the_same_strings(codes, cut):
    names = ["", "a", "b", "é"]
    given_names = [(None if code is None else names[code],) for code in codes]
    stage = Join(inner_query([STRING]), "inner", ((ex.Column(0, "k", STRING), ex.Column(0, "k", STRING)),))
    rows, others = given_names[:cut], given_names[cut:][::-1]
    one, other = relation([STRING], rows), relation([STRING], others)
    assert rows_of(join(stage, one, other, 1_000)[0]) == twin(stage, 1, rows, others)[0]
    both = relation([STRING], given_names)
    itself = join(stage, both, both, 1_000)[0]
    assert rows_of(itself) == twin(stage, 1, given_names, given_names)[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "m"), [(0, 0), (0, 3), (3, 0)])
@pytest.mark.parametrize("keyed", [False, True])
def test_nothing_to_join(kind, n, m, keyed):
    rows, others = [(1, "a")] * n, [(1, "b")] * m
    types = (BIGINT, STRING)
    keys = ((ex.Column(0, "k", BIGINT), ex.Column(0, "k", BIGINT)),) if keyed else ()
    stage = Join(inner_query(types), kind, keys)
    joined, errors = join(stage, relation(types, rows), relation(types, others), 10)
    assert (rows_of(joined), errors) == twin(stage, 2, rows, others)
    for column in joined.columns:
        assert len(column.to_arrow()) == len(joined)


# --- limits, and what is not done -----------------------------------------------------------------


def numbers(n: int) -> Relation:
    return relation([BIGINT], [(place,) for place in range(n)])


PLAIN = inner_query([BIGINT])
UP = ex.Compare("<=", ex.Column(0, "a", BIGINT), ex.Column(1, "b", BIGINT))


@pytest.mark.parametrize(
    ("condition", "kind", "rows"),
    [(None, "inner", 400), (UP, "inner", 210), (UP, "full", 210), (ex.Not(UP), "left", 191)],
)
def test_no_more_rows_than_may_be(condition, kind, rows):
    stage = Join(PLAIN, kind, (), condition)
    assert len(join(stage, numbers(20), numbers(20), rows)[0]) == rows
    with pytest.raises(LimitExceeded, match="intermediate_rows_max"):
        join(stage, numbers(20), numbers(20), rows - 1)


def test_no_more_pairs_are_looked_at_than_may_be():
    stage = Join(PLAIN, "semi", (), ex.Not(UP))
    assert len(join(stage, numbers(20), numbers(20), 20, candidates_max=400)[0]) == 19
    with pytest.raises(LimitExceeded, match="join_candidates_max"):
        join(stage, numbers(20), numbers(20), 20, candidates_max=399)
    sorted_out = Join(PLAIN, "inner", (), UP)
    assert len(join(sorted_out, numbers(20), numbers(20), 210, candidates_max=0)[0]) == 210


def test_columns_are_made_when_they_are_read():
    read: list[int] = []

    def watched(width: int, n: int, first: int) -> Relation:
        columns = relation([BIGINT] * width, [(row,) * width for row in range(n)]).columns

        def make(place: int) -> Any:
            read.append(first + place)
            return columns[place]

        return Relation(LazyColumns(width, make), n)

    key = ex.Column(0, "k", BIGINT)
    stage = Join(inner_query([BIGINT] * 3), "left", ((key, key),))
    joined, _ = join(stage, watched(3, 8, 0), watched(3, 8, 3), 100)
    assert sorted(set(read)) == [0, 3]
    assert joined.columns[5].values.tolist() == list(range(8))
    assert sorted(set(read)) == [0, 3, 5]


def test_known_pairs_take_the_place_of_keys():
    stage = Join(PLAIN, "full", (), ex.Not(ex.Compare("=", ex.Column(1, "b", BIGINT), ex.Literal(2, BIGINT))))
    pairs = np.array([0, 0, 3]), np.array([1, 2, 0])
    joined, errors = join(stage, numbers(4), numbers(3), 10, given=pairs)
    assert rows_of(joined) == [(0, 1), (1, None), (2, None), (3, 0), (None, 2)]
    assert errors == 0

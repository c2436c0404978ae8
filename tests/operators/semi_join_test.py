"""IN and EXISTS against a plain twin in three-valued logic."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.algebra.project.stage import Project
from engine.algebra.semi_join.stage import SemiJoin
from engine.language.query import Query, Scan
from engine.model import expressions as ex
from engine.model.source import SourceName
from engine.model.types import BIGINT, DATE, DOUBLE, INTEGER, STRING, TIMESTAMP, decimal
from engine.operators.semi_join import semi_join
from engine.reference.values import order
from engine.windows.clauses import UNBOUNDED
from tests.operators.relations import PRICE, TYPES, exactly, relation, rows_of, tables

INNER = Query("", Scan(SourceName("s"), UNBOUNDED), (Project(()),))

COMPARABLE = [
    *((type_, type_) for type_ in TYPES),
    (INTEGER, BIGINT),
    (BIGINT, DOUBLE),
    (DOUBLE, PRICE),
    (PRICE, decimal(5, 0)),
    (INTEGER, PRICE),
    (DATE, TIMESTAMP),
]


def keeps(
    stage: SemiJoin, keys: tuple[Any, ...], types: Any, inner: list[tuple[Any, ...]], others: Any
) -> bool:
    """Whether a row is left, by comparing it with every inner row."""
    outcome: bool | None = False
    for candidate in inner:
        equal: bool | None = True
        for a, a_type, b, b_type in zip(keys, types, candidate, others, strict=True):
            if a is None or b is None:
                equal = None if equal is not False else False
            elif order(a, a_type, b, b_type):
                equal = False
        if equal:
            outcome = True
        elif equal is None and outcome is False:
            outcome = None
    if outcome is None:
        if stage.null_aware:
            return False
        outcome = False
    return outcome is not stage.negated


@given(
    st.data(), st.lists(st.sampled_from(COMPARABLE), max_size=2), st.booleans(), st.booleans(), st.booleans()
)
def test_rows_are_kept_as_three_valued_logic_says(data, pairs, negated, null_aware, turned):
    types, others = [one for one, _ in pairs], [other for _, other in pairs]
    if turned:
        types, others = others, types
    rows, inner = data.draw(tables([*types, STRING], 12)), data.draw(tables([*others, STRING], 6))
    keys = tuple(ex.Column(place, "k", type_) for place, type_ in enumerate(types))
    stage = SemiJoin(keys, INNER, negated, null_aware)
    result, errors = semi_join(stage, relation([*types, STRING], rows), relation([*others, STRING], inner))
    cut = [row[: len(others)] for row in inner]
    expected = [row for row in rows if keeps(stage, row[: len(types)], types, cut, others)]
    assert exactly(rows_of(result)) == exactly(expected)
    assert errors == 0


@pytest.mark.parametrize(
    ("negated", "null_aware", "kept"), [(False, True, 0), (True, True, 0), (True, False, 2)]
)
def test_a_key_that_is_an_error_counts_as_null(negated, null_aware, kept):
    a, b = (ex.Column(place, "c", DOUBLE) for place in (0, 1))
    stage = SemiJoin((ex.Arithmetic("/", a, b, DOUBLE),), INNER, negated, null_aware)
    rows = relation([DOUBLE, DOUBLE], [(1.0, 0.0), (None, 1.0)])
    result, errors = semi_join(stage, rows, relation([DOUBLE], [(1.0,)]))
    assert (len(result), errors) == (kept, 1)

"""Sample keys of elements: those of the definition, and fair."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.changes.element_keys import element_keys, kept
from engine.model.sample import Sample
from engine.model.types import BIGINT, BOOLEAN, DOUBLE, STRING, Type, decimal
from engine.operators.relation import Relation
from engine.reference.samples import element_key
from engine.reference.values import exactly
from tests.strategies import column_of

PRICE = decimal(10, 2)
VALUES: dict[Type, st.SearchStrategy[Any]] = {
    BIGINT: st.integers(-(2**63), 2**63 - 1),
    BOOLEAN: st.booleans(),
    DOUBLE: st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf"), -1e300]),
    STRING: st.sampled_from(["", "a", "ä", "日本", "a\0"]),
    PRICE: st.integers(-999, 999).map(lambda cents: Decimal(cents).scaleb(-2)),
}
ROWS = st.lists(
    st.tuples(st.integers(-3, 3), *(st.none() | values for values in VALUES.values())), max_size=12
)


@given(rows=ROWS)
def test_keys_are_those_of_the_definition(rows: list[tuple[Any, ...]]) -> None:
    rows.sort(key=lambda row: row[0])
    columns = [column_of(type_, [row[place] for row in rows]) for place, type_ in enumerate(VALUES, 1)]
    keys = element_keys(Relation(columns, len(rows)), np.array([row[0] for row in rows], np.int64))
    met: dict[Any, int] = {}
    for (instant, *values), key in zip(rows, keys.tolist(), strict=True):
        copy = met[instant, exactly(values)] = met.get((instant, exactly(values)), -1) + 1
        assert key == element_key(values, instant, copy)


def test_samples_are_nested_fair_and_of_their_seed() -> None:
    """Equal elements of one instant are kept in part; of values that follow each other, the kept share is as
    asked.
    """
    n = 20_000
    relation = Relation([column_of(BIGINT, [place // 4 for place in range(n)])], n)
    timestamps = np.repeat(np.arange(n // 4), 4) // 3
    few, many = (kept(relation, timestamps, Sample(Decimal(percent))) for percent in (10, 40))
    other = kept(relation, timestamps, Sample(Decimal(10), seed=5))
    assert not (few & ~many).any()
    for mask, share in ((few, 0.1), (many, 0.4), (other, 0.1)):
        parts = mask.reshape(20, -1).sum(axis=1)
        expected = n / 20 * share
        assert (
            (parts - expected) ** 2 / (expected * (1 - share))
        ).sum() < 45.3  # chi-square, 0.999, 20 parts
    assert 0.005 * n < (few & other).sum() < 0.015 * n
    assert kept(relation, timestamps, Sample(Decimal(100))).all()

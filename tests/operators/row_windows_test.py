"""The last rows of each key over relations of all types, and codes that tell equal rows from others."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.model.expressions import Column, Compare, Literal
from engine.model.types import BIGINT, Type
from engine.operators.keys import number
from engine.operators.row_windows import last_of_relation
from engine.windows.clauses import RowWindow
from tests.operators.relations import TYPES, relation, tables


def same(value: Any) -> Any:
    """Equal where a key is the same: all NaNs are, and both zeros."""
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


keyed = st.lists(st.sampled_from(TYPES), min_size=1, max_size=3)


@given(keyed, st.data())
def test_numbers_are_equal_where_rows_are(types: list[Type], data: st.DataObject) -> None:
    rows = data.draw(tables(types))
    given_rows = relation(types, rows)
    codes, above = number(list(given_rows.columns), len(rows))
    assert len(codes) == len(rows)
    assert all(0 <= code < above for code in codes.tolist())
    for one, row in zip(codes.tolist(), rows, strict=True):
        for other, another in zip(codes.tolist(), rows, strict=True):
            assert (one == other) == ([same(v) for v in row] == [same(v) for v in another])


@given(keyed, st.integers(1, 3), st.booleans(), st.booleans(), st.data())
def test_the_last_rows(
    types: list[Type], most: int, by_key: bool, filtered: bool, data: st.DataObject
) -> None:
    rows = data.draw(tables([BIGINT, *types]))
    keys = tuple(Column(place + 1, f"k{place}", type_) for place, type_ in enumerate(types))
    above_zero = Compare(">", Column(0, "n", BIGINT), Literal(0, BIGINT))
    window = RowWindow(most, keys if by_key else (), above_zero if filtered else None)
    candidates = [
        place for place, row in enumerate(rows) if not filtered or (row[0] is not None and row[0] > 0)
    ]
    expected = []
    for i, place in enumerate(candidates):
        key = [same(value) for value in rows[place][1:]] if by_key else []
        later = [
            other
            for other in candidates[i + 1 :]
            if ([same(value) for value in rows[other][1:]] if by_key else []) == key
        ]
        if len(later) < most:
            expected.append(place)
    places, found = last_of_relation(window, relation([BIGINT, *types], rows))
    assert places.tolist() == expected
    assert found == (not by_key and len(candidates) >= most)
    assert places.dtype == np.int64

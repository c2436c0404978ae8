"""Lists of rows agree with a plain twin on random pairs."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.kernels.lists import lists_of_rows


@given(st.integers(1, 20), st.lists(st.tuples(st.integers(0, 19), st.integers(0, 9)), max_size=60))
def test_each_pair_is_in_the_list_of_its_row(n: int, drawn: list[tuple[int, int]]) -> None:
    pairs = [(row % n, query) for row, query in drawn]
    numbers = np.arange(100, 110, dtype=np.int32)[::-1].copy()
    rows = np.array([row for row, _ in pairs], np.int32)
    queries = np.array([query for _, query in pairs], np.int32)
    starts, out = np.full(n + 1, -1, np.int32), np.full(len(pairs), -1, np.int32)

    lists_of_rows(rows, queries, numbers, starts, out)

    found = [out[starts[row] : starts[row + 1]].tolist() for row in range(n)]
    assert found == [[int(numbers[q]) for r, q in pairs if r == row] for row in range(n)]

"""Kernels of set operations agree with plain twins on random codes."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.kernels.set_operations import first_of_each, merged, paired

WIDTH = 5
CODES = st.lists(st.integers(0, WIDTH - 1), max_size=30)
MOMENTS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 3)), max_size=20).map(
    sorted
)


@given(CODES, CODES)
def test_a_row_is_paired_with_each_copy_once(codes: list[int], others: list[int]) -> None:
    out = np.empty(len(codes), np.bool_)
    paired(np.array(codes, np.int64), np.bincount(np.array(others, np.int64), minlength=WIDTH), out)
    left, expected = Counter(others), []
    for code in codes:
        expected.append(left[code] > 0)
        left[code] -= 1
    assert out.tolist() == expected


@given(CODES, st.lists(st.booleans(), min_size=WIDTH, max_size=WIDTH))
def test_the_first_of_each_wanted_code(codes: list[int], wanted: list[bool]) -> None:
    out = np.empty(len(codes), np.bool_)
    first_of_each(np.array(codes, np.int64), np.array(wanted), out)
    assert out.tolist() == [wanted[code] and code not in codes[:row] for row, code in enumerate(codes)]


@given(MOMENTS, MOMENTS)
def test_two_orders_become_one(one: list[tuple[int, int, int]], other: list[tuple[int, int, int]]) -> None:
    out = np.full(len(one) + len(other), -1, np.int64)
    columns = [
        np.array([row[place] for row in rows], np.int64) for rows in (one, other) for place in range(3)
    ]
    merged(*columns, out)
    both = one + other
    assert out.tolist() == sorted(range(len(both)), key=both.__getitem__)

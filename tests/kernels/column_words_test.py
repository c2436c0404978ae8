"""Columns of rows as words of bits, and back."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.kernels import column_words as kernels


@given(st.lists(st.lists(st.integers(0, 300), unique=True), max_size=12))
def test_each_row_has_its_columns_again(rows: list[list[int]]) -> None:
    starts = np.cumsum([0, *map(len, rows)])
    owners = np.array([column for row in rows for column in row], np.int32)
    found = np.empty(len(starts), np.int64)
    words, bits = np.empty(len(owners), np.int32), np.empty(len(owners), np.uint64)
    count = kernels.gather(starts, owners, np.full(5, -1), found, words, bits)
    words, bits = words[:count], bits[:count]
    assert found[-1] == count
    ends = np.empty(count + 1, np.int64)
    kernels.count(bits, ends)
    assert np.diff(ends).tolist() == [int(word).bit_count() for word in bits]
    spelt = np.empty(int(ends[-1]), np.int32)
    kernels.spell(words, bits, spelt)
    for row, columns in enumerate(rows):
        first, last = found[row : row + 2].tolist()
        assert len(set(words[first:last].tolist())) == last - first
        assert sorted(spelt[ends[first] : ends[last]].tolist()) == sorted(columns)

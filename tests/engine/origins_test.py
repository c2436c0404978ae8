"""Where rows come from is the same however it is kept."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.stems.origins import RUN_ROWS_MIN, Origins

runs = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 50), st.integers(1, 12)), max_size=6)


@given(runs, st.data())
def test_partition_and_offset_of_every_row(drawn: list[tuple[int, int, int]], data: st.DataObject):
    partition = [p for p, _, length in drawn for _ in range(length)]
    offset = [first + i for _, first, length in drawn for i in range(length)]
    n = len(partition)
    room = [0] * data.draw(st.integers(0, 3))
    kept = Origins(np.array(partition + room, np.int32), np.array(offset + room, np.int64)).packed(n)
    first = data.draw(st.integers(0, n))
    last = data.draw(st.integers(first, n))
    told = kept.of(first, last)
    assert [each.tolist() for each in told] == [partition[first:last], offset[first:last]]
    assert [each.dtype for each in told] == [np.int32, np.int64]
    if first < n:
        rest = kept.behind(first)
        assert [each.tolist() for each in rest.of(0, n - first)] == [partition[first:], offset[first:]]


def test_rows_of_a_log_without_gaps_keep_next_to_nothing():
    n = 65_536
    whole = Origins(np.zeros(n, np.int32), np.arange(n) + 7).packed(n)
    assert whole.nbytes == 16
    broken = Origins(np.zeros(n, np.int32), np.arange(n) * 2).packed(n)
    assert broken.nbytes == 12 * n
    assert RUN_ROWS_MIN * 16 > 12

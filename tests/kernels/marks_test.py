"""Counts of users agree with a plain twin."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.kernels import marks


@given(st.lists(st.integers(0, 5), max_size=30), st.data())
def test_users_are_counted_until_there_are_none(ids: list[int], data: st.DataObject) -> None:
    users = np.zeros(6, np.int32)
    marks.count_more(np.array(ids, np.int32), users)
    assert {i: int(users[i]) for i in range(6) if users[i]} == Counter(ids)
    going = data.draw(st.permutations(ids))[: data.draw(st.integers(0, len(ids)))]
    out = np.empty(len(going), np.int32)
    count = marks.count_less(np.array(going, np.int32), users, out)
    left = Counter(ids) - Counter(going)
    assert {i: int(users[i]) for i in range(6) if users[i]} == left
    assert sorted(out[:count].tolist()) == sorted(set(ids) - left.keys())

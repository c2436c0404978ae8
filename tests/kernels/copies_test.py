"""Copies of equal rows are numbered as a plain twin numbers them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.kernels import copies


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([-1, 1])), max_size=30))
def test_copies(changes):
    held = dict.fromkeys(range(3), 40)
    wanted = []
    for code, weight in changes:
        wanted.append(held[code] + (weight > 0))
        held[code] += weight
    counts, out = np.full(3, 40), np.empty(len(changes), np.int32)
    codes = np.array([code for code, _ in changes], np.int64)
    weights = np.array([weight for _, weight in changes], np.int8)
    copies.number_copies(codes, weights, counts, out)
    assert out.tolist() == wanted
    assert counts.tolist() == list(held.values())

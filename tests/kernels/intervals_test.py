"""Each interval kernel agrees with a plain twin, at the ends of the domains too."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels import intervals

edges = st.one_of(
    st.integers(-5, 5), st.integers(-(2**63), 2**63 - 1), st.sampled_from([-(2**63), 2**63 - 1])
)
doubles = st.floats(allow_nan=True, allow_infinity=True)


def at_or_below(start: float, value: float) -> bool:
    """start <= value with NaN on top."""
    if math.isnan(value):
        return True
    return not math.isnan(start) and start <= value


@given(st.lists(edges, max_size=30), st.lists(edges, max_size=8))
@settings(max_examples=80)
def test_integers(values, starts):
    starts = sorted(set(starts))
    out = np.empty(len(values), np.int32)
    intervals.pieces_of_integers(np.array(values, np.int64), np.array(starts, np.int64), out)
    assert out.tolist() == [sum(s <= v for s in starts) for v in values]


@given(st.lists(doubles, max_size=30), st.lists(doubles, max_size=8))
@settings(max_examples=80)
def test_doubles_with_nan_on_top(values, starts):
    cuts = np.unique(np.array(starts, np.float64))
    out = np.empty(len(values), np.int32)
    intervals.pieces_of_floats(np.array(values, np.float64), cuts, out)
    assert out.tolist() == [sum(at_or_below(s, v) for s in cuts.tolist()) for v in values]


@given(st.lists(edges, max_size=30), st.integers(-100, 100), st.integers(1, 20))
@settings(max_examples=60)
def test_lookup_clips_at_both_ends(values, lowest, span):
    lookup = np.arange(span).astype(np.uint16) * 3
    for dtype in (np.int64, np.int32, np.int8):
        fitting = [v for v in values if np.iinfo(dtype).min <= v <= np.iinfo(dtype).max]
        out = np.empty(len(fitting), np.uint16)
        intervals.pieces_by_lookup(np.array(fitting, dtype), lowest, lookup, out)
        assert out.tolist() == [int(lookup[min(max(v - lowest, 0), span - 1)]) for v in fitting]


@given(st.integers(0, 2**32), st.integers(0, 12))
@settings(max_examples=40)
def test_fill_and_fuse(seed, n):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 5, n).astype(np.int32)
    last = np.minimum(5, first + rng.integers(0, 5, n)).astype(np.int32)
    word = rng.integers(0, 2, n).astype(np.int32)
    bit = (np.uint64(1) << rng.integers(0, 64, n).astype(np.uint64)).astype(np.uint64)
    table = np.zeros((2, 5), np.uint64)
    intervals.fill_table(first, last, word, bit, table)
    for w in range(2):
        for p in range(5):
            expected = 0
            for i in range(n):
                if word[i] == w and first[i] <= p < last[i]:
                    expected |= int(bit[i])
            assert int(table[w, p]) == expected
    other = rng.integers(0, 2**63, (2, 3)).astype(np.uint64)
    fused = np.empty((2, 15), np.uint64)
    intervals.fuse_tables(table, other, fused)
    assert (fused.reshape(2, 5, 3) == table[:, :, None] & other[:, None, :]).all()

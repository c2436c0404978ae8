"""Each interval kernel agrees with a plain twin, at the ends of the domains too."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels import intervals
from tests.strategies import examples

LEAST, MOST = -(2**63), 2**63 - 1
edges = st.one_of(st.integers(-5, 5), st.integers(LEAST, MOST), st.sampled_from([LEAST, MOST]))
doubles = st.floats(allow_nan=True, allow_infinity=True)


def below(a: float, b: float) -> bool:
    """a < b with NaN on top."""
    if math.isnan(a):
        return False
    return math.isnan(b) or a < b


@given(st.lists(doubles, max_size=20))
@settings(max_examples=examples(80))
def test_keys_of_doubles_order_as_they_do(values):
    array = np.array(values, np.float64)
    keys = np.empty(len(values), np.int64)
    intervals.keys_of_doubles(array, array.view(np.int64), keys)
    for a, key_a in zip(values, keys.tolist(), strict=True):
        for b, key_b in zip(values, keys.tolist(), strict=True):
            assert (key_a < key_b) == below(a, b)


@given(st.lists(edges, max_size=30), st.lists(edges, max_size=20))
@settings(max_examples=examples(80))
def test_pieces(keys, starts):
    starts = sorted(set(starts))
    expected = [sum(s <= k for s in starts) for k in keys]
    array, cuts = np.array(keys, np.int64), np.array(starts, np.int64)
    out = np.empty(len(keys), np.uint16)
    intervals.pieces_by_bisection(array, cuts, out)
    assert out.tolist() == expected
    order = np.argsort(array)
    out[:] = 9
    intervals.pieces_by_merge(order.astype(np.uint16), array[order], cuts, out)
    assert out.tolist() == expected


@given(st.lists(edges, max_size=30), st.integers(-100, 100), st.integers(1, 20))
@settings(max_examples=examples(60))
def test_lookup_clips_at_both_ends(keys, lowest, span):
    lookup = np.arange(span).astype(np.uint16) * 3
    out = np.empty(len(keys), np.uint16)
    intervals.pieces_by_lookup(np.array(keys, np.int64), lowest, lookup, out)
    assert out.tolist() == [int(lookup[min(max(k - lowest, 0), span - 1)]) for k in keys]


@given(st.integers(0, 2**32), st.integers(0, 12))
@settings(max_examples=examples(60))
def test_fill_and_fuse(seed, n):
    rng = np.random.default_rng(seed)
    place = rng.integers(0, 128, n)
    cuts = [sorted(rng.choice(6, 4, replace=False).tolist()) for _ in place]
    first = np.array([low for own in cuts for low in (own[0], own[2])], np.int64)
    after = np.array([high for own in cuts for high in (own[1], own[3])], np.int64)
    place = np.unique(place)  # intervals of one place are disjoint
    first, after = first[: 2 * len(place)], after[: 2 * len(place)]
    table = np.zeros((2, 6), np.uint64)
    table[:, -1] = 77
    intervals.fill_table(first, after, np.repeat(place, 2), table)
    for w in range(2):
        assert table[w, -1] == 77
        for p in range(5):
            expected = 0
            for i, of in enumerate(np.repeat(place, 2).tolist()):
                if of >> 6 == w and first[i] <= p < after[i]:
                    expected |= 1 << (of & 63)
            assert int(table[w, p]) == expected
    other = rng.integers(0, 2**63, (2, 3)).astype(np.uint64)
    fused = np.empty((2, 18), np.uint64)
    intervals.fuse_tables(table, other, fused)
    assert (fused.reshape(2, 6, 3) == table[:, :, None] & other[:, None, :]).all()


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@given(values=st.lists(st.integers(-9, 9), max_size=40), bounds=st.tuples(edges, edges))
@settings(max_examples=examples(40))
def test_within(dtype, values, bounds):
    low, last = bounds
    array = np.array(values, dtype)
    out = np.full(len(values), 7, np.uint8)
    intervals.within(array, low, last, True, out)
    assert out.tolist() == [int(low <= v <= last) for v in values]
    intervals.within(array, 0, MOST, False, out)
    assert out.tolist() == [int(low <= v <= last and v >= 0) for v in values]

"""Each bitmap kernel agrees with a plain twin on random input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels import bitmaps

ALL = 2**64 - 1
seeds = st.integers(0, 2**32 - 1)


def words(rng: np.random.Generator, *shape: int, density: float = 0.5) -> np.ndarray:
    bits = rng.random((*shape, 64)) < density
    return np.packbits(bits, axis=-1, bitorder="little").view(np.uint64).reshape(shape)


@given(
    seeds, st.integers(0, 4), st.integers(1, 3), st.integers(0, 40), st.sampled_from([np.uint16, np.int32])
)
@settings(max_examples=60)
def test_intersect_is_the_and_of_all_tables(seed, groups, width, n, dtype):
    rng = np.random.default_rng(seed)
    pieces = rng.integers(1, 6, groups)
    tables = [words(rng, width, int(p)) for p in pieces]
    codes = np.array([rng.integers(0, p, n) for p in pieces], dtype).reshape(groups, n)
    live = words(rng, width)
    start = int(rng.integers(0, 3))
    out = np.zeros((width + 1, start + n + 2), np.uint64)
    offsets = (
        np.cumsum([0, *[t.size for t in tables]])[:-1].astype(np.int64) if groups else np.zeros(0, np.int64)
    )
    flat = np.concatenate([t.ravel() for t in tables]) if groups else np.zeros(0, np.uint64)

    bitmaps.intersect(codes, flat, offsets, pieces.astype(np.int64), live, out, start)

    expected = np.zeros_like(out)
    for w in range(width):
        for r in range(n):
            value = int(live[w])
            for g in range(groups):
                value &= int(tables[g][w, codes[g, r]])
            expected[w, start + r] = value
    assert (out == expected).all()


def test_intersect_crosses_blocks():
    n = bitmaps.BLOCK_ROWS * 2 + 7
    rng = np.random.default_rng(5)
    table = words(rng, 2, 3)
    codes = rng.integers(0, 3, (1, n)).astype(np.uint16)
    live = np.array([ALL, ALL], np.uint64)
    out = np.zeros((2, n), np.uint64)
    bitmaps.intersect(codes, table.ravel(), np.zeros(1, np.int64), np.array([3]), live, out, 0)
    assert (out == table[:, codes[0]]).all()


@given(seeds, st.integers(0, 200), st.integers(0, 63), st.floats(0, 1))
@settings(max_examples=60)
def test_reading_one_bit(seed, n, bit, density):
    rng = np.random.default_rng(seed)
    column = words(rng, n, density=density)
    first, last = sorted(rng.integers(0, n + 1, 2).tolist())
    expected = [r for r in range(first, last) if int(column[r]) >> bit & 1]
    out = np.empty(max(1, last - first), np.int64)
    assert bitmaps.rows_with_bit(column, bit, first, last, out) == len(expected)
    assert out[: len(expected)].tolist() == expected
    assert bitmaps.count_bit(column, bit, first, last) == len(expected)


@given(seeds, st.integers(0, 150), st.floats(0, 0.2))
@settings(max_examples=60)
def test_row_lists_there_and_back(seed, n, density):
    column = words(np.random.default_rng(seed), n, density=density)
    counts = np.full(64, 9, np.int64)
    bitmaps.count_per_bit(column, n, counts)
    assert counts.tolist() == [sum(int(w) >> b & 1 for w in column) for b in range(64)]
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    rows = np.empty(int(counts.sum()), np.uint16)
    bitmaps.to_row_lists(column, n, starts, rows)
    for b in range(64):
        listed = rows[starts[b] : starts[b + 1]].tolist()
        assert listed == [r for r in range(n) if int(column[r]) >> b & 1]
    back = np.full(n, ALL, np.uint64)
    bitmaps.from_row_lists(starts, rows, back)
    assert (back == column).all()


@given(seeds, st.integers(0, 60), st.integers(0, ALL))
@settings(max_examples=40)
def test_merge_takes_the_masked_bits_alone(seed, n, mask):
    rng = np.random.default_rng(seed)
    target, source = words(rng, n), words(rng, n)
    expected = [(int(t) & ~mask & ALL) | (int(s) & mask) for t, s in zip(target, source, strict=True)]
    bitmaps.merge_bits(target, source, np.uint64(mask), n)
    assert target.tolist() == expected


@given(seeds, st.integers(0, 60))
@settings(max_examples=40)
def test_any_bit_and_keep_where(seed, n):
    rng = np.random.default_rng(seed)
    columns = words(rng, 4, n, density=0.1)
    chosen = np.array([0, 2], np.int64)
    masks = words(rng, 2, density=0.3)
    some = np.empty(n, np.bool_)
    given_rows = bitmaps.any_bit(columns, chosen, masks, n, some)
    expected = [
        any(int(columns[w, r]) & int(m) for w, m in zip(chosen, masks, strict=True)) for r in range(n)
    ]
    assert some.tolist() == expected
    assert given_rows == sum(expected)
    rows = np.flatnonzero(some)
    keep = rng.random(len(rows)) < 0.5
    before = columns.copy()
    bitmaps.keep_where(columns, chosen, masks, rows, keep)
    for w in range(4):
        for r in range(n):
            value = int(before[w, r])
            if r in rows[~keep] and w in chosen:
                value &= ~int(masks[chosen.tolist().index(w)]) & ALL
            assert int(columns[w, r]) == value


@pytest.mark.parametrize("stride", [1, 3])
def test_popcount_sample(stride):
    column = words(np.random.default_rng(2), 100)
    expected = sum(int(w).bit_count() for w in column[::stride]) * stride
    assert bitmaps.popcount_sample(column, 100, stride) == expected

"""Each bitmap kernel agrees with a plain twin on random input."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels import bitmaps, streaming
from tests.kernels.bitmaps import ALL, seeds, words
from tests.strategies import examples


@given(seeds, st.integers(0, 6), st.integers(1, 3), st.integers(0, 40), st.integers(1, 50), st.booleans())
@settings(max_examples=examples(60))
def test_intersect_is_the_and_of_all_tables(seed, groups, width, n, rows, more):
    rng = np.random.default_rng(seed)
    pieces = rng.integers(1, 6, groups)
    tables = [words(rng, width, int(p), density=0.8) for p in pieces]
    codes = np.array([rng.integers(0, p, n) for p in pieces], np.uint16).reshape(groups, n)
    live = words(rng, width)
    live[int(rng.integers(width))] = 0
    start = int(rng.integers(0, 30))
    out = words(rng, -(-(start + n + 2) // rows), width + 1, rows)
    expected = out.transpose(1, 0, 2).reshape(width + 1, -1).copy()
    sizes = np.array([t.size for t in tables], np.int64)
    flat = np.concatenate([t.ravel() for t in tables]) if groups else np.zeros(0, np.uint64)
    at = np.array([chunk.ctypes.data for chunk in out], np.int64)
    scratch = np.empty(bitmaps.BLOCK_ROWS, np.uint64)

    filters = flat, np.cumsum(sizes) - sizes, pieces.astype(np.int64), live
    bitmaps.intersect(codes, *filters, at, rows, start, scratch, more)

    for w in range(width):
        for r in range(n):
            value = int(live[w])
            for g in range(groups):
                value &= int(tables[g][w, codes[g, r]])
            before = int(expected[w, start + r]) if more else 0
            expected[w, start + r] = value | before
    assert (out.transpose(1, 0, 2).reshape(width + 1, -1) == expected).all()


def test_intersect_crosses_blocks():
    n = bitmaps.BLOCK_ROWS * 2 + 7
    rng = np.random.default_rng(5)
    table = words(rng, 2, 3)
    codes = rng.integers(0, 3, (1, n)).astype(np.uint16)
    live = np.array([ALL, ALL], np.uint64)
    out = np.zeros((2, n), np.uint64)
    at = np.array([out.ctypes.data], np.int64)
    scratch = np.empty(bitmaps.BLOCK_ROWS, np.uint64)
    bitmaps.intersect(
        codes, table.ravel(), np.zeros(1, np.int64), np.array([3]), live, at, n, 0, scratch, False
    )
    assert (out == table[:, codes[0]]).all()


@given(seeds, st.integers(0, 70), st.integers(0, 9), st.integers(0, 9))
@settings(max_examples=examples(60))
def test_streaming_copies_and_leaves_the_rest(seed, n, source_first, target_first):
    rng = np.random.default_rng(seed)
    source, target = words(rng, 90), words(rng, 90)
    expected = target.copy()
    expected[target_first : target_first + n] = source[source_first : source_first + n]
    streaming.stream(source[source_first:], target[target_first:], n)
    assert (target == expected).all()


def test_memory_begins_at_a_line():
    for size in (1, 100, 5_000):
        array = streaming.aligned_words(size)
        first = streaming.first_aligned(array)
        assert array[first:].ctypes.data % 64 == 0
        assert len(array) - first >= size


@given(seeds, st.integers(0, 150), st.floats(0, 0.2), st.sampled_from([ALL, 0, 1, 1 << 63, 0xF0F0]))
@settings(max_examples=examples(60))
def test_row_lists_there_and_back(seed, n, density, mask):
    column = words(np.random.default_rng(seed), n, density=density)
    counts = np.full(64, 9, np.int64)
    bitmaps.count_per_bit(column, np.uint64(mask), n, counts)
    assert counts.tolist() == [sum((int(w) & mask) >> b & 1 for w in column) for b in range(64)]
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    rows = np.empty(int(counts.sum()), np.uint16)
    bitmaps.to_row_lists(column, np.uint64(mask), n, starts, rows)
    for b in range(64):
        listed = rows[starts[b] : starts[b + 1]].tolist()
        assert listed == [r for r in range(n) if (int(column[r]) & mask) >> b & 1]
    back = np.full(n, ALL, np.uint64)
    bitmaps.from_row_lists(starts, rows, 0, back)
    assert (back == column & np.uint64(mask)).all()
    first, last = n // 3, n - n // 4
    bitmaps.from_row_lists(starts, rows, first, back[first:last])
    assert (back == column & np.uint64(mask)).all()


@given(seeds, st.integers(0, 40), st.integers(0, 63))
@settings(max_examples=examples(30))
def test_put_bit(seed, n, bit):
    rng = np.random.default_rng(seed)
    target, flags = words(rng, n), rng.integers(0, 2, n).astype(np.uint8)
    expected = [int(t) | int(f) << bit for t, f in zip(target, flags, strict=True)]
    bitmaps.put_bit(flags, bit, target)
    assert target.tolist() == expected

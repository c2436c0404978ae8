"""Each lineage kernel agrees with a plain twin on random input."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels import lineage
from tests.kernels.bitmaps import ALL, seeds, words
from tests.strategies import examples

FEW = settings(max_examples=examples(25))
rows = st.integers(0, 40)


def some_rows(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.flatnonzero(rng.random(n) < 0.6)


@given(seeds, rows)
@FEW
def test_wanting(seed, n):
    rng = np.random.default_rng(seed)
    wanted, columns, masks = words(rng, 4, n, density=0.05), np.array([0, 3]), words(rng, 2, density=0.4)
    found = np.empty(n, np.int64)
    count = lineage.wanting(wanted, columns, masks, n, found)
    expected = [
        r for r in range(n) if any(int(wanted[c, r]) & int(m) for c, m in zip((0, 3), masks, strict=True))
    ]
    assert found[:count].tolist() == expected


@given(seeds, rows)
@FEW
def test_restrict(seed, n):
    rng = np.random.default_rng(seed)
    wanted, columns, masks = words(rng, 3, n), np.array([2, 0]), words(rng, 2, density=0.3)
    table = words(rng, 2, 5) | ~masks[:, None]
    mine = some_rows(rng, n)
    codes = rng.integers(0, 5, len(mine)).astype(np.uint16)
    left = rng.random(len(mine)) < 0.2
    expected, expected_left, cleared = wanted.copy(), left.copy(), 0
    for j, r in enumerate(mine.tolist()):
        for i, c in enumerate((2, 0)):
            before = int(wanted[c, r])
            after = before & int(table[i, codes[j]])
            expected[c, r] = after
            cleared += (before ^ after).bit_count()
            expected_left[j] |= after & int(masks[i]) != 0
    assert lineage.restrict(wanted, columns, masks, table, codes, mine, left) == cleared
    assert (wanted == expected).all()
    assert (left == expected_left).all()


@given(seeds, rows)
@FEW
def test_refuse(seed, n):
    rng = np.random.default_rng(seed)
    wanted, masks = words(rng, 3, n), words(rng, 2)
    mine = some_rows(rng, n)
    expected, cleared = wanted.copy(), 0
    for r in mine.tolist():
        for i, c in enumerate((1, 2)):
            cleared += (int(wanted[c, r]) & int(masks[i])).bit_count()
            expected[c, r] = int(wanted[c, r]) & ~int(masks[i]) & ALL
    assert lineage.refuse(wanted, np.array([1, 2]), masks, mine) == cleared
    assert (wanted == expected).all()


@given(seeds, rows)
@FEW
def test_from_begin_to_end(seed, n):
    """Two columns of one word are alternatives; rows lie apart in what is kept."""
    rng = np.random.default_rng(seed)
    live = words(rng, 3)
    wanted = words(rng, 3, n)
    lineage.begin(live, wanted)
    assert (wanted == live[:, None]).all()
    wanted &= words(rng, 3, n)
    at = np.arange(n) * 2
    out = np.zeros((2, 2 * n + 3), np.uint64)
    mine = some_rows(rng, n)
    lineage.end(wanted, np.array([0, 1, 1]), mine, at, 3, out)
    expected = np.zeros_like(out)
    for r in mine.tolist():
        expected[0, 3 + 2 * r] = wanted[0, r]
        expected[1, 3 + 2 * r] = wanted[1, r] | wanted[2, r]
    assert (out == expected).all()

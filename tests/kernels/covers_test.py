"""Intervals that cover lives agree with plain twins, instant by instant, on random input."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.kernels import covers

MOST = 16
seeds = st.integers(0, 2**32 - 1)


def random_lives(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    begins = rng.integers(0, MOST - 1, n)
    return begins, begins + rng.integers(1, 6, n)


@given(seeds, st.integers(0, 5), st.integers(0, 12), st.booleans())
def test_pieces_that_are_covered_or_not(seed: int, n: int, m: int, inside: bool) -> None:
    rng = np.random.default_rng(seed)
    begins, ends = random_lives(rng, n)
    of = np.sort(rng.integers(0, n, m)) if n else np.empty(0, np.int64)
    first, last = random_lives(rng, len(of))
    first, last = np.maximum(first, begins[of]), np.minimum(last, ends[of])
    there = first < last
    of, first, last = of[there], first[there], last[there]
    order = np.lexsort((first, of))
    of, first, last = of[order], first[order], last[order]
    room = n + len(of)
    rows, out_begins, out_ends = (np.empty(room, np.int64) for _ in range(3))

    starts = np.searchsorted(of, np.arange(n + 1))
    count = covers.cut_out(begins, ends, starts, first, last, inside, rows, out_begins, out_ends)

    found = list(
        zip(rows[:count].tolist(), out_begins[:count].tolist(), out_ends[:count].tolist(), strict=True)
    )
    assert found == sorted(found)
    assert all(begin < end for _, begin, end in found)
    joined = itertools.pairwise(found)
    assert all(one[0] != other[0] or one[2] < other[1] for one, other in joined)  # as long as may be
    told = {(row, instant) for row, begin, end in found for instant in range(begin, end)}
    for row in range(n):
        for instant in range(begins[row], ends[row]):
            covered = bool(((of == row) & (first <= instant) & (last > instant)).any())
            assert ((row, instant) in told) == (covered == inside)
    assert all(begins[row] <= instant < ends[row] for row, instant in told)

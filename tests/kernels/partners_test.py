"""Ranges of partners agree with plain twins on random input."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.kernels import partners

seeds = st.integers(0, 2**32 - 1)


def random_ranges(rng: np.random.Generator, n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    low = rng.integers(0, m + 1, n)
    return low, np.minimum(low + rng.integers(0, 5, n), m)


@given(seeds, st.integers(0, 12), st.integers(0, 12), st.booleans(), st.booleans())
def test_what_satisfies_a_bound_is_a_range(seed: int, n: int, m: int, lower: bool, strict: bool) -> None:
    rng = np.random.default_rng(seed)
    values, bounds = np.sort(rng.integers(0, 6, m)), rng.integers(-1, 7, n)
    usable = rng.random(n) < 0.8
    low, high = random_ranges(rng, n, m)
    expected = [
        [
            place
            for place in range(low[row], high[row])
            if usable[row]
            and (values[place] >= bounds[row] if lower else values[place] <= bounds[row])
            and not (strict and values[place] == bounds[row])
        ]
        for row in range(n)
    ]

    partners.narrow(values, bounds, usable, lower, strict, low, high)

    assert [list(range(low[row], high[row])) for row in range(n)] == expected


@given(seeds, st.integers(0, 10), st.integers(0, 10), st.integers(1, 7))
def test_pairs_are_spelled_out_piece_by_piece(seed: int, n: int, m: int, room: int) -> None:
    rng = np.random.default_rng(seed)
    low, high = random_ranges(rng, n, m)
    order = rng.permutation(m)
    expected = [(row, order[place]) for row in range(n) for place in range(low[row], high[row])]

    found, row, place = [], 0, int(low[0]) if n else 0
    while row < n:
        rows, others = np.full(room, -1), np.full(room, -1)
        written, row, place = partners.spell(low, high, order, row, place, rows, others)
        assert written == room or row == n
        found += list(zip(rows[:written], others[:written], strict=True))
        assert (rows[written:] == -1).all()

    assert found == expected


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), max_size=12), st.integers(7, 9))
def test_rows_without_a_partner_stand_among_the_others(pairs: list[tuple[int, int]], n: int) -> None:
    pairs = sorted(pairs)
    expected = []
    for row in range(n):
        expected += [pair for pair in pairs if pair[0] == row] or [(row, -1)]
    left, right = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    rows, others = np.empty(len(pairs) + n, np.int64), np.empty(len(pairs) + n, np.int64)

    total = partners.with_lonely(left, right, n, rows, others)

    assert list(zip(rows[:total], others[:total], strict=True)) == expected

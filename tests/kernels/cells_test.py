"""Kernels of cells agree with plain twins."""

import random
from fractions import Fraction

import numpy as np
import pytest

from engine.kernels import cells
from engine.kernels.digits import DIGIT_BITS


def rounded(value: Fraction) -> float:
    """Once, half to even; a zero is +0.0."""
    try:
        return float(value) + 0.0
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def sum_of(parts: list[int], digits: list[int], by: int) -> float:
    return rounded(
        sum(
            (Fraction(part) * 2 ** (DIGIT_BITS * digit) for part, digit in zip(parts, digits, strict=True)),
            Fraction(0),
        )
        / 2**1074
        / by
    )


@pytest.mark.parametrize("means", [False, True])
@pytest.mark.parametrize(
    "digits", [[0], [0, 1, 2], [3, 4], [24, 25, 26], [20, 24, 25], [46, 47, 48], [5, 40]]
)
def test_sums_of_digits_are_rounded_once(digits: list[int], means: bool) -> None:
    rng = random.Random(len(digits) + means)
    states = []
    for _ in range(2_000):
        sizes = [rng.choice([0, 1, 20, 42, 43, 44, 52, 60, 62]) for _ in digits]
        parts = [rng.choice([-1, 1]) * rng.getrandbits(size) if size else 0 for size in sizes]
        if rng.random() < 0.3:  # half way between two doubles
            parts[0] = rng.choice([0, 1, -1, 1 << 41])
            parts[-1] = (rng.getrandbits(12) << 30) | rng.choice([0, 1, 1 << 29])
        states.append([rng.choice([0, 1, 1, 3, 7, 2**20, 2**31 - 1]), *parts])
    table = np.array(states, np.int64)
    out = np.empty(len(states), np.int64)
    planes = np.arange(1, len(digits) + 1)
    cells.double_sums(table, planes, np.array(digits), np.empty(0, np.int64), 0, means, out)
    wanted = [sum_of(parts, digits, count if means else 1) if count else 0.0 for count, *parts in states]
    assert out.tolist() == np.array(wanted).view(np.int64).tolist()


def test_what_is_not_finite_overrides_digits() -> None:
    states = np.array(
        [[1, 5, 0, 0, 0], [1, 5, 1, 0, 0], [2, 5, 0, 1, 0], [2, 5, 0, 1, 1], [3, 5, 0, 0, 2]], np.int64
    )
    out = np.empty(len(states), np.int64)
    cells.double_sums(states, np.array([1]), np.array([25]), np.array([2, 3, 4]), 0, False, out)
    finite = 5 * 2.0 ** (DIGIT_BITS * 25 - 1074)
    np.testing.assert_array_equal(out.view(np.float64), [finite, np.nan, np.inf, np.nan, -np.inf])


def test_cells_that_lost_their_rows_and_numbers_that_grew() -> None:
    rng = random.Random(4)
    for n in (0, 1, 40):
        states = np.array([[rng.choice([0, 2]), rng.randint(-9, 9), 99] for _ in range(n)], np.int64).reshape(
            n, 3
        )
        ends = np.array([rng.choice([3, cells.FOREVER]) for _ in range(n)], np.int64)
        of = np.arange(n, dtype=np.int32) * 2
        out = np.empty(n, np.int32)
        count = cells.emptied(of, ends, states, 0, out)
        wanted = [2 * i for i in range(n) if states[i, 0] == 0 and ends[i] == cells.FOREVER]
        assert out[:count].tolist() == wanted
        assert cells.largest(states, np.array([0, 1])) == max(
            map(abs, states[:, :2].ravel().tolist()), default=0
        )
        assert cells.largest(states, np.empty(0, np.int64)) == 0

"""Exact sums: kernels agree with fractions to the bit, whatever the values, their order and their cuts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels import digits as digits_of
from engine.kernels import exact
from engine.kernels.window_totals import put_parts
from tests.kernels.exactly import edges, finite, mean, same, total, values, variance
from tests.strategies import examples

like_size = st.lists(st.floats(1.0, 1e6), max_size=40)
"""Exponents near each other: registers of 128 bits."""


def of_groups(groups, kernel, how):
    bits = np.array([value for group in groups for value in group], np.float64).view(np.int64)
    starts = np.cumsum([0, *map(len, groups)]).astype(np.int64)
    out = np.empty(len(groups), np.int64)
    kernel(bits, starts, how, out)
    return out.view(np.float64).tolist()


@given(
    st.lists(st.lists(values, max_size=20) | like_size | st.lists(edges, max_size=6), min_size=1, max_size=4)
)
@settings(max_examples=examples(300))
def test_sums_means_and_variances_of_groups(groups):
    for kernel, how, twin in (
        (exact.sums, False, total),
        (exact.sums, True, mean),
        (exact.variances, 0, lambda group: variance(group, 0)),
        (exact.variances, 1, lambda group: variance(group, 1)),
    ):
        for found, group in zip(of_groups(groups, kernel, how), groups, strict=True):
            assert same(found, twin(group)), (kernel, how, group)


@given(st.lists(finite, min_size=1, max_size=12), st.randoms())
def test_values_that_are_taken_off_leave_no_trace(numbers, random):
    stay = numbers[: len(numbers) // 2]
    changes = [(value, 1) for value in numbers] + [(value, -1) for value in numbers[len(stay) :]]
    random.shuffle(changes)
    limbs, span, odd = np.zeros(exact.LIMBS, np.int64), np.array([exact.LIMBS, -1]), np.zeros(3, np.int64)
    for value, sign in changes:
        exact.add(limbs, span, odd, int(np.float64(value).view(np.int64)), sign)
    bits = exact.total(limbs, span, odd, np.empty(exact.LIMBS, np.int64))
    assert same(float(np.int64(bits).view(np.float64)), total(stay))


@pytest.mark.parametrize("scale", [1.0, 1e300, 5e-324])
def test_more_values_than_fit_between_two_carries(scale):
    numbers = np.random.default_rng(1).integers(-9, 1_000, 20_000) * scale
    (found,) = of_groups([numbers.tolist()], exact.sums, False)
    assert found == math.fsum(numbers)
    mixed = np.concatenate([numbers, [1e-300, 3.0]])  # not in registers
    (found,) = of_groups([mixed.tolist()], exact.sums, False)
    assert found == math.fsum(mixed)


@given(st.lists(finite, min_size=1, max_size=20))
def test_digits_make_up_the_values_and_their_squares(numbers):
    bits = np.array(numbers, np.float64).view(np.int64)
    low, high, square_low, square_high, odd = digits_of.digits_needed(bits)
    assert not odd
    for first, last, to_digits, unit in (
        (low, high, digits_of.to_digits, 1074),
        (square_low, square_high, digits_of.to_square_digits, 2162),
    ):
        digits = np.zeros((last + 1 - first, len(numbers)), np.int64)
        to_digits(bits, first, digits)
        assert not digits.size or int(np.abs(digits).max()) < 3 << digits_of.DIGIT_BITS
        limbs, span = np.zeros(exact.SQUARES_LIMBS, np.int64), np.array([exact.SQUARES_LIMBS, -1])
        for place, each in enumerate(digits):
            put_parts(each, (first + place) * digits_of.DIGIT_BITS, limbs, span)
        held = sum(int(limb) << (32 * k) for k, limb in enumerate(limbs.tolist()))
        power = 1 if unit == 1074 else 2
        wanted = sum(_units(value, power) for value in numbers)
        assert held == wanted << (32 * exact.UNIT)


def _units(value: float, power: int) -> int:
    """A value in units of 2**-1074, its square in those of 2**-2162."""
    numerator, denominator = value.as_integer_ratio()
    return numerator**power * 2 ** (1074 if power == 1 else 2162) // denominator**power


@given(st.lists(values, max_size=10))
def test_values_that_are_not_finite_are_counted(numbers):
    out = np.empty(len(numbers), np.int64)
    digits_of.to_odd(np.array(numbers, np.float64).view(np.int64), out)
    for each, value in zip(out.tolist(), numbers, strict=True):
        wanted = 0 if math.isfinite(value) else 1 if math.isnan(value) else 1 << (20 if value > 0 else 40)
        assert each == wanted

"""Sums of doubles as fractions, rounded once: what the kernels must agree with to the bit."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from fractions import Fraction

from hypothesis import strategies as st

TINY, LARGEST = 5e-324, 1.7976931348623157e308

edges = st.sampled_from(
    [0.0, -0.0, TINY, -TINY, 2.2250738585072014e-308, 1e-310, LARGEST, -LARGEST, 0.1, 1e16, 2.0**53, -1.0]
)
finite = st.floats(-1e9, 1e9) | st.floats(allow_nan=False, allow_infinity=False) | edges
values = st.floats(-1e9, 1e9) | finite | st.sampled_from([math.inf, -math.inf, math.nan])


def nearest(exact: Fraction) -> float:
    try:
        return float(exact) + 0.0
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def total(numbers: Sequence[float]) -> float:
    odd = [number for number in numbers if not math.isfinite(number)]
    return sum(odd) if odd else nearest(sum(map(Fraction, numbers), Fraction(0)))


def mean(numbers: Sequence[float]) -> float:
    """0.0 of none."""
    odd = [number for number in numbers if not math.isfinite(number)]
    if odd or not numbers:
        return sum(odd)
    return nearest(sum(map(Fraction, numbers), Fraction(0)) / len(numbers))


def variance(numbers: Sequence[float], less: int) -> float:
    """0.0 of no more than ``less``."""
    if len(numbers) <= less:
        return 0.0
    if not all(map(math.isfinite, numbers)):
        return math.nan
    exact = [Fraction(number) for number in numbers]
    squares = sum((number * number for number in exact), Fraction(0))
    return nearest((squares - sum(exact, Fraction(0)) ** 2 / len(exact)) / (len(exact) - less))


def same(found: float, wanted: float) -> bool:
    """To the bit; one NaN is as good as another."""
    if math.isnan(found) or math.isnan(wanted):
        return math.isnan(found) and math.isnan(wanted)
    return struct.pack("<d", found) == struct.pack("<d", wanted)

"""Doubles cut into digits, for exact sums of many queries side by side: one total a digit, each by itself.

Digit d weighs 2**(42 * d) units, those of :mod:`engine.kernels.exact`; digits of squares weigh as much of the
units of squares. They are so narrow that the totals of 2**18 rows never overflow 64 bits.
"""

from __future__ import annotations

import numpy as np

from engine.kernels.compiled import kernel
from engine.kernels.exact import INFINITY, MANTISSA, NEGATIVE, SQUARE_SHIFT, Int64Array, Whole, parts_of

DIGIT_BITS = 42
DIGIT_MASK = (1 << DIGIT_BITS) - 1
ODD_BITS = 20
"""The bits of each of the three counts that :func:`to_odd` puts into one number."""


@kernel
def digits_needed(bits: Int64Array) -> tuple[Whole, Whole, Whole, Whole, bool]:
    """The lowest and highest digit of the values, those of their squares, and whether a value is not finite.

    Without values but zeros the highest are -1.
    """
    least, most = np.int64(2047), np.int64(-1)
    odd = False
    for i in range(bits.shape[0]):
        if bits[i] & ~NEGATIVE == 0:
            continue
        exponent = (bits[i] >> 52) & 2047
        if exponent == 2047:
            odd = True
        else:
            least = min(least, exponent)
            most = max(most, exponent)
    if most < 0:
        return 0, -1, 0, -1, odd
    low, high = max(least - 1, np.int64(0)), max(most - 1, np.int64(0))
    return (
        low // DIGIT_BITS,
        (high + 52) // DIGIT_BITS,
        (2 * low + SQUARE_SHIFT) // DIGIT_BITS,
        (2 * high + SQUARE_SHIFT + 105) // DIGIT_BITS,
        odd,
    )


@kernel
def place_digits(part: Whole, at: Whole, first: Whole, digits: Int64Array, row: Whole) -> None:
    """Add part * 2**at units to the digits of a row. part: at most 54 bits and a sign."""
    sign = np.int64(1) if part >= 0 else np.int64(-1)
    whole = part * sign
    d = at // DIGIT_BITS
    r = at - d * DIGIT_BITS
    d -= first
    digits[d, row] += sign * ((whole << r) & DIGIT_MASK)
    middle = (whole >> (DIGIT_BITS - r)) & DIGIT_MASK
    if middle != 0:
        digits[d + 1, row] += sign * middle
    if 2 * DIGIT_BITS - r < 54:
        top = whole >> (2 * DIGIT_BITS - r)
        if top != 0:
            digits[d + 2, row] += sign * top


@kernel
def to_digits(bits: Int64Array, first: Whole, digits: Int64Array) -> None:
    """digits[d, i] = digit first + d of value i, with its sign; of values that are not finite none.

    digits: int64[n digits, n], zeros.
    """
    for i in range(bits.shape[0]):
        if bits[i] & INFINITY == INFINITY or bits[i] & ~NEGATIVE == 0:
            continue
        mantissa, exponent = parts_of(bits[i])
        place_digits(mantissa if bits[i] > 0 else -mantissa, exponent, first, digits, i)


@kernel
def to_square_digits(bits: Int64Array, first: Whole, digits: Int64Array) -> None:
    """Write the digits of the squares of the values, as :func:`to_digits` does those of the values; a digit
    may be three times as large.
    """
    half = (1 << 27) - 1
    for i in range(bits.shape[0]):
        if bits[i] & INFINITY == INFINITY or bits[i] & ~NEGATIVE == 0:
            continue
        mantissa, exponent = parts_of(bits[i])
        at = 2 * exponent + SQUARE_SHIFT
        low, high = mantissa & half, mantissa >> 27
        place_digits(low * low, at, first, digits, i)
        place_digits(2 * low * high, at + 27, first, digits, i)
        place_digits(high * high, at + 54, first, digits, i)


@kernel
def to_odd(bits: Int64Array, out: Int64Array) -> None:
    """out[i] = 1 for NaN, 2**20 for +Infinity, 2**40 for -Infinity, else 0: counts of 20 bits."""
    for i in range(bits.shape[0]):
        out[i] = 0
        if bits[i] & INFINITY == INFINITY:
            if bits[i] & MANTISSA != 0:
                out[i] = 1
            else:
                out[i] = np.int64(1) << (ODD_BITS if bits[i] > 0 else 2 * ODD_BITS)

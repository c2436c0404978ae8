"""Exact sums of doubles: fixed-point accumulators that hold any sum of doubles without rounding.

A finite double is M * 2**s units, M a whole number of at most 53 bits, 0 <= s < 2046, one unit 2**-1074. An
accumulator is an array of int64 *limbs*: limb k weighs 2**(32 * (k - UNIT)) units, so a total is the sum of
limb[k] * 2**(32 * (k - UNIT)). Limbs below UNIT hold what a division leaves. Limbs are signed and wider than
their weight: 1,024 values may be added before :func:`carry` brings all but the highest back to 32 bits.
``span`` is int64[2], the lowest and the highest limb in use.

Addition and subtraction are exact, so a total depends neither on the order of rows nor on how they were cut
or merged, and rows that leave are subtracted. It is rounded once, half to even; a zero total is +0.0, a total
beyond the range of doubles infinite. Values that are not finite are counted beside it (``odd``, int64[3]:
NaN, +Infinity, -Infinity). After Neal, Fast exact summation using small and large superaccumulators (2015).

Squares, for variances, stand in an accumulator of their own whose unit is 2**-2162.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel, step

Int64Array = npt.NDArray[np.int64]
Whole = int | np.int64

LIMB_BITS = 32
LIMB_MASK = (1 << LIMB_BITS) - 1
UNIT = 4
"""The limb that weighs one unit."""
LIMBS = UNIT + 70
"""Doubles reach to limb UNIT + 65; 2**63 of them to the one above."""
SQUARES_UNIT = UNIT + 34
"""The limb of squares that weighs 2**-1074: 2**(32 * 34) of their own units."""
SQUARE_SHIFT = 14
"""2162 - 2 * 1074: by how much the square of a unit is shifted to fit the limbs."""
SQUARES_LIMBS = UNIT + 140
CARRY_ROWS = 1_024
"""The most values that may be added between two calls of :func:`carry`."""

MANTISSA = (1 << 52) - 1
HIDDEN = 1 << 52
INFINITY = 2047 << 52
NEGATIVE = -(1 << 63)
NAN_BITS = INFINITY | 1 << 51


@kernel
def clear(limbs: Int64Array, span: Int64Array) -> None:
    """Nothing was added."""
    for k in range(span[0], span[1] + 1):
        limbs[k] = 0
    span[0] = limbs.shape[0]
    span[1] = -1


@kernel
def put(limbs: Int64Array, span: Int64Array, part: Whole, at: Whole) -> None:
    """Add part * 2**at units. part: int64; at: the bit position, from the lowest limb that weighs a unit."""
    k = UNIT + (at >> 5)
    r = at & 31
    low = (part & LIMB_MASK) << r
    high = (part >> LIMB_BITS) << r
    limbs[k] += low & LIMB_MASK
    limbs[k + 1] += ((low >> LIMB_BITS) & LIMB_MASK) + (high & LIMB_MASK)
    limbs[k + 2] += high >> LIMB_BITS
    span[0] = min(span[0], k)
    span[1] = max(span[1], k + 2)


@kernel
def parts_of(bits: Whole) -> tuple[Whole, Whole]:
    """(M, s) of a finite double, given by its bits: without its sign it is M * 2**s units."""
    exponent = (bits >> 52) & 2047
    if exponent == 0:
        return bits & MANTISSA, exponent
    return bits & MANTISSA | HIDDEN, exponent - 1


@kernel
def add(limbs: Int64Array, span: Int64Array, odd: Int64Array, bits: Whole, sign: Whole) -> None:
    """Add (sign 1) or subtract (-1) a double, given by its bits."""
    if bits & INFINITY == INFINITY:
        if bits & MANTISSA != 0:
            odd[0] += sign
        elif bits > 0:
            odd[1] += sign
        else:
            odd[2] += sign
        return
    mantissa, exponent = parts_of(bits)
    if bits < 0:
        sign = -sign
    k = UNIT + (exponent >> 5)
    r = exponent & 31
    limbs[k] += sign * ((mantissa << r) & LIMB_MASK)
    limbs[k + 1] += sign * (mantissa >> (LIMB_BITS - r))
    span[0] = min(span[0], k)
    span[1] = max(span[1], k + 1)


@kernel
def add_square(limbs: Int64Array, span: Int64Array, bits: Whole, sign: Whole) -> None:
    """Add or subtract the square of a finite double."""
    mantissa, exponent = parts_of(bits)
    at = 2 * exponent + SQUARE_SHIFT
    low = mantissa & LIMB_MASK
    high = mantissa >> LIMB_BITS
    least = np.uint64(low) * np.uint64(low)
    put(limbs, span, sign * np.int64(least & np.uint64(LIMB_MASK)), at)
    put(limbs, span, sign * (np.int64(least >> np.uint64(32)) + ((2 * high * low) & LIMB_MASK)), at + 32)
    put(limbs, span, sign * (high * high + ((2 * high * low) >> LIMB_BITS)), at + 64)


@kernel
def add_both(
    limbs: Int64Array,
    span: Int64Array,
    squares: Int64Array,
    squares_span: Int64Array,
    odd: Int64Array,
    bits: Whole,
    sign: Whole,
) -> None:
    """Add or subtract a double and its square."""
    add(limbs, span, odd, bits, sign)
    if bits & INFINITY != INFINITY:
        add_square(squares, squares_span, bits, sign)


@kernel
def carry(limbs: Int64Array, span: Int64Array) -> None:
    """All limbs but the highest in [0, 2**32), the highest in [-2**31, 2**31)."""
    if span[1] < 0:
        return
    k = span[0]
    while k < span[1]:
        over = limbs[k] >> LIMB_BITS
        limbs[k] -= over << LIMB_BITS
        limbs[k + 1] += over
        k += 1
    while limbs[k] >= 1 << 31 or limbs[k] < -(1 << 31):
        over = limbs[k] >> LIMB_BITS
        limbs[k] -= over << LIMB_BITS
        k += 1
        limbs[k] += over
        span[1] = k


@kernel
def magnitude(limbs: Int64Array, span: Int64Array, out: Int64Array) -> bool:
    """The total without its sign in 32-bit limbs, out[span[0]:span[1] + 1]; return whether it is negative.

    The accumulator is carried. out: as long as limbs.
    """
    carry(limbs, span)
    negative = bool(span[1] >= 0 and limbs[span[1]] < 0)
    over = np.int64(0)
    for k in range(span[0], span[1] + 1):
        over += -limbs[k] if negative else limbs[k]
        out[k] = over & LIMB_MASK
        over >>= LIMB_BITS
    return negative


@kernel
def divide(limbs: Int64Array, low: Whole, high: Whole, divisor: Whole) -> bool:
    """Divide 32-bit limbs low to high in place; return whether something is left. 0 < divisor < 2**31."""
    rest = np.int64(0)
    for k in range(high, low - 1, -1):
        whole = (rest << LIMB_BITS) | limbs[k]
        limbs[k] = whole // divisor
        rest = whole - limbs[k] * divisor
    return bool(rest != 0)


@kernel
def rounded(limbs: Int64Array, low: Whole, high: Whole, unit: Whole, negative: bool, left: bool) -> Whole:
    """The bits of the nearest double to 32-bit limbs low to high, half to even; 0 of a zero.

    unit: the limb that weighs 2**-1074. left: whether something is left below.
    """
    top = high
    while top >= low and limbs[top] == 0:
        top -= 1
    if top < low:
        return 0
    length = math.frexp(float(limbs[top]))[1]
    place = LIMB_BITS * (top - unit) + length - 1  # of the highest bit
    cut = max(place - 52, 0)  # the lowest bit that is kept
    k = unit + (cut >> 5)
    r = cut & 31
    kept = np.int64(0)
    if k <= top:
        kept = limbs[k] >> r if k >= low else np.int64(0)
        if k + 1 <= top and k + 1 >= low:
            kept |= limbs[k + 1] << (LIMB_BITS - r)
        if k + 2 <= top and r > 11:
            kept |= limbs[k + 2] << (2 * LIMB_BITS - r)
    half = False
    below = left
    if r > 0:
        under = limbs[k] if low <= k <= top else np.int64(0)
        half = (under >> (r - 1)) & 1 == 1
        below = below or bool(under & ((np.int64(1) << (r - 1)) - 1) != 0)
    else:
        under = limbs[k - 1] if low <= k - 1 <= top else np.int64(0)
        half = under >> (LIMB_BITS - 1) == 1
        below = below or under & (LIMB_MASK >> 1) != 0
        k -= 1
    k -= 1
    while k >= low and not below:
        below = bool(k <= top and limbs[k] != 0)
        k -= 1
    if half and (below or kept & 1 == 1):
        kept += 1
    bits = np.int64(INFINITY)
    if cut < 2046:
        bits = (np.int64(cut) << 52) + kept
    if bits == 0:
        return 0
    return bits | NEGATIVE if negative else bits


@step
def length_of(word: np.uint64) -> Whole:
    """How many bits a word has, up to its highest."""
    if word == 0:
        return np.int64(0)
    top = np.float64(word & ~(word >> np.uint64(1)))  # the same highest bit, and never rounded up to the next
    return (top.view(np.int64) >> 52) - 1022


@step
def rounded_pair(high: np.uint64, low: np.uint64, at: Whole, negative: bool, left: bool) -> Whole:
    """The bits of the nearest double to (high * 2**64 + low) * 2**at units, as :func:`rounded`; at >= 0.

    left: whether something is left below; the pair has more than 53 bits then.
    """
    length = 64 + length_of(high) if high != 0 else length_of(low)
    if length == 0:
        return np.int64(0)
    cut = max(at + length - 53, np.int64(0))  # the lowest bit that is kept
    shift = cut - at
    if shift <= 0:
        kept, rest, below = low << np.uint64(-shift), np.uint64(0), left
    elif shift < 64:
        up = np.uint64(64 - shift)
        kept, rest, below = (low >> np.uint64(shift)) | (high << up), low << up, left
    elif shift == 64:
        kept, rest, below = high, low, left
    else:
        up = np.uint64(128 - shift)
        kept, rest, below = high >> np.uint64(shift - 64), high << up, left or low != 0
    half = np.uint64(1 << 63)
    odd = below or kept & np.uint64(1) != 0
    kept += np.uint64((rest > half) | ((rest == half) & odd))  # without a branch that nobody can predict
    bits = np.int64(INFINITY)
    if cut < 2046:
        bits = (np.int64(cut) << 52) + np.int64(kept)
    return bits | NEGATIVE if negative else bits


@kernel
def divided_pair(high: np.uint64, low: np.uint64, at: Whole, count: Whole, negative: bool) -> Whole:
    """The bits of the nearest double to a pair, as above, by ``count``; 0 < count < 2**31, at >= 128."""
    length = 64 + length_of(high) if high != 0 else length_of(low)
    up = 128 - length
    if up >= 64:
        high, low, at = low, np.uint64(0), at - 64
        up -= 64
    if up > 0:
        high = (high << np.uint64(up)) | (low >> np.uint64(64 - up))
        low <<= np.uint64(up)
        at -= up
    by, mask, bits = np.uint64(count), np.uint64(LIMB_MASK), np.uint64(LIMB_BITS)
    first = high // by
    whole = ((high - first * by) << bits) | (low >> bits)
    second = whole // by
    whole = ((whole - second * by) << bits) | (low & mask)
    third = whole // by
    return rounded_pair(first, (second << bits) | third, at, negative, whole != third * by)


@kernel
def odd_bits(odd: Int64Array) -> Whole:
    """The bits of a sum with values that are not finite; 0: there are none."""
    if odd[0] > 0 or (odd[1] > 0 and odd[2] > 0):
        return NAN_BITS
    if odd[1] > 0:
        return INFINITY
    if odd[2] > 0:
        return INFINITY | NEGATIVE
    return 0


@kernel
def total(limbs: Int64Array, span: Int64Array, odd: Int64Array, scratch: Int64Array) -> Whole:
    """The bits of the sum, rounded once. scratch: int64[LIMBS]."""
    bits = odd_bits(odd)
    if bits != 0 or span[1] < 0:
        return bits
    negative = magnitude(limbs, span, scratch)
    return rounded(scratch, span[0], span[1], UNIT, negative, False)


@kernel
def mean(limbs: Int64Array, span: Int64Array, odd: Int64Array, count: Whole, scratch: Int64Array) -> Whole:
    """The bits of sum / count, rounded once. 0 < count < 2**31."""
    bits = odd_bits(odd)
    if bits != 0 or span[1] < 0:
        return bits
    negative = magnitude(limbs, span, scratch)
    low = max(0, span[0] - UNIT)
    scratch[low : span[0]] = 0
    left = divide(scratch, low, span[1], count)
    return rounded(scratch, low, span[1], UNIT, negative, left)


@kernel
def product(limbs: Int64Array, low: Whole, high: Whole, out: Int64Array) -> None:
    """out[0:2 * n] = the square of the n 32-bit limbs from low to high."""
    n = high + 1 - low
    out[: 2 * n] = 0
    for i in range(n):
        over = np.uint64(0)
        for j in range(n):
            whole = np.uint64(limbs[low + i]) * np.uint64(limbs[low + j]) + np.uint64(out[i + j]) + over
            out[i + j] = np.int64(whole & np.uint64(LIMB_MASK))
            over = whole >> np.uint64(LIMB_BITS)
        out[i + n] = np.int64(over)


@kernel
def variance(
    limbs: Int64Array,
    span: Int64Array,
    squares: Int64Array,
    squares_span: Int64Array,
    odd: Int64Array,
    count: Whole,
    less: Whole,
    scratch: Int64Array,
) -> Whole:
    """The bits of (sum of squares - sum**2 / count) / (count - less), rounded once; less < count < 2**31.

    NaN where a value is not finite. scratch: int64[3, SQUARES_LIMBS].
    """
    if odd[0] != 0 or odd[1] != 0 or odd[2] != 0:
        return NAN_BITS
    if squares_span[1] < 0:
        return 0
    sums, square, result = scratch[0], scratch[1], scratch[2]
    magnitude(squares, squares_span, result)
    magnitude(limbs, span, sums)
    low = squares_span[0]
    high = squares_span[1] + 2
    n = span[1] + 1 - span[0]
    product(sums, span[0], span[1], square)
    first = 2 * span[0] - UNIT  # the limb of squares that square[0] belongs to
    low = min(low, first)
    high = max(high, first + 2 * n)
    result[low : squares_span[0]] = 0
    result[squares_span[1] + 1 : high + 1] = 0
    over = np.int64(0)  # count * squares - square, limb by limb
    before = np.int64(0)
    for k in range(low, high + 1):
        own = square[k - first] if first <= k < first + 2 * n else np.int64(0)
        shifted = ((own << SQUARE_SHIFT) | (before >> (LIMB_BITS - SQUARE_SHIFT))) & LIMB_MASK
        before = own
        whole = result[k] * count + (over - shifted)
        result[k] = whole & LIMB_MASK
        over = whole >> LIMB_BITS
    down = max(0, low - UNIT)
    result[down:low] = 0
    left = divide(result, down, high, count)
    left = divide(result, down, high, count - less) or left
    return rounded(result, down, high, SQUARES_UNIT, False, left)


@kernel
def add_run(limbs: Int64Array, span: Int64Array, odd: Int64Array, bits: Int64Array) -> None:
    """Add doubles, fewer than 2**31, and carry.

    Where their exponents are within 40 of each other, which is the rule, in 128 bits of two registers.
    """
    if bits.shape[0] == 0:
        return
    least, most = np.int64(2047), np.int64(0)
    for i in range(bits.shape[0]):
        exponent = (bits[i] >> 52) & 2047
        least = min(least, exponent)
        most = max(most, exponent)
    if least == 0 or most == 2047 or most - least > 40:
        for i in range(bits.shape[0]):
            add(limbs, span, odd, bits[i], 1)
            if i % CARRY_ROWS == CARRY_ROWS - 1:
                carry(limbs, span)
        carry(limbs, span)
        return
    low, high = np.uint64(0), np.int64(0)
    for i in range(bits.shape[0]):
        shift = np.uint64(((bits[i] >> 52) & 2047) - least)
        mantissa = np.uint64((bits[i] & MANTISSA) | HIDDEN)
        sign = bits[i] >> 63  # 0 or -1
        part = mantissa << shift
        over = np.int64((mantissa >> np.uint64(1)) >> (np.uint64(63) - shift))
        part = (part ^ np.uint64(sign)) - np.uint64(sign)
        over = (over ^ sign) + (np.int64(1) if sign != 0 and part == 0 else np.int64(0))
        low += part
        high += over + (np.int64(1) if low < part else np.int64(0))
    at = least - 1
    put(limbs, span, np.int64(low & np.uint64(LIMB_MASK)), at)
    put(limbs, span, np.int64(low >> np.uint64(LIMB_BITS)), at + 32)
    put(limbs, span, high, at + 64)
    carry(limbs, span)


@kernel
def add_all(
    limbs: Int64Array,
    span: Int64Array,
    squares: Int64Array,
    squares_span: Int64Array,
    odd: Int64Array,
    bits: Int64Array,
) -> None:
    """Add doubles and their squares, and carry."""
    for i in range(bits.shape[0]):
        add_both(limbs, span, squares, squares_span, odd, bits[i], 1)
        if i % CARRY_ROWS == CARRY_ROWS - 1:
            carry(limbs, span)
            carry(squares, squares_span)
    carry(limbs, span)
    carry(squares, squares_span)


@kernel
def sums(bits: Int64Array, starts: Int64Array, means: bool, out: Int64Array) -> None:
    """out[g] = the bits of the sum (with ``means`` the mean) of a group of doubles; 0 of none.

    bits: int64[n], the doubles' bits; group g has starts[g] to starts[g + 1]. O(n).
    """
    limbs, scratch = np.zeros(LIMBS, np.int64), np.empty(LIMBS, np.int64)
    span = np.array([LIMBS, -1])
    odd = np.zeros(3, np.int64)
    for group in range(starts.shape[0] - 1):
        start, stop = starts[group], starts[group + 1]
        if stop - start == 1 and bits[start] & INFINITY != INFINITY:
            out[group] = bits[start] if bits[start] != NEGATIVE else 0
            continue
        add_run(limbs, span, odd, bits[start:stop])
        if means and stop > start:
            out[group] = mean(limbs, span, odd, stop - start, scratch)
        else:
            out[group] = total(limbs, span, odd, scratch)
        clear(limbs, span)
        odd[:] = 0


@kernel
def variances(bits: Int64Array, starts: Int64Array, less: Whole, out: Int64Array) -> None:
    """out[g] = the bits of the variance of a group of doubles; 0 where it has no more than ``less``.

    less: 1 of a sample, 0 of a population.
    """
    limbs, squares = np.zeros(LIMBS, np.int64), np.zeros(SQUARES_LIMBS, np.int64)
    span, squares_span = np.array([LIMBS, -1]), np.array([SQUARES_LIMBS, -1])
    odd = np.zeros(3, np.int64)
    scratch = np.empty((3, SQUARES_LIMBS), np.int64)
    for group in range(starts.shape[0] - 1):
        start, stop = starts[group], starts[group + 1]
        add_all(limbs, span, squares, squares_span, odd, bits[start:stop])
        out[group] = 0
        if stop - start > less:
            out[group] = variance(limbs, span, squares, squares_span, odd, stop - start, less, scratch)
        clear(limbs, span)
        clear(squares, squares_span)
        odd[:] = 0

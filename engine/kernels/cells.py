"""Cells: additive states of groups that rows enter and leave, and the versions they go through in a step.

A *cell* is one group of one query; ``state`` is int64[capacity, S], S whole numbers that add up over the rows
of each. A *version* is a state with the instant from which on it holds: the state before the step, from
NEVER on, and one for each instant at which a row enters or leaves the cell.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels import exact
from engine.kernels.compiled import kernel, step
from engine.kernels.digits import DIGIT_BITS

Int8Array = npt.NDArray[np.int8]
Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

NEVER = -(1 << 63)
FOREVER = (1 << 63) - 1

_NEAR = 1 << (62 - DIGIT_BITS)
"""The upper half of a number of 128 bits is below this where it may be shifted by a digit, and one added."""


@kernel
def fold(
    at: Int64Array,
    row: Int64Array,
    sign: Int8Array,
    starts: Int64Array,
    cells: Int32Array,
    values: Int64Array,
    state: Int64Array,
    latest: Int32Array,
    of: Int32Array,
    begins: Int64Array,
    ends: Int64Array,
    before: Int32Array,
    versions: Int64Array,
) -> int:
    """Rows enter (sign 1) and leave (-1) cells; return how many versions there are.

    at, row, sign: the events, in the order of their instants. starts, cells: row r is in
    cells[starts[r]:starts[r + 1]]. values: int64[rows, S]. state, latest: by cell; latest is -1 before, and
    after it the last version. of, begins, ends, before, versions: with room for two versions an event and
    cell; the cell, the instants, the version before (-1: none) and the state of each.
    O(events * cells * S).
    """
    count = 0
    width = state.shape[1]
    for event in range(at.shape[0]):
        r, instant, s = row[event], at[event], np.int64(sign[event])
        for pair in range(starts[r], starts[r + 1]):
            cell = cells[pair]
            version = latest[cell]
            if version < 0:
                version = np.int32(count)
                count += 1
                of[version] = cell
                begins[version] = NEVER
                ends[version] = FOREVER
                before[version] = -1
                for k in range(width):
                    versions[version, k] = state[cell, k]
            if begins[version] != instant:
                ends[version] = instant
                of[count] = cell
                begins[count] = instant
                ends[count] = FOREVER
                before[count] = version
                version = np.int32(count)
                count += 1
            latest[cell] = version
            for k in range(width):
                state[cell, k] += s * values[r, k]
                versions[version, k] = state[cell, k]
    return count


@kernel
def enter(starts: Int64Array, cells: Int32Array, values: Int64Array, state: Int64Array) -> None:
    """Rows enter cells, and nobody asks for versions."""
    for r in range(values.shape[0]):
        for pair in range(starts[r], starts[r + 1]):
            for k in range(values.shape[1]):
                state[cells[pair], k] += values[r, k]


@kernel
def join_equal(equal: BoolArray, before: Int32Array, ends: Int64Array, first: Int32Array) -> None:
    """A version that equals the one before it is one with it: that ends when it does.

    equal: bool[versions]. before: earlier versions have lower numbers. first: int32[versions], written: the
    first of the versions that each is one with.
    """
    for version in range(equal.shape[0]):
        if equal[version]:
            first[version] = first[before[version]]
            ends[first[version]] = ends[version]
        else:
            first[version] = version


@kernel
def emptied(cells: Int32Array, ends: Int64Array, states: Int64Array, rows: int, out: Int32Array) -> int:
    """The cells whose last version has no rows: number ``rows`` of its state is 0. Return how many there are.
    out: int32[versions].
    """
    count = 0
    for version in range(cells.shape[0]):
        if states[version, rows] == 0 and ends[version] == FOREVER:
            out[count] = cells[version]
            count += 1
    return count


@kernel
def largest(states: Int64Array, places: Int64Array) -> int:
    """The largest of these numbers of all states, without signs; 0 of none."""
    found = np.int64(0)
    for i in range(states.shape[0]):
        for place in places:
            found = max(found, abs(states[i, place]))
    return int(found)


@kernel
def carry(state: Int64Array, planes: Int64Array) -> None:
    """Bring the totals of digits back below their weight, but for the highest.

    planes: int64[P], where in a state the totals of the digits d, d + 1, ... are.
    """
    for cell in range(state.shape[0]):
        for p in range(planes.shape[0] - 1):
            over = state[cell, planes[p]] >> DIGIT_BITS
            state[cell, planes[p]] -= over << DIGIT_BITS
            state[cell, planes[p + 1]] += over


@step
def _near_sum(
    states: Int64Array, i: int, planes: Int64Array, digits: Int64Array, count: int
) -> tuple[bool, exact.Whole]:
    """Whether the digits of a state fit 128 bits, which is the rule, and the bits of their sum if so, or of
    that by ``count`` where it is not 0.
    """
    low_plane, p = 0, planes.shape[0] - 1
    while low_plane <= p and states[i, planes[low_plane]] == 0:
        low_plane += 1
    while p >= low_plane and states[i, planes[p]] == 0:
        p -= 1
    if p < low_plane:
        return True, np.int64(0)
    high, low = np.int64(0), np.uint64(0)
    for digit in range(digits[p], digits[low_plane] - 1, -1):
        if high >= _NEAR or high < -_NEAR:
            return False, np.int64(0)
        high = (high << DIGIT_BITS) | np.int64(low >> np.uint64(64 - DIGIT_BITS))
        low <<= np.uint64(DIGIT_BITS)
        if digit == digits[p]:
            part = states[i, planes[p]]
            low += np.uint64(part)
            high += (part >> 63) + (np.int64(1) if low < np.uint64(part) else np.int64(0))
            p -= 1
    negative, sign = bool(high < 0), np.uint64(high >> 63)  # 0, or all bits
    low = (low ^ sign) - sign
    above = (np.uint64(high) ^ sign) + (sign & np.uint64(low == 0))
    at = digits[low_plane] * DIGIT_BITS
    if count == 0:
        return True, exact.rounded_pair(above, low, at, negative, False)
    if at < 128 or count >= 1 << 31:
        return False, np.int64(0)
    return True, exact.divided_pair(above, low, at, count, negative)


@kernel
def double_sums(
    states: Int64Array,
    planes: Int64Array,
    digits: Int64Array,
    odd: Int64Array,
    counts: int,
    means: bool,
    out: Int64Array,
) -> None:
    """out[i] = the bits of the sum of a state's doubles, or of their mean, rounded once; 0 of no rows.

    planes: where the totals of ``digits`` are. odd: where the counts of NaN, +Infinity and -Infinity are, of
    no length where there are none. counts: where the number of rows is.
    """
    limbs, scratch = np.zeros(exact.LIMBS, np.int64), np.empty(exact.LIMBS, np.int64)
    span, others = np.array([exact.LIMBS, -1]), np.zeros(3, np.int64)
    for i in range(states.shape[0]):
        out[i] = 0
        if states[i, counts] == 0:
            continue
        plain = True
        for k in range(odd.shape[0]):
            plain = plain and states[i, odd[k]] == 0
        if plain:
            fits, bits = _near_sum(states, i, planes, digits, states[i, counts] if means else 0)
            if fits:
                out[i] = bits
                continue
        for p in range(planes.shape[0]):
            part = states[i, planes[p]]
            if part != 0:
                exact.put(limbs, span, part, digits[p] * DIGIT_BITS)
        for k in range(odd.shape[0]):
            others[k] = states[i, odd[k]]
        if means:
            out[i] = exact.mean(limbs, span, others, states[i, counts], scratch)
        else:
            out[i] = exact.total(limbs, span, others, scratch)
        exact.clear(limbs, span)


@kernel
def double_variances(
    states: Int64Array,
    planes: Int64Array,
    digits: Int64Array,
    square_planes: Int64Array,
    square_digits: Int64Array,
    odd: Int64Array,
    counts: int,
    less: int,
    out: Int64Array,
) -> None:
    """out[i] = the bits of the variance of a state's doubles; 0 of no more than ``less`` rows."""
    limbs, squares = np.zeros(exact.LIMBS, np.int64), np.zeros(exact.SQUARES_LIMBS, np.int64)
    span, squares_span = np.array([exact.LIMBS, -1]), np.array([exact.SQUARES_LIMBS, -1])
    others, scratch = np.zeros(3, np.int64), np.empty((3, exact.SQUARES_LIMBS), np.int64)
    for i in range(states.shape[0]):
        out[i] = 0
        if states[i, counts] <= less:
            continue
        for p in range(planes.shape[0]):
            if states[i, planes[p]] != 0:
                exact.put(limbs, span, states[i, planes[p]], digits[p] * DIGIT_BITS)
        for p in range(square_planes.shape[0]):
            if states[i, square_planes[p]] != 0:
                exact.put(squares, squares_span, states[i, square_planes[p]], square_digits[p] * DIGIT_BITS)
        for k in range(odd.shape[0]):
            others[k] = states[i, odd[k]]
        out[i] = exact.variance(limbs, span, squares, squares_span, others, states[i, counts], less, scratch)
        exact.clear(limbs, span)
        exact.clear(squares, squares_span)

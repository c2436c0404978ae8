"""Frames of window functions: where they begin and end, and what the values in each come to.

Rows stand partition by partition, in order. A frame is a few *pieces* in ascending order, low[p, i] to
high[p, i] of row i, empty where low is not below high.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels import exact
from engine.kernels.compiled import kernel

Int64Array = npt.NDArray[np.int64]

NONE = -1


@kernel
def first_reaching(
    values: Int64Array, targets: Int64Array, low: Int64Array, high: Int64Array, beyond: bool, out: Int64Array
) -> None:
    """out[i] = the first place from low[i] to high[i] whose value is at least targets[i], with ``beyond``
    above it; high[i] where there is none.

    values: by place, ascending from low to high. Of one low and high targets stand together and ascend.
    O(values + targets).
    """
    at = np.int64(0)
    for i in range(targets.shape[0]):
        if i == 0 or low[i] != low[i - 1] or high[i] != high[i - 1]:
            at = low[i]
        while at < high[i] and (values[at] < targets[i] or (beyond and values[at] == targets[i])):
            at += 1
        out[i] = at


@kernel
def least(keys: Int64Array, low: Int64Array, high: Int64Array, out: Int64Array) -> None:
    """out[i] = the place of the first of the least keys of frame i; -1 of none. O((keys + frames) log)."""
    n = keys.shape[0]
    tree = np.full(2 * max(n, 1), NONE, np.int64)
    for i in range(n):
        tree[n + i] = i
    for node in range(n - 1, 0, -1):
        tree[node] = _better(tree[2 * node], tree[2 * node + 1], keys)
    for i in range(out.shape[0]):
        best: exact.Whole = np.int64(NONE)
        for piece in range(low.shape[0]):
            left, right = low[piece, i] + n, high[piece, i] + n
            while left < right:
                if left & 1:
                    best = _better(best, tree[left], keys)
                    left += 1
                if right & 1:
                    right -= 1
                    best = _better(best, tree[right], keys)
                left >>= 1
                right >>= 1
        out[i] = best


@kernel
def _better(one: exact.Whole, other: exact.Whole, keys: Int64Array) -> exact.Whole:
    """The place of the lesser key; of equal ones the first."""
    if one < 0:
        return other
    if other < 0:
        return one
    if keys[other] < keys[one] or (keys[other] == keys[one] and other < one):
        return other
    return one


@kernel
def _differs(low: Int64Array, high: Int64Array, i: int) -> bool:
    for piece in range(low.shape[0]):
        if low[piece, i] != low[piece, i - 1] or high[piece, i] != high[piece, i - 1]:
            return True
    return False


@kernel
def sums(bits: Int64Array, low: Int64Array, high: Int64Array, means: bool, out: Int64Array) -> None:
    """out[i] = the bits of the exact sum (with ``means`` the mean) of the doubles of frame i; 0 of none.

    A piece that begins and ends behind the one of the row before takes O(rows between); others are added up
    from the start.
    """
    limbs, scratch = np.zeros(exact.LIMBS, np.int64), np.empty(exact.LIMBS, np.int64)
    span = np.array([exact.LIMBS, -1])
    odd = np.zeros(3, np.int64)
    pieces = low.shape[0]
    held_low, held_high = np.zeros(pieces, np.int64), np.zeros(pieces, np.int64)
    added = 0
    for i in range(out.shape[0]):
        if i > 0 and not _differs(low, high, i):
            out[i] = out[i - 1]
            continue
        count = np.int64(0)
        slides = True
        for piece in range(pieces):
            count += max(high[piece, i] - low[piece, i], 0)
            slides = slides and held_low[piece] <= low[piece, i] <= held_high[piece] <= high[piece, i]
        if not slides:
            exact.clear(limbs, span)
            odd[:] = 0
            held_low[:] = low[:, i]
            held_high[:] = low[:, i]
        for piece in range(pieces):
            for at in range(held_low[piece], low[piece, i]):
                exact.add(limbs, span, odd, bits[at], -1)
                added += 1
                if added % exact.CARRY_ROWS == 0:
                    exact.carry(limbs, span)
            for at in range(held_high[piece], high[piece, i]):
                exact.add(limbs, span, odd, bits[at], 1)
                added += 1
                if added % exact.CARRY_ROWS == 0:
                    exact.carry(limbs, span)
            held_low[piece] = low[piece, i]
            held_high[piece] = max(high[piece, i], low[piece, i])
        if means and count > 0:
            out[i] = exact.mean(limbs, span, odd, count, scratch)
        else:
            out[i] = exact.total(limbs, span, odd, scratch)


@kernel
def variances(bits: Int64Array, low: Int64Array, high: Int64Array, less: int, out: Int64Array) -> None:
    """out[i] = the bits of the variance of the doubles of frame i; 0 where it has no more than ``less``.

    less: 1 of a sample, 0 of a population. O(rows of all frames), but of the same frame once.
    """
    limbs, squares = np.zeros(exact.LIMBS, np.int64), np.zeros(exact.SQUARES_LIMBS, np.int64)
    span, squares_span = np.array([exact.LIMBS, -1]), np.array([exact.SQUARES_LIMBS, -1])
    odd = np.zeros(3, np.int64)
    scratch = np.empty((3, exact.SQUARES_LIMBS), np.int64)
    for i in range(out.shape[0]):
        if i > 0 and not _differs(low, high, i):
            out[i] = out[i - 1]
            continue
        count = np.int64(0)
        for piece in range(low.shape[0]):
            if low[piece, i] < high[piece, i]:
                count += high[piece, i] - low[piece, i]
                values = bits[low[piece, i] : high[piece, i]]
                exact.add_all(limbs, span, squares, squares_span, odd, values)
        out[i] = 0
        if count > less:
            out[i] = exact.variance(limbs, span, squares, squares_span, odd, count, less, scratch)
        exact.clear(limbs, span)
        exact.clear(squares, squares_span)
        odd[:] = 0

"""Exact sums of doubles over groups whose rows come and go, piece after piece.

Pieces and events are those of :mod:`engine.kernels.pieces`, sums those of :mod:`engine.kernels.exact`: a row
that comes is added, a row that goes is subtracted. O(rows + events + pieces).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels import exact
from engine.kernels.compiled import kernel

Int64Array = npt.NDArray[np.int64]


@kernel
def sums(
    bits: Int64Array,
    starts: Int64Array,
    piece_starts: Int64Array,
    event_starts: Int64Array,
    events: Int64Array,
    there: npt.NDArray[np.bool_],
    counts: Int64Array,
    means: bool,
    out: Int64Array,
) -> None:
    """out[p] = the bits of the sum (with ``means`` the mean) of each piece; 0 of no rows.

    bits: int64[n], the doubles' bits, group by group (starts). there: bool[n], which rows are there in the
    first piece of their group. counts: int64[pieces], how many rows each piece has.
    """
    limbs, scratch = np.zeros(exact.LIMBS, np.int64), np.empty(exact.LIMBS, np.int64)
    span, odd = np.array([exact.LIMBS, -1]), np.zeros(3, np.int64)
    for group in range(starts.shape[0] - 1):
        first, end = piece_starts[group], piece_starts[group + 1]
        run = bits[starts[group] : starts[group + 1]]
        exact.add_run(limbs, span, odd, run[there[starts[group] : starts[group + 1]]])
        for piece in range(first, end):
            if piece > first:
                for i in range(event_starts[piece], event_starts[piece + 1]):
                    exact.add(limbs, span, odd, bits[events[i] >> 1], 1 - 2 * (events[i] & 1))
                    if i % exact.CARRY_ROWS == 0:
                        exact.carry(limbs, span)
            if means and counts[piece] > 0:
                out[piece] = exact.mean(limbs, span, odd, counts[piece], scratch)
            else:
                out[piece] = exact.total(limbs, span, odd, scratch)
        exact.clear(limbs, span)
        odd[:] = 0


@kernel
def variances(
    bits: Int64Array,
    starts: Int64Array,
    piece_starts: Int64Array,
    event_starts: Int64Array,
    events: Int64Array,
    there: npt.NDArray[np.bool_],
    counts: Int64Array,
    less: int,
    out: Int64Array,
) -> None:
    """The same of variances; 0 of no more than ``less`` rows (1 of a sample, 0 of a population)."""
    limbs, squares = np.zeros(exact.LIMBS, np.int64), np.zeros(exact.SQUARES_LIMBS, np.int64)
    span, squares_span = np.array([exact.LIMBS, -1]), np.array([exact.SQUARES_LIMBS, -1])
    odd = np.zeros(3, np.int64)
    scratch = np.empty((3, exact.SQUARES_LIMBS), np.int64)
    for group in range(starts.shape[0] - 1):
        first, end = piece_starts[group], piece_starts[group + 1]
        run = bits[starts[group] : starts[group + 1]]
        present = run[there[starts[group] : starts[group + 1]]]
        exact.add_all(limbs, span, squares, squares_span, odd, present)
        for piece in range(first, end):
            if piece > first:
                for i in range(event_starts[piece], event_starts[piece + 1]):
                    sign = 1 - 2 * (events[i] & 1)
                    exact.add_both(limbs, span, squares, squares_span, odd, bits[events[i] >> 1], sign)
                    if i % exact.CARRY_ROWS == 0:
                        exact.carry(limbs, span)
                        exact.carry(squares, squares_span)
            out[piece] = 0
            if counts[piece] > less:
                out[piece] = exact.variance(
                    limbs, span, squares, squares_span, odd, counts[piece], less, scratch
                )
        exact.clear(limbs, span)
        exact.clear(squares, squares_span)
        odd[:] = 0

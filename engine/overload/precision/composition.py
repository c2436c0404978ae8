"""The precision of what an operator gives, by that of its inputs, one function for each operator.

STREAM (section 5.3) feeds such formulas bottom-up through a plan but does not print them. These are derived
here, in the comments, from counts of rows: p = 1 - FP is the share of rows given that are right, r = 1 - FN
the share of rows due that are given. Inputs err independently of each other and of the values compared, but
for what a parameter says was measured. Cost: O(points).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.overload.precision.precision import EXACT, FloatArray, Precision, share_of


def selected(input_: Precision, own: Precision = EXACT, *, wrong_passes: float = 1.0) -> Precision:
    """Returns the precision of a selection or a projection. wrong_passes: the pass rate of wrong rows over
    that of right ones.
    """
    # For one right row wrong_by_right wrong ones come in, and wrong_passes times as many of those go out.
    wrong = wrong_passes * input_.wrong_by_right if wrong_passes > 0.0 else np.zeros_like(input_.fp)
    return Precision(share_of(wrong, 1.0 + wrong), input_.fn).with_own(own)


def joined(
    left: Precision, right: Precision, own: Precision = EXACT, *, wrong_joins: float = 1.0
) -> Precision:
    """Returns the precision of a join, a semi-join or INTERSECT. wrong_joins: how often pairs with a wrong
    row match, over how often pairs of right rows do.
    """
    both = left.right * right.right
    wrong = wrong_joins * (1.0 - both)
    return Precision(share_of(wrong, both + wrong), 1.0 - left.found * right.found).with_own(own)


def united(inputs: Sequence[Precision], rates: Sequence[float], own: Precision = EXACT) -> Precision:
    """Returns the precision of UNION ALL. rates: float[inputs], rows due a second (or any other unit) of each
    input.
    """
    due = float(sum(rates))
    if due <= 0.0:
        return EXACT.with_own(own)
    found = sum((rate * each.found for rate, each in zip(rates, inputs, strict=True)), np.zeros(1))
    wrong = sum((rate * each.wrong_by_due for rate, each in zip(rates, inputs, strict=True)), np.zeros(1))
    return Precision(share_of(wrong, found + wrong), 1.0 - found / due).with_own(own)


def wrongly_removed(
    right: Precision, rows_right: float, rows_difference: float, spread: float, own_share: float = 0.0
) -> FloatArray:
    """g of EXCEPT: the share of the rows of A minus B that B wrongly holds.

    rows_right: exact rows of B; rows_difference: of A minus B; spread: share of B's wrong rows that equal a
    row of A minus B. own_share: that which a lossy synopsis of B (a Bloom filter) wrongly finds besides.
    """
    if rows_difference <= 0.0:
        return np.zeros_like(right.fp)
    held = np.clip(rows_right * right.wrong_by_due * spread / rows_difference, 0.0, 1.0)
    return 1.0 - (1.0 - held) * (1.0 - own_share)


def excepted(
    left: Precision,
    right: Precision,
    own: Precision = EXACT,
    *,
    overlap: float,
    removed: FloatArray | float = 0.0,
    wrong_removed: float = 0.0,
) -> Precision:
    """Returns the precision of A EXCEPT B over sets, and of NOT EXISTS. A row that is missing in B becomes a
    wrong row, a wrong row in B a missing one.

    overlap: d, share of A's rows due that are in B. removed: g (:func:`wrongly_removed`). wrong_removed: h,
    share of A's wrong rows that B removes.
    """
    removed = np.asarray(removed, np.float64)
    # By one row due of A: those of A minus B that were found and not removed, those that B should have
    # removed and missed, and A's own wrong rows that B left.
    right_rows = left.found * (1.0 - overlap) * (1.0 - removed)
    wrong_rows = left.found * overlap * right.fn + left.wrong_by_due * (1.0 - wrong_removed)
    missing = 1.0 - left.found * (1.0 - removed)
    return Precision(share_of(wrong_rows, right_rows + wrong_rows), missing).with_own(own)


def distinct(
    input_: Precision,
    own: Precision = EXACT,
    *,
    copies: Sequence[tuple[int, float]] = ((1, 1.0),),
    wrong_copies: float | None = None,
) -> Precision:
    """Returns the precision of DISTINCT. copies: (j, share of the values that have j copies). wrong_copies:
    mean copies of a wrong value; None: as many as right ones have.
    """
    # A value is missed when all its copies are.
    missing = sum((share * input_.fn**count for count, share in copies), np.zeros(1))
    mean = sum(count * share for count, share in copies)
    # Wrong values for each value due: wrong rows by their copies.
    wrong = mean / (mean if wrong_copies is None else wrong_copies) * input_.wrong_by_due
    return Precision(share_of(wrong, wrong + 1.0 - missing), missing).with_own(own)


COUNTED_MAX = 64
"""Counts are summed up to this; of larger means their ratio is what counts."""


def less_of_counts(one: FloatArray, other: FloatArray) -> FloatArray:
    """E[min(X, Y)] of two counts that are Poisson distributed, by their means, float64[points]: how many rows
    of a value INTERSECT ALL gives where rows draw their values at random.
    """
    one, other = np.broadcast_arrays(np.asarray(one, np.float64), np.asarray(other, np.float64))
    largest = np.maximum(np.maximum(one, other), 1.0)
    scale = np.maximum(1.0, largest / (COUNTED_MAX / 2.0))
    found = np.zeros(one.shape)
    point = [np.exp(-one / scale), np.exp(-other / scale)]
    above = [1.0 - point[0], 1.0 - point[1]]
    for count in range(1, COUNTED_MAX + 1):
        found += above[0] * above[1]  # E[min] is the sum of P(X >= k) P(Y >= k)
        point = [point[0] * (one / scale) / count, point[1] * (other / scale) / count]
        above = [np.maximum(above[0] - point[0], 0.0), np.maximum(above[1] - point[1], 0.0)]
    return found * scale

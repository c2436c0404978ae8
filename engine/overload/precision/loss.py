"""What imprecision costs: the sum that allocation makes small (STREAM, section 5.3)."""

from __future__ import annotations

import numpy as np

from engine.overload.precision.precision import FloatArray
from engine.overload.precision.shape import PrecisionFlow


def loss_of(flow: PrecisionFlow, fp_share: float) -> FloatArray:
    """Returns the loss of a query of weight 1, float64[points]: a FP + (1 - a) FN for rows; for aggregates
    their relative error, at most 1, since an answer that is off by more is worth nothing either.
    """
    if flow.error is not None:
        return np.minimum(flow.error, 1.0)
    return fp_share * flow.precision.fp + (1.0 - fp_share) * flow.missing


def excess_of(
    flow: PrecisionFlow, max_fp: float | None, max_fn: float | None, max_error: float | None
) -> list[FloatArray]:
    """By how much the precision of what is read of a query is above each of its bounds, float64[points];
    below 0: it is kept.
    """
    bounds = [(flow.precision.fp, max_fp), (flow.missing, max_fn)]
    if flow.error is not None:
        bounds.append((np.minimum(flow.error, 1e6), max_error))
    return [value - most for value, most in bounds if most is not None]

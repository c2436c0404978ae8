"""Variances and standard deviations, of numbers as doubles. O(rows)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels import folds
from engine.language.evaluation.arithmetic import as_double
from engine.language.evaluation.vector import from_column
from engine.language.query import AggregateCall
from engine.model.batch import Column, Int64Array
from engine.model.types import DOUBLE
from engine.operators.aggregates.members import Members


def spread(members: Members, call: AggregateCall) -> tuple[Column, int]:
    """VAR_SAMP, VAR_POP, STDDEV_SAMP, STDDEV_POP. Of a sample: NULL for fewer than two rows."""
    order, starts, ordinals = members.by_ordinal()
    values = doubles(members)
    means, squares = np.empty(members.groups, np.float64), np.empty(members.groups, np.float64)
    folds.fold_moments(ordinals, values if order is None else values[order], starts, means, squares)
    return finished(squares, members.counts(), call), 0


def doubles(members: Members) -> npt.NDArray[np.float64]:
    """The values as doubles, correctly rounded."""
    return as_double(from_column(members.values))


def finished(squares: npt.NDArray[np.float64], counts: Int64Array, call: AggregateCall) -> Column:
    """From sums of squared distances to what was asked for."""
    less = 1 if call.function.endswith("_SAMP") else 0
    valid = counts > less
    with np.errstate(invalid="ignore"):
        values = squares / np.maximum(counts - less, 1)
        if call.function.startswith("STDDEV"):
            values = np.sqrt(values)
    return Column(DOUBLE, values, None if valid.all() else valid)

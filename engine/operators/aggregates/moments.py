"""Variances and standard deviations, of numbers as doubles, exact until they are rounded. O(rows)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.algebra.aggregate.stage import AggregateCall
from engine.kernels import exact
from engine.language.evaluation.arithmetic import as_double
from engine.language.evaluation.vector import from_column
from engine.model.batch import Column, Int64Array
from engine.model.types import DOUBLE
from engine.operators.aggregates.members import Members


def spread(members: Members, call: AggregateCall) -> tuple[Column, int]:
    """VAR_SAMP, VAR_POP, STDDEV_SAMP, STDDEV_POP. Of a sample: NULL for fewer than two rows."""
    order, starts = members.arranged()
    values = doubles(members.values)
    variances = np.empty(members.groups, np.int64)
    exact.variances(
        (values if order is None else values[order]).view(np.int64), starts, less(call), variances
    )
    return finished(variances.view(np.float64), members.counts(), call), 0


def doubles(column: Column) -> npt.NDArray[np.float64]:
    """The values as doubles, correctly rounded."""
    return as_double(from_column(column))


def less(call: AggregateCall) -> int:
    """By how much the divisor is less than the number of rows: 1 of a sample, 0 of a population."""
    return 1 if call.aggregate.of_sample else 0


def finished(variances: npt.NDArray[np.float64], counts: Int64Array, call: AggregateCall) -> Column:
    """From variances to what was asked for."""
    valid = counts > less(call)
    values = np.sqrt(variances) if call.aggregate.is_root else variances
    return Column(DOUBLE, values, None if valid.all() else valid)

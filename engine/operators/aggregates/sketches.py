"""Aggregates by sketches of the DataSketches library, which forget rows but not how many there were.

APPROX_COUNT_DISTINCT is a HyperLogLog of 2**14 registers: off by less than 1.3% in 95 of 100 cases, exact for
a few hundred values. APPROX_QUANTILE is a t-digest: exact at both ends, and off by less than 1% of the ranks
between. Neither draws random numbers, and each is fed the rows of a group in their order in one go, so that
it is a function of the rows alone. O(rows), in Python only for the distinct values that are counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from datasketches import hll_sketch, tdigest_double, tgt_hll_type

from engine.algebra.aggregate.stage import AggregateCall
from engine.language.evaluate import constant_value
from engine.language.evaluation.arithmetic import as_double
from engine.language.evaluation.vector import from_column
from engine.model.batch import Column
from engine.model.types import BIGINT, DOUBLE, Kind
from engine.operators.aggregates.members import Members

REGISTERS_LOG2 = 14
CENTROIDS = 1_000
COUNT_ERROR = 0.013
"""In 95 of 100 cases APPROX_COUNT_DISTINCT is off by no more, relative to its value."""
RANK_ERROR = 0.01
"""APPROX_QUANTILE is off by no larger a share of the values than this."""


def distinct_count(members: Members, call: AggregateCall) -> tuple[Column, int]:
    """APPROX_COUNT_DISTINCT."""
    unlike = members.distinct()
    order, starts = unlike.arranged()
    column = unlike.values if order is None else unlike.values.take(order)
    feed = _feed(column)
    estimates = np.zeros(members.groups, np.int64)
    for group in range(members.groups):
        sketch = hll_sketch(REGISTERS_LOG2, tgt_hll_type.HLL_8)
        for value in feed(int(starts[group]), int(starts[group + 1])):
            sketch.update(value)
        estimates[group] = round(sketch.get_estimate())
    return Column(BIGINT, estimates), 0


def _feed(column: Column) -> Callable[[int, int], list[Any]]:
    """Values of rows from one to another as the sketch takes them: int, float or str."""
    if column.type.kind is Kind.STRING:
        texts = column.text_array()  # the sketch passes over empty strings: none is, behind a letter
        return lambda start, stop: ["s" + text for text in texts.slice(start, stop - start).to_pylist()]
    values = column.values
    if column.type.kind is Kind.BOOLEAN:
        values = values.astype(np.int64)
    return lambda start, stop: values[start:stop].tolist()


def quantile(members: Members, call: AggregateCall) -> tuple[Column, int]:
    """APPROX_QUANTILE(x, q), over finite values; NULL where there is none."""
    share = constant_value(call.arguments[1])
    assert share is not None
    rank = float(share.value)  # type: ignore[arg-type]
    order, starts = members.arranged()
    values = as_double(from_column(members.values))
    if order is not None:
        values = values[order]
    result = np.zeros(members.groups, np.float64)
    for group in range(members.groups):
        some = values[starts[group] : starts[group + 1]]
        some = some[np.isfinite(some)]
        if not len(some):
            result[group] = math.nan
            continue
        sketch = tdigest_double(CENTROIDS)
        sketch.update(np.ascontiguousarray(some))
        result[group] = sketch.get_quantile(rank)
    valid = ~np.isnan(result)
    return Column(DOUBLE, result, None if valid.all() else valid), 0

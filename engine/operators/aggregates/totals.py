"""COUNT, SUM, AVG.

All are added exactly and rounded once, doubles by :mod:`engine.kernels.exact`. A total of whole numbers or
decimals that does not fit its type is an error. O(rows).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.algebra.aggregate.stage import AggregateCall
from engine.kernels import aggregates, exact
from engine.model.batch import BoolArray, Column, Int64Array
from engine.model.types import BIGINT, DECIMAL_DIGITS_MAX, DOUBLE, Kind, Type
from engine.operators.aggregates.members import Members

EXACT = 2**53
"""Whole numbers up to here are doubles."""


def count(members: Members, call: AggregateCall) -> tuple[Column, int]:
    """Never NULL."""
    return Column(BIGINT, members.counts()), 0


def total(members: Members, call: AggregateCall) -> tuple[Column, int]:
    """SUM."""
    counts = members.counts()
    if call.type.kind is Kind.DOUBLE:
        return Column(DOUBLE, _doubles(members, means=False), _some(counts)), 0
    return fitted(*_exact(members), counts, call.type)


def fitted(high: Int64Array, low: Int64Array, counts: Int64Array, type_: Type) -> tuple[Column, int]:
    """Totals in two limbs as a column, NULL of no rows, and how many do not fit."""
    fits = (high >= -(2**31)) & (high < 2**31)
    values = (high << aggregates.LOW_BITS) | low
    if type_.kind is Kind.DECIMAL:
        fits &= np.abs(np.where(fits, values, 0)) < 10**DECIMAL_DIGITS_MAX
    there = counts > 0
    wrong = int(np.count_nonzero(there & ~fits))
    valid = there & fits
    return Column(type_, values, None if valid.all() else valid), wrong


def average(members: Members, call: AggregateCall) -> tuple[Column, int]:
    """AVG: a DOUBLE."""
    counts = members.counts()
    type_ = members.values.type
    if type_.kind is Kind.DOUBLE:
        return Column(DOUBLE, _doubles(members, means=True), _some(counts)), 0
    return Column(DOUBLE, quotients(*_exact(members), counts, type_.scale), _some(counts)), 0


def quotients(high: Int64Array, low: Int64Array, counts: Int64Array, scale: int) -> npt.NDArray[np.float64]:
    """total / (count * 10**scale), correctly rounded."""
    factor = 10**scale
    values = (high << aggregates.LOW_BITS) | low
    small = (high >= -(2**20)) & (high < 2**20) & (np.maximum(counts, 1) <= EXACT // factor)
    result = np.where(small, values, 0) / (np.where(small, np.maximum(counts, 1), 1) * float(factor))
    for group in np.flatnonzero(~small & (counts > 0)):
        whole = (int(high[group]) << aggregates.LOW_BITS) + int(low[group])
        result[group] = whole / (int(counts[group]) * factor)
    return result


def _some(counts: Int64Array) -> BoolArray | None:
    valid: BoolArray = counts > 0
    return None if valid.all() else valid


def _exact(members: Members) -> tuple[Int64Array, Int64Array]:
    """The totals of whole numbers, unscaled ones for decimals, in two limbs."""
    order, starts = members.arranged()
    values = members.values.values.astype(np.int64, copy=False)
    high, low = np.empty(members.groups, np.int64), np.empty(members.groups, np.int64)
    aggregates.sums(values if order is None else values[order], starts, high, low)
    return high, low


def _doubles(members: Members, *, means: bool) -> npt.NDArray[np.float64]:
    order, starts = members.arranged()
    values = members.values.values
    out = np.empty(members.groups, np.int64)
    exact.sums((values if order is None else values[order]).view(np.int64), starts, means, out)
    return out.view(np.float64)

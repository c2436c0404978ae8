"""Aggregates by the order of the values: MEDIAN, PERCENTILE_CONT, PERCENTILE_DISC and MODE.

Exact. NaN is above all numbers. O(rows log rows).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from engine.algebra.aggregate.stage import AggregateCall
from engine.language.evaluate import constant_value
from engine.model.batch import Column, Int64Array
from engine.model.types import DOUBLE
from engine.operators.aggregates.members import Members
from engine.operators.aggregates.moments import doubles
from engine.operators.aggregates.picks import at
from engine.operators.keys import order_keys, with_one_zero

MIDDLE = Fraction(1, 2)


def continuous(members: Members, call: AggregateCall) -> tuple[Column, int]:
    """PERCENTILE_CONT: between the two values beside the place (n - 1) * fraction, on a line."""
    order, starts = _sorted(members)
    counts = np.diff(starts)
    share = _fraction(call)
    if _descends(call):
        share = 1 - share
    below = _by_count(counts, lambda n: (n - 1) * share // 1).astype(np.int64)
    part = _by_count(counts, lambda n: (n - 1) * share % 1)
    there = counts > 0
    values = np.append(doubles(members.values)[order], 0.0)
    low = np.where(there, starts[:-1] + below, members.m)
    high = np.where(there & (part > 0), low + 1, low)
    with np.errstate(invalid="ignore"):
        between = values[low] * (1.0 - part) + values[high] * part
    found = np.where(part > 0, between, values[low]) + 0.0
    return Column(DOUBLE, found, None if there.all() else there), 0


def discrete(members: Members, call: AggregateCall) -> tuple[Column, int]:
    """PERCENTILE_DISC: the first value up to which there is at least this fraction."""
    order, starts = _sorted(members)
    counts = np.diff(starts)
    share = _fraction(call)
    ahead = _by_count(counts, lambda n: max(-(-n * share // 1) - 1, 0)).astype(np.int64)
    places = starts[1:] - 1 - ahead if _descends(call) else starts[:-1] + ahead
    return with_one_zero(at(members, order, np.where(counts > 0, places, -1))), 0


def mode(members: Members, call: AggregateCall) -> tuple[Column, int]:
    """MODE: the most frequent value, the least of several; of equal ones the first."""
    order, starts = _sorted(members)
    keys = order_keys(members.values)[order]
    codes = np.repeat(np.arange(members.groups), np.diff(starts))
    begins = np.flatnonzero(np.append(True, (keys[1:] != keys[:-1]) | (codes[1:] != codes[:-1]))[: members.m])
    lengths = np.diff(np.append(begins, members.m))
    ranked = np.lexsort([begins, -lengths, codes[begins]])
    best = np.full(members.groups, -1, np.int64)
    best[codes[begins[ranked[::-1]]]] = begins[ranked[::-1]]
    return with_one_zero(at(members, order, best)), 0


def _sorted(members: Members) -> tuple[Int64Array, Int64Array]:
    """(rows group by group, each group's from the least value to the greatest; where each group begins)."""
    _, starts = members.arranged()
    keys = order_keys(members.values)
    if members.codes is None:
        return np.argsort(keys, kind="stable"), starts
    return np.lexsort([keys, members.codes]), starts


def _by_count(counts: Int64Array, one: Callable[[int], float | Fraction]) -> npt.NDArray[np.float64]:
    """A function of how many values a group has, computed exactly, once for each number; 0 of none."""
    unlike, inverse = np.unique(counts, return_inverse=True)
    return np.array([float(one(int(n))) if n else 0.0 for n in unlike], np.float64)[inverse]


def _fraction(call: AggregateCall) -> Fraction:
    if len(call.arguments) < 2:
        return MIDDLE
    literal = constant_value(call.arguments[1])
    assert literal is not None
    return Fraction(literal.value)  # type: ignore[arg-type]


def _descends(call: AggregateCall) -> bool:
    """Whether the order is from the greatest to the least."""
    return len(call.arguments) > 2

"""Aggregates of pairs of numbers (y, x): covariances, the correlation, and regression on a line.

Two passes: means first, then sums of products of what lies beside them, each sum exact and rounded once. A
pair with a number that is not finite makes NaN of all but the count and the means. O(rows), in Python.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from engine.algebra.aggregate.stage import AggregateCall
from engine.model.batch import Column
from engine.operators.aggregates.members import Members
from engine.operators.aggregates.moments import doubles


@dataclass(frozen=True, slots=True)
class _Sums:
    """n pairs, at least one: their means, and the sums of the products of what lies beside these."""

    n: int
    y: float
    x: float
    yy: float
    xx: float
    yx: float


def _sums(ys: Sequence[float], xs: Sequence[float]) -> _Sums:
    n = len(ys)
    y, x = _mean(ys), _mean(xs)
    if not (all(map(math.isfinite, ys)) and all(map(math.isfinite, xs))):
        return _Sums(n, y, x, math.nan, math.nan, math.nan)
    beside_y, beside_x = [one - y for one in ys], [one - x for one in xs]
    return _Sums(
        n, y, x, _products(beside_y, beside_y), _products(beside_x, beside_x), _products(beside_y, beside_x)
    )  # fmt: skip


def _mean(values: Sequence[float]) -> float:
    return _sum(values) / len(values)


def _products(left: Sequence[float], right: Sequence[float]) -> float:
    return _sum([a * b for a, b in zip(left, right, strict=True)])


def _sum(values: Sequence[float]) -> float:
    """Exact, rounded once, whatever the order of the values."""
    try:
        return math.fsum(values)
    except ValueError:  # infinity less infinity
        return math.nan
    except OverflowError:  # on the way: of values that are finite
        total = sum(map(Fraction, values))
        try:
            return float(total)
        except OverflowError:
            return math.inf if total > 0 else -math.inf


def _correlation(sums: _Sums) -> float | None:
    if sums.xx == 0 or sums.yy == 0:
        return None
    found = sums.yx / (math.sqrt(sums.xx) * math.sqrt(sums.yy))
    return max(min(found, 1.0), -1.0) if found == found else found


def _slope(sums: _Sums) -> float | None:
    return None if sums.xx == 0 else sums.yx / sums.xx


def _intercept(sums: _Sums) -> float | None:
    slope = _slope(sums)
    return None if slope is None else sums.y - slope * sums.x


def _explained(sums: _Sums) -> float | None:
    if sums.xx == 0:
        return None
    if sums.yy == 0:
        return 1.0
    correlation = _correlation(sums)
    return None if correlation is None else correlation * correlation


_VALUES: dict[str, Callable[[_Sums], float | None]] = {
    "COVAR_POP": lambda sums: sums.yx / sums.n,
    "COVAR_SAMP": lambda sums: sums.yx / (sums.n - 1) if sums.n > 1 else None,
    "CORR": _correlation,
    "REGR_COUNT": lambda sums: sums.n,
    "REGR_AVGX": lambda sums: sums.x,
    "REGR_AVGY": lambda sums: sums.y,
    "REGR_SXX": lambda sums: sums.xx,
    "REGR_SYY": lambda sums: sums.yy,
    "REGR_SXY": lambda sums: sums.yx,
    "REGR_SLOPE": _slope,
    "REGR_INTERCEPT": _intercept,
    "REGR_R2": _explained,
}


def of_pairs(ys: Sequence[float], xs: Sequence[float], function: str) -> float | None:
    """The value of a function of pairs; None of none, but REGR_COUNT is 0."""
    if not ys:
        return 0 if function == "REGR_COUNT" else None
    return _VALUES[function](_sums(ys, xs))


def _of_groups(members: Members, call: AggregateCall) -> tuple[Column, int]:
    order, starts = members.arranged()
    rows = np.arange(members.m) if order is None else order
    ys, xs = (doubles(column)[rows].tolist() for column in (members.values, *members.more))
    found = [
        of_pairs(ys[start:stop], xs[start:stop], call.function)
        for start, stop in itertools.pairwise(starts.tolist())
    ]
    there = np.array([value is not None for value in found], np.bool_)
    values = np.array([value or 0 for value in found], call.type.dtype)
    return Column(call.type, values, None if there.all() else there), 0


FUNCTIONS: dict[str, Callable[[Members, AggregateCall], tuple[Column, int]]] = dict.fromkeys(
    _VALUES, _of_groups
)

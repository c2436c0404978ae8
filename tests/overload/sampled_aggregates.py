"""Estimates of aggregates from a sample, by the formulas of :mod:`engine.overload.sampled_aggregates`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from engine.overload.sampled_aggregates import NORMAL_95, SQUARES


def estimate(function: str, values: Sequence[float], q: float) -> tuple[float | None, float | None]:
    """COUNT, SUM or AVG and half the width of its 95 % interval, relative to it; None: nothing is told.

    values: of the rows kept.
    """
    n, total = len(values), math.fsum(values)
    if function == "COUNT":
        return n / q, NORMAL_95 * math.sqrt((1 - q) / n) if n else None
    if not n:
        return None, None
    square = total * total
    squares = math.fsum(value * value for value in values)
    if function == "AVG":
        squares = max(0.0, squares - square / n)
    known = SQUARES[0] <= square <= SQUARES[1] and math.isfinite(squares)
    error = NORMAL_95 * math.sqrt((1 - q) * squares / square) if known else None
    return (total / q if function == "SUM" else total / n), error


def covers(value: float | None, error: float | None, truth: float) -> bool:
    """Whether the 95 % interval holds this; without an interval it does not."""
    return value is not None and error is not None and abs(truth - value) <= error * abs(value)

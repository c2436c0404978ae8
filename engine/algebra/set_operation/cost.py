"""How many rows UNION, INTERSECT and EXCEPT give."""

from __future__ import annotations

from dataclasses import replace
from math import erf, exp, pi, sqrt

from engine.algebra.set_operation.stage import SetOperation
from engine.dataflow.cost.estimated_rows import JOINED
from engine.dataflow.cost.flows import (
    Flow,
    compared_by,
    compared_samples,
    one_each,
    own_values,
    shared_values,
    taken_early,
)
from engine.dataflow.cost.statistics import Statistics
from engine.language.update_patterns import PatternEdge


def flow_above(
    stage: SetOperation, edge: PatternEdge, below: Flow, inner: Flow | None, known: Statistics
) -> Flow:
    assert inner is not None
    if stage.kind == "union":
        return _united(edge, below, inner)
    shared = shared_values(stage, below, inner, known)
    if not stage.all:
        share = shared if stage.kind == "intersect" else 1 - shared
        once = one_each(below, edge, own_values(stage, below, inner, known)).scaled(share, edge)
    else:
        rest = _rest(stage, below, inner, known)
        rows = below.rows - rest if stage.kind == "intersect" else rest
        once = below.scaled(rows / below.rows if below.rows else 0.0, edge)
    if stage.kind == "intersect":
        span, early = min(below.span_ms, inner.span_ms), max(below.premature, inner.premature)
        return replace(once, span_ms=span, premature=early)
    mine, others = compared_samples(stage, below, inner, known)
    if mine is not None and others is not None and stage.all:
        once = replace(once, left=(compared_by(stage, below, inner)[0], mine.without(others)))
    refilled = inner.leaving * shared * (once.rows / below.rows if below.rows else 0.0)
    return replace(once, rate=once.rate + refilled, premature=taken_early(below, inner, shared))


def rows_above(stage: SetOperation, rows: float, others: float) -> float:
    if stage.kind == "union":
        return rows + others
    return min(rows, others) * JOINED if stage.kind == "intersect" else max(rows - others, rows * JOINED)


def _united(edge: PatternEdge, left: Flow, right: Flow) -> Flow:
    pairs = zip(left.columns, right.columns, strict=False)
    columns = tuple(one if one == other else None for one, other in pairs)
    rate, rows = left.rate + right.rate, left.rows + right.rows
    span, early = max(left.span_ms, right.span_ms), max(left.premature, right.premature)
    return Flow(rate, rows, edge, columns, span, early, 0.0)


def _rest(stage: SetOperation, left: Flow, right: Flow, known: Statistics) -> float:
    """How many left rows a bag difference leaves: exactly where all rows were looked at."""
    mine, others = compared_samples(stage, left, right, known)
    if mine is not None and others is not None and left.is_plain and right.is_plain:
        whole = mine.rows >= left.rows and others.rows >= right.rows
        if whole:
            return left.rows * mine.surplus(others)
    shared = shared_values(stage, left, right, known)
    values = max(1.0, own_values(stage, left, right, known) * shared)
    shared_rows = left.rows * shared
    return min(
        left.rows, _surplus(shared_rows, min(right.rows, shared_rows), values) + left.rows - shared_rows
    )


def _surplus(left: float, right: float, values: float) -> float:
    """By how much, over all values, there are more left rows than right ones, of so many of each spread over
    the values at random: the mean of a normal variable where it is positive.
    """
    mean, deviation = (left - right) / values, sqrt((left + right) / values)
    if not deviation:
        return 0.0
    at = mean / deviation
    below = (1 + erf(at / sqrt(2))) / 2
    return values * (mean * below + deviation * exp(-at * at / 2) / sqrt(2 * pi))

"""How many pairs a join gives."""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.join.stage import Join
from engine.dataflow.cost.estimated_rows import JOINED
from engine.dataflow.cost.flows import (
    FILTERED,
    Flow,
    compared_by,
    compared_samples,
    pushed_out,
    values_of,
    with_partner,
)
from engine.dataflow.cost.statistics import Statistics
from engine.language.update_patterns import PatternEdge


def flow_above(stage: Join, edge: PatternEdge, below: Flow, inner: Flow | None, known: Statistics) -> Flow:
    assert inner is not None
    if stage.kind in ("semi", "anti"):
        return with_partner(stage, edge, below, inner, known)
    columns = (*below.columns, *inner.columns)
    if stage.latest is not None:
        return replace(below, edge=edge, columns=columns, premature=pushed_out(edge), is_plain=False)
    one, other = _partners(stage, below, inner, known)
    rate, rows = below.rate * one + inner.rate * other, below.rows * one
    if stage.kind in ("left", "full"):
        rate, rows = max(rate, below.rate), max(rows, below.rows)
    if stage.kind in ("right", "full"):
        rate, rows = max(rate, inner.rate), max(rows, inner.rows)
    early = below.leaving * below.premature * one + inner.leaving * inner.premature * other
    share = pushed_out(edge) if stage.kind != "inner" else min(1.0, early / rate) if rate else 0.0
    return Flow(rate, rows, edge, columns, min(below.span_ms, inner.span_ms), share, 0.0)


def own_values(stage: Join, below: Flow, inner: Flow | None, known: Statistics) -> float:
    """In how many the rows of both inputs may differ: rows of one are equal to one in so many."""
    assert inner is not None
    if not stage.keys:
        return 1.0
    mine, others = compared_by(stage, below, inner)
    return max(values_of(below, mine, known), values_of(inner, others, known))


def rows_above(stage: Join, rows: float, others: float) -> float:
    if stage.kind in ("semi", "anti"):
        return rows * JOINED
    found = max(rows, others) if stage.keys else rows * others * FILTERED
    left = rows if stage.kind in ("left", "full") else 0.0
    right = others if stage.kind in ("right", "full") else 0.0
    return max(found, left, right)


def _partners(stage: Join, left: Flow, right: Flow, known: Statistics) -> tuple[float, float]:
    """How many partners a left row finds, and a right one."""
    share = 1.0 if stage.condition is None else FILTERED
    if stage.keys:
        mine, others = compared_samples(stage, left, right, known)
        plain = left.is_plain and right.is_plain
        met = None if mine is None or others is None or not plain else mine.partners(others)
        share *= met if met is not None else 1 / own_values(stage, left, right, known)
    return share * right.rows, share * left.rows

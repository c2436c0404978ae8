"""How many rows IN and EXISTS keep."""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.semi_join.stage import SemiJoin
from engine.dataflow.cost.estimated_rows import JOINED
from engine.dataflow.cost.flows import Flow, compared_by, compared_samples, with_partner
from engine.dataflow.cost.statistics import Statistics
from engine.language.update_patterns import PatternEdge


def flow_above(
    stage: SemiJoin, edge: PatternEdge, below: Flow, inner: Flow | None, known: Statistics
) -> Flow:
    assert inner is not None
    kept = with_partner(stage, edge, below, inner, known)
    mine, others = compared_samples(stage, below, inner, known)
    if not stage.negated or mine is None or others is None:
        return kept
    compared, _ = compared_by(stage, below, inner)
    return replace(kept, left=(compared, mine.outside(others)))


def rows_above(stage: SemiJoin, rows: float, others: float) -> float:
    return rows * JOINED

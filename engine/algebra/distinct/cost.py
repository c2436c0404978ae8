"""How many distinct rows there are."""

from __future__ import annotations

from engine.algebra.distinct.stage import Distinct
from engine.dataflow.cost.estimated_rows import KEPT_ONCE
from engine.dataflow.cost.flows import Flow, one_each, values_of
from engine.dataflow.cost.statistics import Statistics
from engine.language.update_patterns import PatternEdge


def flow_above(
    stage: Distinct, edge: PatternEdge, below: Flow, inner: Flow | None, known: Statistics
) -> Flow:
    return one_each(below, edge, own_values(stage, below, inner, known))


def own_values(stage: Distinct, below: Flow, inner: Flow | None, known: Statistics) -> float:
    return values_of(below, below.columns, known)


def rows_above(stage: Distinct, rows: float, others: float) -> float:
    return rows * KEPT_ONCE

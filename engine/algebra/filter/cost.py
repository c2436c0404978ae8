"""How many rows a condition lets through."""

from __future__ import annotations

from engine.algebra.filter.stage import Filter
from engine.dataflow.cost.flows import FILTERED, Flow
from engine.dataflow.cost.statistics import Statistics
from engine.language.update_patterns import PatternEdge


def flow_above(stage: Filter, edge: PatternEdge, below: Flow, inner: Flow | None, known: Statistics) -> Flow:
    return below.scaled(FILTERED, edge)


def rows_above(stage: Filter, rows: float, others: float) -> float:
    return rows * FILTERED

"""How many rows LIMIT gives."""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.limit.stage import Limit
from engine.dataflow.cost.flows import Flow, pushed_out
from engine.dataflow.cost.statistics import Statistics
from engine.language.update_patterns import PatternEdge


def flow_above(stage: Limit, edge: PatternEdge, below: Flow, inner: Flow | None, known: Statistics) -> Flow:
    share = 1.0 if stage.count is None or not below.rows else min(1.0, stage.count / below.rows)
    return replace(below.scaled(share, edge), premature=pushed_out(edge))


def rows_above(stage: Limit, rows: float, others: float) -> float:
    left = max(0.0, rows - stage.offset)
    return left if stage.count is None else min(left, stage.count)

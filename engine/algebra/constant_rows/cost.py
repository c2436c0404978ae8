"""How many rows of constants there are."""

from __future__ import annotations

from math import inf

from engine.algebra.constant_rows.stage import ConstantRows
from engine.dataflow.cost.flows import Flow
from engine.dataflow.cost.statistics import Statistics
from engine.language.update_patterns import PatternEdge


def flow_above(
    stage: ConstantRows, edge: PatternEdge, below: Flow, inner: Flow | None, known: Statistics
) -> Flow:
    rows, columns = float(len(stage.rows)), (None,) * len(stage.columns)
    return Flow(0.0, rows, edge, columns, inf, 0.0, below.steps_per_s)


def rows_above(stage: ConstantRows, rows: float, others: float) -> float:
    return len(stage.rows)

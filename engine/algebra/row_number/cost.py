"""How many numbered rows there are."""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.row_number.stage import RowNumber
from engine.dataflow.cost.flows import TOPPED, Flow, pushed_out
from engine.dataflow.cost.statistics import Statistics
from engine.language.update_patterns import PatternEdge


def flow_above(
    stage: RowNumber, edge: PatternEdge, below: Flow, inner: Flow | None, known: Statistics
) -> Flow:
    numbered = below if stage.count is None else below.scaled(TOPPED, edge)
    return replace(numbered, edge=edge, columns=(*below.columns, None), premature=pushed_out(edge))


def rows_above(stage: RowNumber, rows: float, others: float) -> float:
    return rows if stage.count is None else rows * TOPPED

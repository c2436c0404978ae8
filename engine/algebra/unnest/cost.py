"""How many rows UNNEST gives: how many elements arrays have is not known."""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.unnest.stage import Unnest
from engine.dataflow.cost.flows import Flow
from engine.dataflow.cost.statistics import Statistics
from engine.language.update_patterns import PatternEdge

ELEMENTS = 4.0
"""So many elements an array is taken to have."""


def flow_above(stage: Unnest, edge: PatternEdge, below: Flow, inner: Flow | None, known: Statistics) -> Flow:
    columns = (*below.columns, *(None for _ in stage.own_columns))
    return replace(below.scaled(ELEMENTS, edge), columns=columns, is_plain=False)


def rows_above(stage: Unnest, rows: float, others: float) -> float:
    return rows * ELEMENTS

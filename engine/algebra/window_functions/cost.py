"""How many rows window functions give: as many as are below."""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.window_functions.stage import WindowFunctions
from engine.dataflow.cost.flows import Flow, origins_of, pushed_out, values_of
from engine.dataflow.cost.statistics import Statistics
from engine.language.update_patterns import PatternEdge


def flow_above(
    stage: WindowFunctions, edge: PatternEdge, below: Flow, inner: Flow | None, known: Statistics
) -> Flow:
    columns = (*below.columns, *(None for _ in stage.calls))
    return replace(below, edge=edge, columns=columns, premature=pushed_out(edge))


def own_values(stage: WindowFunctions, below: Flow, inner: Flow | None, known: Statistics) -> float:
    return values_of(below, origins_of(below, stage.keys), known) if stage.keys else 1.0

"""How many groups there are, and how often one changes."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from engine.algebra.aggregate.stage import Aggregate
from engine.dataflow.cost.estimated_rows import GROUPED
from engine.dataflow.cost.flows import Flow, Origin, one_each, origins_of, values_of
from engine.dataflow.cost.statistics import Statistics
from engine.language.update_patterns import PatternEdge


def flow_above(
    stage: Aggregate, edge: PatternEdge, below: Flow, inner: Flow | None, known: Statistics
) -> Flow:
    """A row for each group, which another takes the place of with each row that comes or goes."""
    columns, groups = _keys(stage, below), own_values(stage, below, inner, known)
    if not stage.calls:
        return replace(one_each(below, edge, groups), columns=columns)
    rate = below.rate + below.leaving
    computed = [None] * len(stage.calls)
    return Flow(rate, groups, edge, (*columns, *computed), inf, 0.0, below.steps_per_s)


def own_values(stage: Aggregate, below: Flow, inner: Flow | None, known: Statistics) -> float:
    return values_of(below, _keys(stage, below), known) if stage.keys else 1.0


def rows_above(stage: Aggregate, rows: float, others: float) -> float:
    return rows * GROUPED if stage.keys else 1


def _keys(stage: Aggregate, below: Flow) -> tuple[Origin | None, ...]:
    return origins_of(below, (key.expression for key in stage.keys))

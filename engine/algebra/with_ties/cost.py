"""How many rows the first ones are with their ties."""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.with_ties.stage import WithTies
from engine.dataflow.cost.flows import Flow, origins_of, pushed_out, values_of
from engine.dataflow.cost.statistics import Statistics
from engine.language.update_patterns import PatternEdge


def flow_above(
    stage: WithTies, edge: PatternEdge, below: Flow, inner: Flow | None, known: Statistics
) -> Flow:
    """The last row is, on average, in the middle of those that are equal to it."""
    ties = below.rows / own_values(stage, below, inner, known) / 2 if stage.count else 0.0
    share = min(1.0, (stage.count + ties) / below.rows) if below.rows else 1.0
    return replace(below.scaled(share, edge), premature=pushed_out(edge))


def own_values(stage: WithTies, below: Flow, inner: Flow | None, known: Statistics) -> float:
    return values_of(below, origins_of(below, stage.expressions()), known)


def rows_above(stage: WithTies, rows: float, others: float) -> float:
    """At least: how many tie is not known."""
    return min(max(0.0, rows - stage.offset), stage.count)

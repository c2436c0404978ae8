"""What SELECT gives: as many rows as are below."""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.project.stage import Project
from engine.dataflow.cost.flows import Flow, origins_of
from engine.dataflow.cost.statistics import Statistics
from engine.language.update_patterns import PatternEdge


def flow_above(stage: Project, edge: PatternEdge, below: Flow, inner: Flow | None, known: Statistics) -> Flow:
    columns = origins_of(below, stage.expressions())
    return replace(below, edge=edge, columns=columns)

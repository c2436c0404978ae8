"""SELECT in a graph."""

from __future__ import annotations

from engine.algebra.project.stage import Project
from engine.dataflow.operators.rows import ProjectSpec
from engine.dataflow.plan import Asked, OperatorOver, Plan
from engine.language.query import Query


def plan_over(stage: Project, below: Plan, query: Query, place: int, asked: Asked) -> Plan:
    return OperatorOver(ProjectSpec(stage.outputs), (), below, stage)

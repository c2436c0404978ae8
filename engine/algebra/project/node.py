"""SELECT in a graph."""

from __future__ import annotations

from engine.algebra.project.stage import Project
from engine.dataflow.operators.rows import ProjectSpec
from engine.dataflow.plan import Asked, Plan, Step
from engine.language.query import Query


def plan_over(stage: Project, below: Plan, query: Query, place: int, asked: Asked) -> Plan:
    return Step(ProjectSpec(stage.outputs), (), below, stage)

"""SELECT in a graph."""

from __future__ import annotations

from collections.abc import Container

from engine.algebra.project.stage import Project
from engine.dataflow.operators.rows import ProjectSpec
from engine.dataflow.plan import Plan, Step
from engine.language.query import Query
from engine.model.source import SourceName


def plan_over(stage: Project, below: Plan, query: Query, place: int, tables: Container[SourceName]) -> Plan:
    return Step(ProjectSpec(stage.outputs), (), below, stage)

"""How SELECT is shown."""

from __future__ import annotations

from engine.algebra.project.stage import Project
from engine.language.plan_files import PlanWriter, namer
from engine.language.render import render_output
from engine.language.sql_text import expression_sql


def render_stage(stage: Project) -> list[str]:
    return ["project", *(f"  {render_output(output)}" for output in stage.outputs)]


def plan_node(stage: Project, below: str, columns: list[str], writer: PlanWriter) -> tuple[str, list[str]]:
    named = namer(columns)
    found = {output.name: expression_sql(output.expression, named) for output in stage.outputs}
    return writer.add("project", {"op": "project", "input": below, "columns": found}), [*found]

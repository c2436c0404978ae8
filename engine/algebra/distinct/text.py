"""How DISTINCT is shown."""

from __future__ import annotations

from engine.algebra.distinct.stage import Distinct
from engine.language.plan_files import PlanWriter


def render_stage(stage: Distinct) -> list[str]:
    return ["distinct"]


def keyword(stage: Distinct) -> str:
    return "DISTINCT"


def plan_node(stage: Distinct, below: str, columns: list[str], writer: PlanWriter) -> tuple[str, list[str]]:
    return writer.add("distinct", {"op": "distinct", "input": below}), columns

"""How ORDER BY is shown."""

from __future__ import annotations

from engine.algebra.sort.stage import Sort
from engine.language.plan_files import PlanWriter, namer
from engine.language.render import render_sort_key
from engine.language.sql_text import sort_key_sql


def render_stage(stage: Sort) -> list[str]:
    return [f"sort by {', '.join(render_sort_key(key) for key in stage.keys)}"]


def plan_node(stage: Sort, below: str, columns: list[str], writer: PlanWriter) -> tuple[str, list[str]]:
    by = [sort_key_sql(key, namer(columns)) for key in stage.keys]
    return writer.add("sort", {"op": "sort", "input": below, "by": by}), columns

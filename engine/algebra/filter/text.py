"""How a condition above other stages is shown."""

from __future__ import annotations

from collections.abc import Sequence

from engine.algebra.filter.stage import Filter
from engine.language.plan_files import PlanWriter, namer
from engine.language.render import render_expression
from engine.language.sql_text import expression_sql


def render_stage(stage: Filter) -> list[str]:
    return [f"filter {render_expression(stage.predicate)}"]


def operator_words(stage: Filter, lines: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    return "filter", (lines[0].removeprefix("filter "),)


def why_not_preferred(stage: Filter) -> str:
    return "aggregates of what was found are estimates"


def plan_node(stage: Filter, below: str, columns: list[str], writer: PlanWriter) -> tuple[str, list[str]]:
    where = expression_sql(stage.predicate, namer(columns))
    return writer.add("filter", {"op": "filter", "input": below, "where": where}), columns

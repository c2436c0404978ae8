"""How GROUP BY is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.algebra.aggregate.stage import Aggregate
from engine.language.plan_files import PlanWriter, namer
from engine.language.render import render_call, render_output
from engine.language.sql_text import call_sql, expression_sql


def render_stage(stage: Aggregate) -> list[str]:
    keys = [f"  by {render_output(key)}" for key in stage.keys]
    return ["aggregate", *keys, *(f"  {render_call(call)}" for call in stage.calls)]


def operator_words(stage: Aggregate, lines: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    return "group", tuple(lines[1:])


def keyword(stage: Aggregate) -> str:
    return "GROUP BY"


def plan_node(stage: Aggregate, below: str, columns: list[str], writer: PlanWriter) -> tuple[str, list[str]]:
    named = namer(columns)
    node: dict[str, Any] = {"op": "aggregate", "input": below}
    if stage.keys:
        node["keys"] = {key.name: expression_sql(key.expression, named) for key in stage.keys}
    if stage.calls:
        node["calls"] = {call.name: call_sql(call, named) for call in stage.calls}
    return writer.add("aggregate", node), [name for name, _ in stage.computed]

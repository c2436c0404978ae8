"""How a window over changes is shown."""

from __future__ import annotations

from typing import Any

from engine.algebra.streamed.stage import Streamed
from engine.language.bind.preferred import DECIDED_BY_OTHERS
from engine.language.plan_files import PlanWriter, namer
from engine.language.render import render_sample, render_window
from engine.language.sql_text import bracket_sql, sample_sql


def render_stage(stage: Streamed) -> list[str]:
    sampled = "" if stage.sample is None else f"{render_sample(stage.sample)}, "
    return [f"{stage.operator} {sampled}window {render_window(stage.window)}"]


def keyword(stage: Streamed) -> str:
    return stage.operator.upper()


def why_not_preferred(stage: Streamed) -> str:
    return DECIDED_BY_OTHERS


def plan_node(stage: Streamed, below: str, columns: list[str], writer: PlanWriter) -> tuple[str, list[str]]:
    node: dict[str, Any] = {"op": "stream", "input": below, "operator": stage.operator}
    if stage.sample is not None:
        node["sample"] = sample_sql(stage.sample)
    if bracket := bracket_sql(stage.window, namer(columns)):
        node["window"] = bracket
    return writer.add("stream", node), columns

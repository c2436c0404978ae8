"""How FETCH FIRST n ROWS WITH TIES is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.algebra.with_ties.stage import WithTies
from engine.language.bind.preferred import DECIDED_BY_OTHERS
from engine.language.plan_files import PlanWriter, namer
from engine.language.render import render_sort_key
from engine.language.sql_text import sort_key_sql


def render_stage(stage: WithTies) -> list[str]:
    keys = ", ".join(render_sort_key(key) for key in stage.keys)
    after = f" after {stage.offset}" if stage.offset else ""
    return [f"first {stage.count} rows with ties by {keys}{after}"]


def operator_words(stage: WithTies, lines: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    return "top-k with ties", tuple(lines)


def keyword(stage: WithTies) -> str:
    return "FETCH FIRST ... WITH TIES"


def why_not_preferred(stage: WithTies) -> str:
    return DECIDED_BY_OTHERS


def plan_node(stage: WithTies, below: str, columns: list[str], writer: PlanWriter) -> tuple[str, list[str]]:
    by = [sort_key_sql(key, namer(columns)) for key in stage.keys]
    node: dict[str, Any] = {"op": "with_ties", "input": below, "by": by, "count": stage.count}
    if stage.offset:
        node["offset"] = stage.offset
    return writer.add("with_ties", node), columns

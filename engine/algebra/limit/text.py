"""How LIMIT is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.algebra.limit.stage import Limit
from engine.language.bind.preferred import DECIDED_BY_OTHERS
from engine.language.plan_files import PlanWriter


def render_stage(stage: Limit) -> list[str]:
    rows = "all rows" if stage.count is None else f"{stage.count} rows"
    return [f"limit {rows}" + (f" after {stage.offset}" if stage.offset else "")]


def operator_words(stage: Limit, lines: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    return "top-k", tuple(lines)


def keyword(stage: Limit) -> str:
    return "LIMIT"


def why_not_preferred(stage: Limit) -> str:
    return DECIDED_BY_OTHERS


def plan_node(stage: Limit, below: str, columns: list[str], writer: PlanWriter) -> tuple[str, list[str]]:
    node: dict[str, Any] = {"op": "limit", "input": below}
    if stage.count is not None:
        node["count"] = stage.count
    if stage.offset or stage.count is None:
        node["offset"] = stage.offset
    return writer.add("limit", node), columns

"""How ROW_NUMBER is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.algebra.row_number.stage import RowNumber
from engine.language.bind.preferred import DECIDED_BY_OTHERS
from engine.language.column_names import another
from engine.language.plan_files import PlanWriter, namer
from engine.language.render import render_expression, render_sort_key
from engine.language.sql_text import expression_sql, sort_key_sql


def render_stage(stage: RowNumber) -> list[str]:
    of = f" of each {', '.join(render_expression(key) for key in stage.keys)}" if stage.keys else ""
    by = f" by {', '.join(render_sort_key(key) for key in stage.order)}" if stage.order else ""
    return [f"number rows{of}{by}" + ("" if stage.count is None else f", the first {stage.count}")]


def operator_words(stage: RowNumber, lines: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    if stage.count is not None:
        return "top-k", tuple(lines)
    return "number rows", (lines[0].removeprefix("number rows").lstrip(),)


def keyword(stage: RowNumber) -> str:
    return "ROW_NUMBER()"


def why_not_preferred(stage: RowNumber) -> str:
    return DECIDED_BY_OTHERS


def plan_node(stage: RowNumber, below: str, columns: list[str], writer: PlanWriter) -> tuple[str, list[str]]:
    named = namer(columns)
    number = another("row_number", columns)
    node: dict[str, Any] = {"op": "row_number", "input": below}
    if stage.keys:
        node["partition"] = [expression_sql(key, named) for key in stage.keys]
    if stage.order:
        node["order"] = [sort_key_sql(key, named) for key in stage.order]
    node["as"] = number
    if stage.count is not None:
        node["first"] = stage.count
    return writer.add("row_number", node), [*columns, number]

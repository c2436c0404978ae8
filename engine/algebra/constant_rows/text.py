"""How VALUES is shown."""

from __future__ import annotations

from engine.algebra.constant_rows.stage import ConstantRows
from engine.language.bind.preferred import DECIDED_BY_OTHERS
from engine.language.plan_files import NoPlan, PlanWriter
from engine.language.render import render_expression, render_name
from engine.language.sql_text import literal_sql

SHOWN_MAX = 5
"""So many rows are written out."""
TEXT_MAX = 65_536
"""A field of a plan has so many characters."""


def render_stage(stage: ConstantRows) -> list[str]:
    count = len(stage.rows)
    names = ", ".join(f"{render_name(name)} {type_}" for name, type_ in stage.columns)
    lines = [f"  ({', '.join(map(render_expression, row))})" for row in stage.rows[:SHOWN_MAX]]
    if count > SHOWN_MAX:
        lines.append(f"  and {count - SHOWN_MAX} more")
    return [f"values of ({names})", *lines]


def keyword(stage: ConstantRows) -> str:
    return "VALUES"


def why_not_preferred(stage: ConstantRows) -> str:
    return DECIDED_BY_OTHERS


def plan_node(
    stage: ConstantRows, below: str, columns: list[str], writer: PlanWriter
) -> tuple[str, list[str]]:
    rows = (", ".join(map(literal_sql, row)) for row in stage.rows)
    names, text = [name for name, _ in stage.columns], ", ".join(f"({row})" for row in rows)
    if len(text) > TEXT_MAX:
        raise NoPlan("many rows of constants")
    return writer.add("values", {"op": "values", "columns": names, "rows": text}), names

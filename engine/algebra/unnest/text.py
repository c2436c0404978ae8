"""How UNNEST is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.algebra.unnest.stage import Unnest
from engine.language.bind.preferred import DECIDED_BY_OTHERS
from engine.language.column_names import another
from engine.language.plan_files import PlanWriter, namer
from engine.language.render import render_expression, render_name
from engine.language.sql_text import expression_sql


def render_stage(stage: Unnest) -> list[str]:
    arrays = ", ".join(render_expression(array) for array in stage.arrays)
    names = ", ".join(f"{render_name(name)} {type_}" for name, type_ in stage.own_columns)
    kept = ", rows without elements kept" if stage.keeps else ""
    return [f"unnest {arrays} as ({names}){kept}"]


def operator_words(stage: Unnest, lines: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    return "unnest", tuple(line.removeprefix("unnest ") for line in lines)


def keyword(stage: Unnest) -> str:
    return "UNNEST"


def why_not_preferred(stage: Unnest) -> str:
    return DECIDED_BY_OTHERS


def plan_node(stage: Unnest, below: str, columns: list[str], writer: PlanWriter) -> tuple[str, list[str]]:
    names = list(columns)
    for name, _ in stage.own_columns:
        names.append(another(name, names))
    own = names[len(columns) :]
    arrays = [expression_sql(array, namer(columns)) for array in stage.arrays]
    node: dict[str, Any] = {"op": "unnest", "input": below, "arrays": arrays}
    node["as"] = own if stage.ordinality is None else own[:-1]
    if stage.ordinality is not None:
        node["ordinality"] = own[-1]
    if stage.keeps:
        node["outer"] = True
    return writer.add("unnest", node), names

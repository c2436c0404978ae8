"""How IN and EXISTS are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.algebra.semi_join.stage import SemiJoin
from engine.language.bind.preferred import DECIDED_BY_OTHERS
from engine.language.plan_files import PlanWriter, namer
from engine.language.render import join_words, render_expression, render_inner
from engine.language.sql_text import expression_sql


def render_stage(stage: SemiJoin) -> list[str]:
    word = "anti join" if stage.negated else "semi join"
    on = f" on {', '.join(render_expression(key) for key in stage.keys)}" if stage.keys else ""
    unknown = ", NULL is unknown" if stage.null_aware else ""
    return [f"{word}{on}{unknown}", *render_inner(stage.inner)]


def operator_words(stage: SemiJoin, lines: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    return join_words(lines)


def keyword(stage: SemiJoin) -> str:
    return "NOT IN or NOT EXISTS" if stage.negated else "IN or EXISTS (SELECT ...)"


def why_not_preferred(stage: SemiJoin) -> str:
    return (
        DECIDED_BY_OTHERS if stage.negated else "nothing says which rows of the inner query are wanted first"
    )


def plan_node(stage: SemiJoin, below: str, columns: list[str], writer: PlanWriter) -> tuple[str, list[str]]:
    inner, inner_columns = writer.query(stage.inner)
    node: dict[str, Any] = {"op": "semi_join", "input": below, "inner": inner}
    if stage.keys:
        qualified = namer(columns, "l")
        pairs = zip(stage.keys, inner_columns, strict=True)
        node["keys"] = [[expression_sql(key, qualified), column] for key, column in pairs]
    if stage.negated:
        node["negated"] = True
    if stage.null_aware:
        node["null_aware"] = True
    return writer.add("semi_join", node), columns

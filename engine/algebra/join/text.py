"""How a join is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.algebra.join.stage import Join
from engine.language.bind.outputs import unique
from engine.language.bind.preferred import DECIDED_BY_OTHERS
from engine.language.plan_files import NoPlan, PlanWriter, namer
from engine.language.render import (
    ShownColumn,
    inner_name,
    join_words,
    render_expression,
    render_inner,
    render_name,
    render_names,
)
from engine.language.rules.tree import transform
from engine.language.sql_text import expression_sql
from engine.model.expressions import Column, Expression


def render_stage(stage: Join) -> list[str]:
    return [_join(stage), *render_inner(stage.inner)]


def operator_words(stage: Join, lines: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    return join_words(lines)


def keyword(stage: Join) -> str:
    return "a join"


def why_not_preferred(stage: Join) -> str | None:
    return None if stage.inner.outputs is not None else DECIDED_BY_OTHERS


def plan_node(stage: Join, below: str, columns: list[str], writer: PlanWriter) -> tuple[str, list[str]]:
    right, right_columns = writer.query(stage.inner)
    left_name, right_name = namer(columns, "l"), namer(right_columns, "r")

    def either(place: int) -> str:
        return left_name(place) if place < len(columns) else right_name(place - len(columns))

    parts = [
        f"({expression_sql(left, left_name)} = {expression_sql(inner, right_name)})"
        for left, inner in stage.keys
    ]
    kind: str = stage.kind
    if stage.latest is not None:
        if kind not in ("inner", "left"):
            raise NoPlan("the latest of several rows")
        kind = "asof" if kind == "inner" else "asof left"
        op = ">" if stage.latest.strict else ">="
        outer, inner = stage.latest.outer, stage.latest.inner
        parts.append(f"({expression_sql(outer, left_name)} {op} {expression_sql(inner, right_name)})")
    if stage.condition is not None:
        parts.append(expression_sql(stage.condition, either))
    if not parts and kind == "inner":
        kind = "cross"
    node: dict[str, Any] = {"op": "join", "left": below, "right": right, "kind": kind}
    if kind != "cross":
        node["on"] = " AND ".join(parts) or "TRUE"
    gives = kind not in ("semi", "anti")
    return writer.add("join", node), unique([*columns, *right_columns]) if gives else columns


def _join(join: Join) -> str:
    """The first line of a join; columns of inner's have its name before them."""
    sources, side = render_names(join.inner.sources), inner_name(join.inner)
    if join.inner.stages[0].reads_nothing:
        sources = side
    text = ("" if join.latest is None else "as of ") + f"{join.kind} join {sources}"
    if not join.keys and join.condition is None and join.latest is None:
        return text if join.kind != "inner" else f"cross join {sources}"
    columns = [f"{render_name(side)}.{render_name(name)}" for name, _ in join.inner.columns]
    shown = {f"{side}.{name}": text for (name, _), text in zip(join.inner.columns, columns, strict=True)}

    def inner_column(node: Expression) -> Expression:
        if not isinstance(node, Column):
            return node
        return ShownColumn(node.index, node.name, node.type, columns[node.index])

    def either_column(node: Expression) -> Expression:
        if not isinstance(node, Column) or node.name not in shown:
            return node
        return ShownColumn(node.index, node.name, node.type, shown[node.name])

    def of_inner(expression: Expression) -> str:
        return render_expression(transform(expression, inner_column))

    parts = [f"{render_expression(left)} = {of_inner(inner)}" for left, inner in join.keys]
    if join.latest is not None:
        op = ">" if join.latest.strict else ">="
        outer, inner = render_expression(join.latest.outer), of_inner(join.latest.inner)
        parts.append(f"the latest of {outer} {op} {inner}")
    if join.condition is not None:
        parts.append(render_expression(transform(join.condition, either_column)))
    return f"{text} on {' and '.join(parts)}"

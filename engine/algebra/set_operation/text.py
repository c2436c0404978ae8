"""How UNION, INTERSECT and EXCEPT are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.algebra.set_operation.stage import SetOperation
from engine.language.bind.preferred import DECIDED_BY_OTHERS
from engine.language.plan_files import NoPlan, PlanWriter
from engine.language.render import render_inner, render_name


def render_stage(stage: SetOperation) -> list[str]:
    names = [name for name, _ in stage.inner.columns]
    on = [] if stage.on is None else [render_name(names[place]) for _, place in stage.on]
    by = "" if stage.on is None else f" on {', '.join(on)}"
    return [f"{stage.kind}{' all' if stage.all else ''}{by}", *render_inner(stage.inner)]


def operator_words(stage: SetOperation, lines: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    word, _, by = lines[0].partition(" on ")
    return word, (f"on {by}",) if by else ()


def keyword(stage: SetOperation) -> str:
    return stage.kind.upper()


def why_not_preferred(stage: SetOperation) -> str:
    return DECIDED_BY_OTHERS


def plan_node(
    stage: SetOperation, below: str, columns: list[str], writer: PlanWriter
) -> tuple[str, list[str]]:
    right, right_columns = writer.query(stage.inner)
    node: dict[str, Any] = {"op": "set_operation", "left": below, "right": right, "kind": stage.kind}
    if stage.all:
        node["all"] = True
    if stage.on is not None:
        if any(columns[place] != right_columns[other] for place, other in stage.on):
            raise NoPlan("EXCEPT ALL ON columns of two names")
        node["on"] = [columns[place] for place, _ in stage.on]
    return writer.add(stage.kind, node), columns

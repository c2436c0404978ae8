"""How GROUP BY is shown."""

from __future__ import annotations

from collections.abc import Sequence

from engine.algebra.aggregate.stage import Aggregate, AggregateCall
from engine.language.render import render_expression, render_name, render_output


def render_stage(stage: Aggregate) -> list[str]:
    keys = [f"  by {render_output(key)}" for key in stage.keys]
    return ["aggregate", *keys, *(f"  {_call(call)}" for call in stage.calls)]


def operator_words(stage: Aggregate, lines: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    return "group", tuple(lines[1:])


def _call(call: AggregateCall) -> str:
    inside = ", ".join(render_expression(argument) for argument in call.arguments) or "*"
    distinct = "DISTINCT " if call.distinct else ""
    keep = "" if call.filter is None else f" FILTER (WHERE {render_expression(call.filter)})"
    return f"{render_name(call.name)} {call.type} = {call.function}({distinct}{inside}){keep}"

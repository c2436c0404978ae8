"""How a condition above other stages is shown."""

from __future__ import annotations

from engine.algebra.filter.stage import Filter
from engine.language.render import render_expression


def render_stage(stage: Filter) -> list[str]:
    return [f"filter {render_expression(stage.predicate)}"]

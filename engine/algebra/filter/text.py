"""How a condition above other stages is shown."""

from __future__ import annotations

from collections.abc import Sequence

from engine.algebra.filter.stage import Filter
from engine.language.render import render_expression


def render_stage(stage: Filter) -> list[str]:
    return [f"filter {render_expression(stage.predicate)}"]


def operator_words(stage: Filter, lines: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    return "filter", (lines[0].removeprefix("filter "),)

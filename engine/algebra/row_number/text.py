"""How ROW_NUMBER is shown."""

from __future__ import annotations

from collections.abc import Sequence

from engine.algebra.row_number.stage import RowNumber
from engine.language.render import render_expression, render_sort_key


def render_stage(stage: RowNumber) -> list[str]:
    of = f" of each {', '.join(render_expression(key) for key in stage.keys)}" if stage.keys else ""
    by = f" by {', '.join(render_sort_key(key) for key in stage.order)}" if stage.order else ""
    return [f"number rows{of}{by}" + ("" if stage.count is None else f", the first {stage.count}")]


def operator_words(stage: RowNumber, lines: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    if stage.count is not None:
        return "top-k", tuple(lines)
    return "number rows", (lines[0].removeprefix("number rows").lstrip(),)

"""How ROW_NUMBER is shown."""

from __future__ import annotations

from engine.algebra.row_number.stage import RowNumber
from engine.language.render import render_expression, render_sort_key


def render_stage(stage: RowNumber) -> list[str]:
    of = f" of each {', '.join(render_expression(key) for key in stage.keys)}" if stage.keys else ""
    by = f" by {', '.join(render_sort_key(key) for key in stage.order)}" if stage.order else ""
    return [f"number rows{of}{by}" + ("" if stage.count is None else f", the first {stage.count}")]

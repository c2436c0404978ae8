"""How LIMIT is shown."""

from __future__ import annotations

from engine.algebra.limit.stage import Limit


def render_stage(stage: Limit) -> list[str]:
    rows = "all rows" if stage.count is None else f"{stage.count} rows"
    return [f"limit {rows}" + (f" after {stage.offset}" if stage.offset else "")]

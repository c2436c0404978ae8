"""How LIMIT is shown."""

from __future__ import annotations

from collections.abc import Sequence

from engine.algebra.limit.stage import Limit


def render_stage(stage: Limit) -> list[str]:
    rows = "all rows" if stage.count is None else f"{stage.count} rows"
    return [f"limit {rows}" + (f" after {stage.offset}" if stage.offset else "")]


def operator_words(stage: Limit, lines: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    return "top-k", tuple(lines)

"""How ORDER BY is shown."""

from __future__ import annotations

from engine.algebra.sort.stage import Sort
from engine.language.render import render_sort_key


def render_stage(stage: Sort) -> list[str]:
    return [f"sort by {', '.join(render_sort_key(key) for key in stage.keys)}"]

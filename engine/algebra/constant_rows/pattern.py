"""How rows of constants come and go: they are there."""

from __future__ import annotations

from engine.algebra.constant_rows.stage import ConstantRows
from engine.language.update_patterns import Pattern, PatternEdge, WindowColumns


def edge_above(stage: ConstantRows, below: PatternEdge, inner: PatternEdge | None) -> PatternEdge:
    return PatternEdge(Pattern.MON, WindowColumns({}, {}), in_time=False)

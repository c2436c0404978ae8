"""How rows that a condition keeps come and go: as those below."""

from __future__ import annotations

from engine.algebra.filter.stage import Filter
from engine.language.update_patterns import PatternEdge


def edge_above(stage: Filter, below: PatternEdge, inner: PatternEdge | None) -> PatternEdge:
    return below

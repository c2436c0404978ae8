"""How sorted rows come and go: as those below, but not in the order of time."""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.sort.stage import Sort
from engine.language.update_patterns import PatternEdge


def edge_above(stage: Sort, below: PatternEdge, inner: PatternEdge | None) -> PatternEdge:
    return replace(below, in_time=False, merges=None)

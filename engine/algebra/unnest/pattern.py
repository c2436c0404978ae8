"""How rows of UNNEST come and go: those of a row with it, at one instant."""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.unnest.stage import Unnest
from engine.language.update_patterns import PatternEdge


def edge_above(stage: Unnest, below: PatternEdge, inner: PatternEdge | None) -> PatternEdge:
    return replace(below, key=None)

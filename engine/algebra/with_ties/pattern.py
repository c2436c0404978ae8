"""How the first rows and their ties come and go: STR by a key, since a better one pushes others out."""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.with_ties.stage import WithTies
from engine.language.update_patterns import Pattern, PatternEdge


def edge_above(stage: WithTies, below: PatternEdge, inner: PatternEdge | None) -> PatternEdge:
    return replace(below, pattern=Pattern.STR, key=None, in_time=False, merges=None)

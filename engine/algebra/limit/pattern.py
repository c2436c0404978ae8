"""How the first rows come and go: STR by a key, since a better one pushes one out."""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.limit.stage import Limit
from engine.language.update_patterns import Pattern, PatternEdge, stateful


def edge_above(stage: Limit, below: PatternEdge, inner: PatternEdge | None) -> PatternEdge:
    return replace(below, pattern=stateful(below.pattern) if below.in_time else Pattern.STR, key=None)

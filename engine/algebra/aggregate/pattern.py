"""How groups come and go: WK by key, but for groups of closed windows."""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.aggregate.stage import Aggregate
from engine.language.update_patterns import Pattern, PatternEdge


def edge_above(stage: Aggregate, below: PatternEdge, inner: PatternEdge | None) -> PatternEdge:
    keys = [key.expression for key in stage.keys]
    whole = below.windows.among(keys) and below.pattern <= Pattern.WKS
    pattern = below.pattern if whole else Pattern.WK
    key = tuple(range(len(keys))) if pattern is Pattern.WK else None
    return replace(
        below, pattern=pattern, windows=below.windows.seen_as(keys), key=key, in_time=True, merges=None
    )

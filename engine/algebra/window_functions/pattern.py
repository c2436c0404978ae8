"""How rows of window functions come and go: STR, since a row that comes changes the values of others."""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.window_functions.stage import WindowFunctions
from engine.language.update_patterns import Pattern, PatternEdge


def edge_above(stage: WindowFunctions, below: PatternEdge, inner: PatternEdge | None) -> PatternEdge:
    whole = below.windows.among(stage.keys) and below.pattern <= Pattern.WKS
    return replace(below, pattern=below.pattern if whole else Pattern.STR, key=None)

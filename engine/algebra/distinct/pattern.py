"""How distinct rows come and go: WK, but MON over MON, and for rows of closed windows."""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.distinct.stage import Distinct
from engine.language.update_patterns import PatternEdge, stateful


def edge_above(stage: Distinct, below: PatternEdge, inner: PatternEdge | None) -> PatternEdge:
    pattern = below.pattern if below.windows.any else stateful(below.pattern)
    return replace(below, pattern=pattern, key=None)

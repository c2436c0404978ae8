"""How elements of a stream that is made come and go: as the window says."""

from __future__ import annotations

from engine.algebra.streamed.stage import Streamed
from engine.language.update_patterns import PatternEdge


def edge_above(stage: Streamed, below: PatternEdge, inner: PatternEdge | None) -> PatternEdge:
    return PatternEdge.of_window(stage.window)

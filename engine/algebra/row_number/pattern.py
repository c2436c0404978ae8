"""How numbered rows come and go: STR by a key, since a better one takes the number of another."""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.row_number.stage import RowNumber
from engine.language.update_patterns import Pattern, PatternEdge, stateful


def edge_above(stage: RowNumber, below: PatternEdge, inner: PatternEdge | None) -> PatternEdge:
    return replace(below, pattern=_pattern(stage, below), key=None)


def _pattern(stage: RowNumber, below: PatternEdge) -> Pattern:
    if below.windows.among(stage.keys) and below.pattern <= Pattern.WKS:
        return below.pattern
    return Pattern.STR if stage.order or not below.in_time else stateful(below.pattern)

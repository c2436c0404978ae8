"""How pairs come and go: at least WK, STR where rows are kept that have no partner."""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.join.stage import Join
from engine.language.update_patterns import PatternEdge


def edge_above(stage: Join, below: PatternEdge, inner: PatternEdge | None) -> PatternEdge:
    assert inner is not None
    if _as_of_each_row(stage):
        return replace(below, key=None, merges=None)
    kind = None if stage.latest is not None else stage.kind
    return replace(below, merges=None).meeting(kind, stage.keys, inner)


def _as_of_each_row(stage: Join) -> bool:
    """Whether it joins with versions of a table, and so as they were at the instant of each row."""
    if stage.kind in ("right", "full"):
        return False
    return stage.latest is not None and stage.inner.scan.history

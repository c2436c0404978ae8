"""How rows that IN or EXISTS keeps come and go: as those of a join."""

from __future__ import annotations

from engine.algebra.semi_join.stage import SemiJoin
from engine.language.update_patterns import PatternEdge


def edge_above(stage: SemiJoin, below: PatternEdge, inner: PatternEdge | None) -> PatternEdge:
    assert inner is not None
    return below.meeting("anti" if stage.negated else "semi", stage.compared, inner)

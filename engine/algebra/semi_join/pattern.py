"""How rows that IN or EXISTS keeps come and go: as those of a join."""

from __future__ import annotations

from engine.algebra.semi_join.stage import SemiJoin
from engine.language.update_patterns import PatternEdge
from engine.model.expressions import Column


def edge_above(stage: SemiJoin, below: PatternEdge, inner: PatternEdge | None) -> PatternEdge:
    assert inner is not None
    columns = [Column(place, name, type_) for place, (name, type_) in enumerate(stage.inner.columns)]
    keys = zip(stage.keys, columns, strict=False)
    return below.meeting("anti" if stage.negated else "semi", keys, inner)

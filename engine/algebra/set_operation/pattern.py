"""How rows of UNION, INTERSECT and EXCEPT come and go."""

from __future__ import annotations

from engine.algebra.set_operation.stage import SetOperation
from engine.language.update_patterns import Merging, Pattern, PatternEdge


def edge_above(stage: SetOperation, below: PatternEdge, inner: PatternEdge | None) -> PatternEdge:
    assert inner is not None
    if stage.kind == "union":
        return _united(below, inner)
    return below.meeting("semi" if stage.kind == "intersect" else "anti", stage.compared, inner)


def _united(below: PatternEdge, inner: PatternEdge) -> PatternEdge:
    """What leaves UNION ALL. Rows of both that are in the order of time are so together if they come in it,
    too: a window that ends before NOW would let rows in below others.
    """
    pattern = max(below.pattern, inner.pattern)
    alike = below.pattern is inner.pattern and below.span is not None and below.span == inner.span
    if pattern is Pattern.WKS and not alike:
        pattern = Pattern.WK
    merges = None
    if below.merges is not None and inner.merges is not None:
        merges = below.merges if below.merges == inner.merges else Merging()
    in_time = merges is not None and merges.end is not None and below.in_time and inner.in_time
    windows = below.windows.common(inner.windows)
    return PatternEdge(pattern, windows, None, in_time, below.span_with(inner), merges)

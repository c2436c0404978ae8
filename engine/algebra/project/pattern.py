"""How rows of SELECT come and go: as those below."""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.project.stage import Project
from engine.language.update_patterns import PatternEdge
from engine.model.expressions import Column


def edge_above(stage: Project, below: PatternEdge, inner: PatternEdge | None) -> PatternEdge:
    windows = below.windows.seen_as(output.expression for output in stage.outputs)
    return replace(below, windows=windows, key=_key(stage, below))


def _key(stage: Project, below: PatternEdge) -> tuple[int, ...] | None:
    """Where the columns of the key below are; None: not all of them are still there."""
    if below.key is None:
        return None
    places = {
        output.expression.index: place
        for place, output in enumerate(stage.outputs)
        if isinstance(output.expression, Column)
    }
    kept = [places[place] for place in below.key if place in places]
    return tuple(kept) if len(kept) == len(below.key) else None

"""A UNION ALL (B UNION ALL C)  ->  A UNION ALL B UNION ALL C: one operator for all inputs.

The bag is the same. The order may not be: rows of streams are merged in the order of time, those of other
relations stand one behind the other, and of three inputs some may be of each kind.
"""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.set_operation.stage import SetOperation
from engine.dataflow.rewrites.rule import Sources, Stages
from engine.language.query import Query


def merge_unions(query: Query, place: int, sources: Sources) -> Stages | None:
    """The rule, at a UNION ALL over another on its right."""
    stage = query.stages[place]
    if not isinstance(stage, SetOperation) or stage.kind != "union" or not stage.inner.stages:
        return None
    last = stage.inner.stages[-1]
    if not isinstance(last, SetOperation) or last.kind != "union":
        return None
    first = replace(stage, inner=replace(stage.inner, stages=stage.inner.stages[:-1]))
    return *query.stages[:place], first, last, *query.stages[place + 1 :]

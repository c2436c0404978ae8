"""DISTINCT over what is distinct  ->  without it; of two with nothing but UNION ALL between them the upper.

    DISTINCT(a, n of A GROUP BY a)               ->  a, n of A GROUP BY a
    DISTINCT(DISTINCT(A) UNION ALL DISTINCT(B))  ->  DISTINCT(A UNION ALL B)

The second keeps the first of equal rows of either input, which is the first of all of them; with its rows the
order is the same.
"""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.distinct.stage import Distinct
from engine.algebra.set_operation.stage import SetOperation
from engine.dataflow.rewrites.rule import Sources, Stages, is_distinct, up_to
from engine.language.query import Query
from engine.model.expressions import Column


def drop_distinct(query: Query, place: int, sources: Sources) -> Stages | None:
    """The rule, at the DISTINCT that goes, or at the union below which one goes."""
    match query.stages[place]:
        case Distinct():
            below = up_to(query, place)
            columns = [Column(at, name, type_) for at, (name, type_) in enumerate(below.columns)]
            if is_distinct(below, columns, sources) or _is_made_distinct(query, place + 1):
                return *query.stages[:place], *query.stages[place + 1 :]
        case SetOperation("union", inner) as union if _is_made_distinct(query, place + 1):
            if inner.stages and isinstance(inner.stages[-1], Distinct):
                within = replace(union, inner=replace(inner, stages=inner.stages[:-1]))
                return *query.stages[:place], within, *query.stages[place + 1 :]
    return None


def _is_made_distinct(query: Query, place: int) -> bool:
    """Whether nothing but unions stands between the stage at a place and a DISTINCT."""
    for stage in query.stages[place:]:
        if isinstance(stage, Distinct):
            return True
        if not isinstance(stage, SetOperation) or stage.kind != "union":
            break
    return False

"""Rules at a condition."""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.filter.stage import Filter
from engine.algebra.semi_join.stage import SemiJoin
from engine.algebra.set_operation.stage import SetOperation
from engine.dataflow.rewrites.rule import Sources, Stages, moved, none_errs, reads
from engine.language.query import Query


def selection_down(stage: Filter, query: Query, place: int, sources: Sources) -> Stages | None:
    if not place:
        return None
    below = query.stages[place - 1]
    before, behind = query.stages[: place - 1], query.stages[place + 1 :]
    match below:
        case SemiJoin(keys=keys) if none_errs([stage.predicate, *keys]):
            return *before, stage, below, *behind
        case SetOperation(kind, inner, on=on):
            places = {at: at for at, _ in enumerate(inner.columns)} if on is None else dict(on)
            on_compared = none_errs([stage.predicate]) and reads(stage.predicate) <= places.keys()
            if kind != "union" and not on_compared:
                return None
            right = Filter(moved(stage.predicate, places))
            within = replace(below, inner=replace(inner, stages=(*inner.stages, right)))
            return *before, stage, within, *behind
    return None

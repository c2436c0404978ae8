"""A selection over a set operation  ->  over both inputs; over IN, EXISTS and their negations  ->  below.

    select(A UNION ALL B)           ->  select(A) UNION ALL select(B)
    select(A EXCEPT ALL ON (k) B)   ->  select(A) EXCEPT ALL ON (k) select(B)      select reads k alone
    select(A WHERE k NOT IN (B))    ->  select(A) WHERE k NOT IN (B)

Below a bag difference a selection on other columns would change which rows are counted: with two left rows of
a value, one of which satisfies it, and one right row, the difference is the younger, and it may be either. It
goes into both inputs there, since it takes all rows of a value or none. A union evaluates it on the same rows
as before, so it may err; of the others it may not.
"""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.filter.stage import Filter
from engine.algebra.semi_join.stage import SemiJoin
from engine.algebra.set_operation.stage import SetOperation
from engine.dataflow.rewrites.rule import Sources, Stages, moved, none_errs, reads
from engine.language.query import Query


def selection_down(query: Query, place: int, sources: Sources) -> Stages | None:
    """The rule, at a filter."""
    stage = query.stages[place]
    if not isinstance(stage, Filter) or not place:
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

"""ORDER BY in a graph, where rows have no order: a part of LIMIT, and else nothing."""

from __future__ import annotations

from engine.algebra.sort.stage import Sort
from engine.dataflow.plan import NO_ORDER, Asked, Plan
from engine.language.query import Query


def plan_over(stage: Sort, below: Plan, query: Query, place: int, asked: Asked) -> Plan | str:
    following = query.stages[place + 1 :]
    if following and following[0].takes_order:
        return below
    return NO_ORDER if asked.by_order else below

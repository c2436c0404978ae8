"""ORDER BY in a graph, where rows have no order: a part of LIMIT, and else nothing."""

from __future__ import annotations

from collections.abc import Container

from engine.algebra.sort.stage import Sort
from engine.dataflow.plan import NO_ORDER, Plan
from engine.language.query import Query
from engine.model.source import SourceName


def plan_over(
    stage: Sort, below: Plan, query: Query, place: int, tables: Container[SourceName]
) -> Plan | str:
    following = query.stages[place + 1 :]
    if following and following[0].takes_order:
        return below
    return NO_ORDER if any(each.goes_by_order for each in following) else below

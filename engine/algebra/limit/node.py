"""LIMIT in a graph, with the ORDER BY below it."""

from __future__ import annotations

from engine.algebra.limit.stage import Limit
from engine.algebra.sort.stage import Sort
from engine.dataflow.operators.ranked import RankedSpec
from engine.dataflow.operators.rows import FilterSpec
from engine.dataflow.plan import Asked, OperatorOver, Plan, ranked, read_by
from engine.language.query import Query
from engine.model.expressions import Literal
from engine.model.types import BOOLEAN


def plan_over(stage: Limit, below: Plan, query: Query, place: int, asked: Asked) -> Plan | str:
    if stage.count == 0:
        return OperatorOver(FilterSpec(Literal(False, BOOLEAN)), (), below, stage)
    sort = query.stages[place - 1] if place else None
    order = sort.keys if isinstance(sort, Sort) else ()
    read = read_by(query.stages[place + 1 :])
    return ranked(RankedSpec((), order, stage.offset, stage.rows_read, False, read), below, stage)

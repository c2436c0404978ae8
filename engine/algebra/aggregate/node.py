"""GROUP BY in a graph."""

from __future__ import annotations

from engine.algebra.aggregate.stage import Aggregate
from engine.dataflow.calls import is_recomputed
from engine.dataflow.operators.group import GroupSpec
from engine.dataflow.plan import NO_IDS, NO_ORDER, Asked, OperatorOver, Plan, in_order, reason_of, with_ids
from engine.language.query import Query


def plan_over(stage: Aggregate, below: Plan, query: Query, place: int, asked: Asked) -> Plan | str:
    groups = GroupSpec(stage.keys, stage.calls)
    if stage.goes_by_order:
        ordered = in_order(below)
        return NO_ORDER if ordered is None else OperatorOver(groups, (), ordered, stage)
    if not any(map(is_recomputed, stage.calls)):
        return OperatorOver(groups, (), below, stage)
    identified = with_ids(below)
    if identified is None:
        return f"GROUP BY: {NO_IDS}, by {reason_of(below)}"
    return OperatorOver(groups, (), identified, stage)

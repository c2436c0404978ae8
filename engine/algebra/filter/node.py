"""A condition in a graph: queries with other constants share its node."""

from __future__ import annotations

from engine.algebra.filter.stage import Filter
from engine.dataflow.operators.rows import FilterSpec
from engine.dataflow.parameters import parameterised
from engine.dataflow.plan import Asked, OperatorOver, Plan
from engine.language.query import Query


def plan_over(stage: Filter, below: Plan, query: Query, place: int, asked: Asked) -> Plan:
    shape, constants = parameterised(stage.predicate)
    return OperatorOver(FilterSpec(shape), constants, below, stage)

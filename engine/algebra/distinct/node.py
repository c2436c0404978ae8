"""DISTINCT in a graph: groups without calls."""

from __future__ import annotations

from engine.algebra.distinct.stage import Distinct
from engine.dataflow.operators.group import GroupSpec
from engine.dataflow.plan import Asked, OperatorOver, Plan, columns_given, first
from engine.language.query import Query


def plan_over(stage: Distinct, below: Plan, query: Query, place: int, asked: Asked) -> Plan:
    return OperatorOver(GroupSpec(columns_given(first(query, place))), (), below, stage)

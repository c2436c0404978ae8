"""UNNEST in a graph."""

from __future__ import annotations

from engine.algebra.unnest.stage import Unnest
from engine.dataflow.operators.unnest import UnnestSpec
from engine.dataflow.plan import Asked, OperatorOver, Plan
from engine.language.query import Query


def plan_over(stage: Unnest, below: Plan, query: Query, place: int, asked: Asked) -> Plan:
    return OperatorOver(UnnestSpec(stage), (), below, stage)

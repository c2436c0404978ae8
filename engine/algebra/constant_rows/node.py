"""VALUES in a graph."""

from __future__ import annotations

from engine.algebra.constant_rows.stage import ConstantRows
from engine.dataflow.operators.constant_rows import ConstantRowsSpec
from engine.dataflow.plan import Asked, OperatorOver, Plan
from engine.language.query import Query


def plan_over(stage: ConstantRows, below: Plan, query: Query, place: int, asked: Asked) -> Plan:
    return OperatorOver(ConstantRowsSpec(stage.columns, stage.rows), (), below, stage)

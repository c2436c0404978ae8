"""A window over changes in a graph: it has no operator."""

from __future__ import annotations

from engine.algebra.streamed.stage import Streamed
from engine.dataflow.plan import Asked, Plan
from engine.language.query import Query


def plan_over(stage: Streamed, below: Plan, query: Query, place: int, asked: Asked) -> str:
    return "a window over a subquery: its changes are those of what it gave at earlier instants"

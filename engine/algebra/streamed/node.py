"""A window over changes in a graph: it has no operator."""

from __future__ import annotations

from collections.abc import Container

from engine.algebra.streamed.stage import Streamed
from engine.dataflow.plan import Plan
from engine.language.query import Query
from engine.model.source import SourceName


def plan_over(stage: Streamed, below: Plan, query: Query, place: int, tables: Container[SourceName]) -> str:
    return "a window over a subquery: its changes are those of what it gave at earlier instants"

"""A condition in a graph: queries with other constants share its node."""

from __future__ import annotations

from collections.abc import Container

from engine.algebra.filter.stage import Filter
from engine.dataflow.operators.rows import FilterSpec
from engine.dataflow.parameters import parameterised
from engine.dataflow.plan import Plan, Step
from engine.language.query import Query
from engine.model.source import SourceName


def plan_over(stage: Filter, below: Plan, query: Query, place: int, tables: Container[SourceName]) -> Plan:
    shape, constants = parameterised(stage.predicate)
    return Step(FilterSpec(shape), constants, below, stage)

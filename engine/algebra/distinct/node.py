"""DISTINCT in a graph: groups without calls."""

from __future__ import annotations

from collections.abc import Container

from engine.algebra.distinct.stage import Distinct
from engine.dataflow.operators.group import GroupSpec
from engine.dataflow.plan import Plan, Step, columns_given, first
from engine.language.query import Query
from engine.model.source import SourceName


def plan_over(stage: Distinct, below: Plan, query: Query, place: int, tables: Container[SourceName]) -> Plan:
    return Step(GroupSpec(columns_given(first(query, place))), (), below, stage)

"""UNION, INTERSECT and EXCEPT in a graph."""

from __future__ import annotations

from engine.algebra.set_operation.stage import SetOperation
from engine.dataflow.operators.set_operations import Compared, Union
from engine.dataflow.operators.set_rows import LeftRows
from engine.dataflow.plan import Asked, Combined, Plan, first, in_order, plan_of, read_by
from engine.language.query import Query
from engine.language.update_patterns import edges_of


def plan_over(stage: SetOperation, below: Plan, query: Query, place: int, asked: Asked) -> Plan | str:
    tables, is_union = asked.tables, stage.kind == "union"
    inner = plan_of(stage.inner, tables, by_order=is_union and asked.by_order)
    if is_union:
        edge, other = edges_of(first(query, place), tables)[-1], edges_of(stage.inner, tables)[-1]
        merged = edge.merges is not None and other.merges is not None
        return Combined(Union(merged), below, inner, stage)
    compared = Compared.of(stage)
    if stage.on is None:
        return Combined(compared, below, inner, stage)
    ordered = in_order(below)
    if ordered is None:
        return "EXCEPT ALL ON: it is not known which of equal rows came first"
    rows = LeftRows(compared, False, read_by(query.stages[place + 1 :]))
    return Combined(rows, ordered, inner, stage)

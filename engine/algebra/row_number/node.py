"""ROW_NUMBER in a graph."""

from __future__ import annotations

from engine.algebra.row_number.stage import RowNumber
from engine.dataflow.operators.ranked import RankedSpec
from engine.dataflow.plan import Asked, Plan, ranked, read_by
from engine.language.query import Query


def plan_over(stage: RowNumber, below: Plan, query: Query, place: int, asked: Asked) -> Plan | str:
    read = read_by(query.stages[place + 1 :])
    return ranked(RankedSpec(stage.keys, stage.order, 0, stage.count, True, read), below, stage)

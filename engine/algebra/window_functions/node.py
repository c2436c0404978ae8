"""Window functions in a graph."""

from __future__ import annotations

from engine.algebra.window_functions.stage import WindowFunctions
from engine.dataflow.operators.window_functions import WindowFunctionsSpec
from engine.dataflow.plan import NO_IDS, Asked, OperatorOver, Plan, ranked, read_by, reason_of, with_ids
from engine.language.query import Query


def plan_over(stage: WindowFunctions, below: Plan, query: Query, place: int, asked: Asked) -> Plan | str:
    spec = WindowFunctionsSpec.of(stage, read_by(query.stages[place + 1 :]))
    if stage.goes_by_order:
        return ranked(spec, below, stage)
    rows = with_ids(below)
    if rows is None:
        return f"OVER: {NO_IDS}, by {reason_of(below)}"
    return OperatorOver(spec, (), rows, stage)

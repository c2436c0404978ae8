"""JOIN in a graph."""

from __future__ import annotations

from engine.algebra.join.stage import Join
from engine.dataflow.operators.join import Matching
from engine.dataflow.plan import (
    NO_IDS,
    NO_ORDER,
    Asked,
    Joined,
    Plan,
    in_order,
    plan_of,
    read_by,
    reason_of,
    with_ids,
)
from engine.language.query import Query
from engine.model.types import Kind


def plan_over(stage: Join, below: Plan, query: Query, place: int, asked: Asked) -> Plan | str:
    inner = plan_of(stage.inner, asked.tables, by_order=asked.by_order or stage.goes_by_order)
    one, other = with_ids(below), with_ids(inner)
    if one is None or other is None:
        return f"JOIN: {NO_IDS}, by {reason_of(below) or reason_of(inner)}"
    read = read_by(query.stages[place + 1 :])
    matching = Matching(stage.kind, stage.keys, stage.condition, read, stage.latest)
    if stage.latest is None:
        return Joined(matching, one, other, stage)
    if stage.kind not in ("inner", "left"):
        return "ASOF JOIN that keeps right rows: a partner is known when all left rows are"
    compared = stage.latest.outer.type, stage.latest.inner.type
    if compared[0] != compared[1] or compared[0].kind in (Kind.STRING, Kind.NULL):
        return "ASOF JOIN by strings: they have no order that stays"
    ordered = in_order(other)
    return NO_ORDER if ordered is None else Joined(matching, one, ordered, stage)

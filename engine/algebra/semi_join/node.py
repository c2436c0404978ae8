"""IN and EXISTS in a graph: a join with distinct rows, of NOT IN two."""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.join.stage import JoinKind
from engine.algebra.project.stage import Output, Project
from engine.algebra.semi_join.stage import SemiJoin
from engine.dataflow.operators.join import RIGHT, Matching
from engine.dataflow.operators.rows import ProjectSpec
from engine.dataflow.plan import (
    NO_IDS,
    Asked,
    Joined,
    OperatorOver,
    Plan,
    columns_given,
    distinct,
    plan_of,
    read_by,
    reason_of,
    with_ids,
)
from engine.language.query import Query
from engine.model.expressions import Column, Expression, IsNull, Literal, Or
from engine.model.types import BOOLEAN


def plan_over(stage: SemiJoin, below: Plan, query: Query, place: int, asked: Asked) -> Plan | str:
    one, inner = with_ids(below), plan_of(stage.inner, asked.tables)
    if one is None:
        return f"IN and EXISTS: {NO_IDS}, by {reason_of(below)}"
    kind: JoinKind = "anti" if stage.negated else "semi"
    read = read_by(query.stages[place + 1 :])
    if not stage.keys:
        return Joined(Matching(kind, (), None, read), one, _values(inner, Literal(True, BOOLEAN)), stage)
    values = distinct(inner, columns_given(stage.inner))
    matching = Matching(kind, stage.compared, None, read)
    found = Joined(matching, one, values, replace(stage, null_aware=False))
    if not (stage.negated and stage.null_aware):
        return found
    ((key, column),) = stage.compared
    if not isinstance(key, Column):
        return "NOT IN of an expression: an error counts as NULL"  # but not to IsNull
    kept = None if read is None else read | {key.index}
    found = replace(found, matching=replace(matching, read=kept))
    unknown = Or((IsNull(key), Column(RIGHT, "", BOOLEAN)))
    nulls = _values(inner, IsNull(column))
    return Joined(Matching(kind, (), unknown, read), found, nulls, replace(stage, keys=()))


def _values(below: Plan, expression: Expression) -> Plan:
    """The values of an expression, each once."""
    stage = Project((Output("", expression),))
    given = OperatorOver(ProjectSpec(stage.outputs), (), below, stage)
    return distinct(given, (Output("", Column(0, "", expression.type)),))

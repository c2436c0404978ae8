"""Rows of which there may be several become one for each key: the value, and how many rows there were.

SINGLE(value, rows) is an error where there were several. The least value stands for the only one, so that
nothing depends on an order.
"""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.aggregate.stage import Aggregate, AggregateCall
from engine.algebra.project.stage import Output
from engine.language.bind.relation import BoundRelation
from engine.language.rules import rewrite
from engine.model.expressions import Column, Expression, Function
from engine.model.types import BIGINT


def one_row(relation: BoundRelation, *, is_single: bool) -> tuple[BoundRelation, Expression]:
    """A relation with one row for each value of the columns behind the first, which are given first, and the
    value over its columns. Without such columns there is one row, of no rows too. is_single: there is one row
    at most already for each.
    """
    value, *others = relation.columns
    keys = tuple(Output(other.name, rewrite(other.expression)) for other in others)
    argument = rewrite(value.expression)
    calls = [AggregateCall(value.name, "MIN", (argument,), value.type)]
    if not is_single:
        calls.append(AggregateCall("rows", "COUNT", (), BIGINT))
    stage = Aggregate(keys, tuple(calls))
    given = [Column(place, *column) for place, column in enumerate(stage.computed)]
    found: Expression = given[len(keys)]
    if not is_single:
        found = Function("SINGLE", (found, given[-1]), value.type)
    columns = tuple(Output(column.name, column) for column in given)
    return replace(relation.then(stage), columns=columns), found

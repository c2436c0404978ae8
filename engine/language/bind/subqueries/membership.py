"""IN, EXISTS and ANY where they are no conditions of their own: below OR, in CASE, in SELECT.

x < ANY (q)   the greatest value for < and <=, the least for > and >=, both for <>; and, as for IN, what q
              gives besides
EXISTS (q)    rows of q, counted for what correlates: whether there are any
x IN (q)      the same with q's column among what must be equal, and what q gives besides: no rows (FALSE),
              rows without NULL, or with one, where nothing that is not found is FALSE
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.algebra.aggregate.stage import Aggregate, AggregateCall
from engine.algebra.project.stage import Output
from engine.language.bind.relation import BoundRelation
from engine.language.bind.subqueries.joined_value import SubqueryValue
from engine.language.rules import rewrite
from engine.model.expressions import Case, Column, Compare, CompareOp, Expression, IsNull, Literal, Or
from engine.model.types import BIGINT, BOOLEAN, INTEGER

NO_ROWS, KNOWN, SOME_NULL = range(3)


def count_of_equals(
    relation: BoundRelation, columns: Sequence[Output], outer: Sequence[Expression]
) -> SubqueryValue:
    """How many rows of a relation equal ``outer`` in these columns; NULL or 0 where none does."""
    return _counted(
        relation,
        columns,
        outer,
        [AggregateCall("rows", "COUNT", (), BIGINT)],
        Column(len(columns), "rows", BIGINT),
    )


def nulls_among(
    relation: BoundRelation, value: Output, columns: Sequence[Output], outer: Sequence[Expression]
) -> SubqueryValue:
    """NO_ROWS, KNOWN or SOME_NULL: what the rows that equal ``outer`` in these columns have as this value."""
    rows, known = Column(len(columns), "rows", BIGINT), Column(len(columns) + 1, "known", BIGINT)
    calls = [
        AggregateCall("rows", "COUNT", (), BIGINT),
        AggregateCall("known", "COUNT", (rewrite(value.expression),), BIGINT),
    ]
    kind = Case(
        (
            (Compare("=", rows, Literal(0, BIGINT)), Literal(NO_ROWS, INTEGER)),
            (Compare("=", rows, known), Literal(KNOWN, INTEGER)),
        ),
        Literal(SOME_NULL, INTEGER),
        INTEGER,
    )
    found = _counted(relation, columns, outer, calls, kind)
    return replace(found, empty=Literal(NO_ROWS, INTEGER))


def extreme(
    relation: BoundRelation,
    value: Output,
    columns: Sequence[Output],
    outer: Sequence[Expression],
    function: str,
) -> SubqueryValue:
    """The least or the greatest value, by MIN or MAX, of the rows that equal ``outer`` in these columns."""
    call = AggregateCall("extreme", function, (rewrite(value.expression),), value.type)
    return _counted(relation, columns, outer, [call], Column(len(columns), "extreme", value.type))


def compares_with_any(op: CompareOp, key: Expression, least: Expression, greatest: Expression) -> Expression:
    """Whether ``key op`` one of the values between these two, which are values too."""
    if op == "<>":
        return Or((Compare(op, key, least), Compare(op, key, greatest)))
    return Compare(op, key, greatest if op in ("<", "<=") else least)


def is_member(key: Expression, found: Expression, kind: Expression) -> Expression:
    """``key IN (...)`` or ANY: whether a value is found, and what :func:`nulls_among` gives."""
    unknown = Or((IsNull(key), Compare("=", kind, Literal(SOME_NULL, INTEGER))))
    branches: tuple[tuple[Expression, Expression], ...] = (
        (found, Literal(True, BOOLEAN)),
        (Compare("=", kind, Literal(NO_ROWS, INTEGER)), Literal(False, BOOLEAN)),
        (unknown, Literal(None, BOOLEAN)),
    )
    return Case(branches, Literal(False, BOOLEAN), BOOLEAN)


def are_any(count: Expression) -> Expression:
    """EXISTS, of a count: NULL where no row is equal."""
    return Case(
        ((Compare(">", count, Literal(0, BIGINT)), Literal(True, BOOLEAN)),), Literal(False, BOOLEAN), BOOLEAN
    )


def _counted(
    relation: BoundRelation,
    columns: Sequence[Output],
    outer: Sequence[Expression],
    calls: Sequence[AggregateCall],
    value: Expression,
) -> SubqueryValue:
    keys = tuple(Output(column.name, rewrite(column.expression)) for column in columns)
    stage = Aggregate(keys, tuple(calls))
    given = tuple(
        Output(name, Column(place, name, type_)) for place, (name, type_) in enumerate(stage.computed)
    )
    inner = replace(relation.then(stage), columns=given)
    return SubqueryValue(
        inner, tuple(outer), tuple(range(len(keys))), value, Literal(None, value.type), bool(keys)
    )

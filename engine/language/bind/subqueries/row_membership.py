"""(a, b) IN (SELECT ...) where it is no condition of its own: below OR, in CASE, in SELECT.

It is TRUE where a row equals, else NULL where one might, as some value of it or of (a, b) is NULL and all
others are equal, else FALSE. Rows that equal are counted as of IN. Those that might are joined with the
different values of (a, b), in two parts: rows that have a NULL, and values that have one. Mostly there are
none of either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.algebra.project.stage import Output
from engine.language.bind.placing import asked_of_pairs, narrowed
from engine.language.bind.relation import BoundRelation, is_not_null
from engine.language.bind.subqueries.joined_value import SubqueryValue
from engine.language.bind.subqueries.membership import count_of_equals
from engine.language.null_equality import equal_keys
from engine.model.expressions import Case, Compare, Expression, IsNull, Literal, Not, Or
from engine.model.types import BOOLEAN


def rows_that_might(
    relation: BoundRelation,
    values: Sequence[Output],
    equal: Sequence[Output],
    keys: Sequence[Expression],
    outer: Sequence[Expression],
    around: BoundRelation,
    sql: str,
    *,
    has_null: bool,
) -> SubqueryValue | None:
    """How many rows might equal ``keys`` in ``values``, and equal ``outer`` in ``equal``; of a subquery,
    whose columns these are, over the relation around it. has_null: of the rows with a NULL; else for the keys
    with one. None: there is no NULL.
    """
    if has_null:
        nullable = [each.expression for each in values if not is_not_null(relation, each.expression)]
    else:
        nullable = [key for key in keys if not is_not_null(around, key)]
    if not nullable:
        return None
    nulls = _any([IsNull(each) for each in nullable])
    wanted = tuple(Output(f"key_{at}", key) for at, key in enumerate((*keys, *outer), start=1))
    domain = replace(around, columns=wanted)
    if has_null:
        relation = narrowed(relation, [nulls])
    else:
        domain = narrowed(domain, [nulls])
    relation = replace(relation, columns=(*values, *equal))
    joined = relation.joined(domain.distinct(), "inner", sql)
    inner, own = joined.columns[: len(relation.columns)], joined.columns[len(relation.columns) :]
    conditions: list[Expression] = []
    for place, (one, other) in enumerate(zip(inner, own, strict=True)):
        same: Expression = Compare("=", one.expression, other.expression)
        if place < len(values):
            same = _any([same, IsNull(one.expression), IsNull(other.expression)])
        conditions.append(same)
    joined = asked_of_pairs(joined, conditions)
    found: list[tuple[Expression, Expression]] = []
    for column, key in zip(own, (*keys, *outer), strict=True):
        found += equal_keys(column.expression, key)
    columns = [Output(f"equal_{at}", one) for at, (one, _) in enumerate(found, start=1)]
    return count_of_equals(joined, columns, [key for _, key in found])


def is_row_member(found: Expression, might: Sequence[Expression]) -> Expression:
    """Whether a row is found, given the counts of those that equal and of those that might."""
    branches: list[tuple[Expression, Expression]] = [(Not(IsNull(found)), Literal(True, BOOLEAN))]
    branches += [(Not(IsNull(count)), Literal(None, BOOLEAN)) for count in might]
    return Case(tuple(branches), Literal(False, BOOLEAN), BOOLEAN)


def _any(parts: Sequence[Expression]) -> Expression:
    return parts[0] if len(parts) == 1 else Or(tuple(parts))

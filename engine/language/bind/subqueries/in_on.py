"""Conditions of ON that hold subqueries: asked of the joined rows, or of one side before it is joined.

    a JOIN b ON P               P asked of the pairs, as WHERE asks
    a LEFT JOIN b ON P of b     P asked of b before
    a RIGHT JOIN b ON P of a    P asked of a before
    a SEMI or ANTI JOIN b       as LEFT

Elsewhere a row that P takes out of pairs would have to stay alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from engine.algebra.join.stage import JoinKind
from engine.language.bind.conditions import Subselect, and_operands, apply, bind_conditions, holds_query
from engine.language.bind.environment import Environment
from engine.language.bind.from_items import From
from engine.language.bind.subqueries.domain import ColumnUses
from engine.language.bind.subqueries.joined_value import SubqueryValue
from engine.language.bind.subqueries.values import SubqueryValues
from engine.model.expressions import Expression
from tureen.errors import NotSupported


def with_queries(on: exp.Expr | None) -> list[exp.Expr]:
    """The parts of a condition, joined by AND, that hold subqueries."""
    return [] if on is None else [part for part in and_operands(on) if holds_query(part)]


def asked_before(
    kind: JoinKind,
    left: From,
    right: From,
    parts: Sequence[exp.Expr],
    env: Environment,
    subselect: Subselect,
) -> tuple[From, From]:
    """Both sides of an outer, a SEMI or an ANTI JOIN; of one of them these are asked.

    Raises NotSupported where they are about the other side, and what binding conditions raises.
    """
    is_right = kind != "right"
    asked, other = (right, left) if is_right else (left, right)
    uses = ColumnUses(asked.scope(env), other.scope(env), env)
    for part in parts:
        if kind == "full" or not asked.relation.stream.retroactive or uses.of(part):
            raise env.text.of_node(part).refuse(
                NotSupported,
                f"a subquery in ON of {kind.upper()} JOIN is about the side alone that is not kept whole",
                hint="write it in the query on that side: JOIN (SELECT ... WHERE ...) b ON ..., or in WHERE",
            )
    asked = asked_of(asked, parts, env, subselect)
    return (left, asked) if is_right else (asked, right)


def asked_of(found: From, parts: Sequence[exp.Expr], env: Environment, subselect: Subselect) -> From:
    """The rows that satisfy these. Raises what binding conditions raises."""
    relation = found.relation

    def joined(value: SubqueryValue) -> Expression:
        nonlocal relation
        relation, given = value.joined(relation, env.text.sql)
        return given

    scope = found.scope(env).at("ON")
    scope = replace(scope, values=SubqueryValues(env, subselect, joined, relation))
    conditions = [each for part in parts for each in bind_conditions(part, scope, env, subselect)]
    return replace(found, relation=apply(relation, conditions, env.text.sql))

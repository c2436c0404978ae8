"""ASOF JOIN: of the partners that equal in the keys the latest that is not ahead.

ON holds equalities and one inequality, ``a.ts >= b.ts`` or ``a.ts > b.ts``, which says what is latest; what
it asks of one side alone is asked of the candidates. Of USING the last column is the inequality.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from engine.algebra.join.stage import Latest
from engine.language.bind.joined import BoundJoin, fitted
from engine.language.bind.placing import conjuncts
from engine.language.bind.relation import BoundRelation
from engine.language.bind.scope import Scope
from engine.language.rules import rewrite
from engine.model.expressions import Compare, CompareOp, Expression
from tureen.errors import NotSupported, QueryError, SyntaxRefused

Asked = tuple[Expression, exp.Expr]
"""A condition of ON, and where it is written."""

_FORM = "write ASOF JOIN b ON a.key = b.key AND a.ts >= b.ts"
_ASCENDING: dict[str, CompareOp] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def as_of(
    relation: BoundRelation, on: Sequence[Asked], join: exp.Expr, scope: Scope
) -> tuple[BoundRelation, list[Asked]]:
    """The relation, whose last join takes the latest partner, and the conditions besides.

    Raises SyntaxRefused without an inequality, NotSupported for what else joins the two sides.
    """
    last = relation.joins[-1]
    latest: Latest | None = None
    rest: list[Asked] = []
    for written, node in on:
        for condition in conjuncts(written):
            if last.sides(condition) != (True, True) or last.pair(condition) is not None:
                rest.append((condition, node))
                continue
            found = _latest(condition, last, node, scope)
            if latest is not None:
                raise _refused("a second inequality is not supported in ASOF JOIN", node, scope)
            latest = found
    if latest is None:
        raise scope.place(join).refuse(
            SyntaxRefused, "ASOF JOIN needs an inequality that defines which row is the latest", hint=_FORM
        )
    joins = (*relation.joins[:-1], replace(last, latest=latest))
    return replace(relation, joins=joins), rest


def _latest(condition: Expression, join: BoundJoin, node: exp.Expr, scope: Scope) -> Latest:
    """What an inequality between the sides says. Raises NotSupported for all else."""
    if isinstance(condition, Compare) and condition.op in _ASCENDING:
        op, outer, inner = condition.op, condition.left, condition.right
        if join.sides(outer) == (False, True):
            op, outer, inner = _ASCENDING[op], inner, outer
        if join.sides(outer) == (True, False) and join.sides(inner) == (False, True):
            if op in ("<", "<="):
                raise scope.place(node).refuse(
                    NotSupported,
                    "ASOF JOIN looks back, this inequality looks ahead",
                    hint=_FORM + ", the earlier one of which is b",
                )
            pair = fitted(outer, join.inside(inner))
            assert pair is not None  # they were compared
            return Latest(rewrite(pair[0]), rewrite(pair[1]), strict=op == ">")
    raise _refused("ON of ASOF JOIN takes equalities and one inequality of both sides", node, scope)


def _refused(message: str, node: exp.Expr, scope: Scope) -> QueryError:
    return scope.place(node).refuse(
        NotSupported, message, hint="put it into WHERE: it is then asked of the partner that was found"
    )

"""ASOF JOIN: of the partners that equal in the keys the one that is nearest, back or ahead.

ON holds equalities and one inequality, which says what is nearest: by ``a.ts >= b.ts`` or ``>`` the latest
that is not ahead, by ``a.ts <= b.ts`` or ``<`` the earliest that is not behind; what it asks of one side
alone is asked of the candidates. Of USING the last column is the inequality, ``>=``. Of several that are
equally near the last in order is taken. To look ahead is to look back along values that are turned round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import nan

from sqlglot import exp

from engine.algebra.join.stage import Latest
from engine.language.bind.calls import coerce
from engine.language.bind.joined import BoundJoin, fitted
from engine.language.bind.placing import conjuncts
from engine.language.bind.relation import BoundRelation
from engine.language.bind.scope import Scope
from engine.language.rules import rewrite
from engine.model.expressions import Case, Compare, CompareOp, Expression, Function, Literal, Negate
from engine.model.types import BIGINT, DOUBLE, TIMESTAMP, Kind
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
            pair = fitted(outer, join.inside(inner))
            assert pair is not None  # they were compared
            if op in ("<", "<="):
                pair = _turned(pair[0], node, scope), _turned(pair[1], node, scope)
            return Latest(rewrite(pair[0]), rewrite(pair[1]), strict=op in ("<", ">"))
    raise _refused("ON of ASOF JOIN takes equalities and one inequality of both sides", node, scope)


def _turned(value: Expression, node: exp.Expr, scope: Scope) -> Expression:
    """A value that is greater where this one is less; of NaN NULL. Raises NotSupported for text."""
    type_ = value.type
    match type_.kind:
        case Kind.INTEGER | Kind.BIGINT:
            return Function("~", (value,), type_)
        case Kind.DATE | Kind.TIMESTAMP:
            epoch_ms = Function("EPOCH_MS", (coerce(value, TIMESTAMP),), BIGINT)
            return Function("~", (epoch_ms,), BIGINT)
        case Kind.DECIMAL:
            return Negate(value, type_)
        case Kind.DOUBLE:
            is_nan = Compare("=", value, Literal(nan, DOUBLE))
            return Case(((is_nan, Literal(None, DOUBLE)),), Negate(value, DOUBLE), DOUBLE)
    raise scope.place(node).refuse(
        NotSupported,
        f"ASOF JOIN looks ahead along numbers and instants, this is {type_}",
        hint="exchange the sides: " + _FORM.removeprefix("write "),
    )


def _refused(message: str, node: exp.Expr, scope: Scope) -> QueryError:
    return scope.place(node).refuse(
        NotSupported, message, hint="put it into WHERE: it is then asked of the partner that was found"
    )

"""Comparisons that are not TRUE where a value is NULL: of the subqueries in them only partners matter."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from engine.language.grammar import nodes

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between)
_STRICT = (exp.Paren, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.Cast, exp.TryCast)


def rejecting(condition: exp.Expr) -> Iterator[int]:
    """The ids of the subqueries whose NULL makes a condition NULL or FALSE."""
    inside = condition.unnest()
    if isinstance(inside, _COMPARISONS):
        for part in inside.iter_expressions():
            yield from _strictly(part)


def _strictly(node: exp.Expr) -> Iterator[int]:
    if isinstance(node, nodes.ValueQuery):
        yield id(node)
    elif isinstance(node, _STRICT):
        for part in node.iter_expressions():
            yield from _strictly(part)

"""Literals stand right of a comparison: ``5 < a`` -> ``a > 5``."""

from __future__ import annotations

from engine.language.rules.tree import transform
from engine.model.expressions import TURNED, Compare, Expression, Literal


def literal_right(expression: Expression) -> Expression:
    """Apply the rule."""
    return transform(expression, _turn)


def _turn(expression: Expression) -> Expression:
    if (
        isinstance(expression, Compare)
        and isinstance(expression.left, Literal)
        and not isinstance(expression.right, Literal)
    ):
        return Compare(TURNED[expression.op], expression.right, expression.left)
    return expression

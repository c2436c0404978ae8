"""Users' functions come last in AND and OR: ``mine(a) AND b > 1`` -> ``b > 1 AND mine(a)``.

The order changes no outcome, and what comes last is computed for the rows alone that are not decided before.
"""

from __future__ import annotations

from engine.language.rules.tree import transform
from engine.model.expressions import And, Expression, Or, calls_user


def calls_last(expression: Expression) -> Expression:
    """Apply the rule. O(nodes) where there is no such function."""
    return transform(expression, _sort) if calls_user(expression) else expression


def _sort(expression: Expression) -> Expression:
    if not isinstance(expression, And | Or):
        return expression
    operands = tuple(sorted(expression.operands, key=calls_user))
    return expression if operands == expression.operands else type(expression)(operands)

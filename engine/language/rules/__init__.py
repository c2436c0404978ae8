"""Rewrites of bound expressions: one rule a file, applied in the order of RULES.

A rule keeps the outcome of every row: value, NULL and error alike. None of them folds an error away.
"""

from __future__ import annotations

from engine.language.rules.calls_last import calls_last
from engine.language.rules.factor_or import factor_or
from engine.language.rules.flatten_connectors import flatten_connectors
from engine.language.rules.fold_constants import fold_constants
from engine.language.rules.gather_in import gather_in
from engine.language.rules.literal_right import literal_right
from engine.language.rules.narrow_literals import narrow_literals
from engine.language.rules.push_not_down import push_not_down
from engine.model.expressions import Column, Expression, Literal

RULES = (
    fold_constants,
    push_not_down,
    flatten_connectors,
    factor_or,
    literal_right,
    narrow_literals,
    gather_in,
    calls_last,
)


def rewrite(expression: Expression) -> Expression:
    """Apply every rule once, in order."""
    if isinstance(expression, Column | Literal):
        return expression
    for rule in RULES:
        expression = rule(expression)
    return expression

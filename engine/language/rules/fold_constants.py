"""Compute what has no column in it: ``2 * 60 > x`` -> ``120 > x``.

What ends as an error stays as it is and errs for every row. In AND and OR the literals are absorbed: TRUE
AND x is x, and
FALSE AND x is FALSE whatever x is, an error included.
"""

from __future__ import annotations

from engine.language.evaluate import constant_value
from engine.language.rules.tree import transform
from engine.model.expressions import (
    And,
    Arithmetic,
    Column,
    Compare,
    Expression,
    Function,
    Literal,
    Or,
    children,
)
from engine.model.types import BOOLEAN


def fold_constants(expression: Expression) -> Expression:
    """Apply the rule."""
    return transform(expression, _fold)


def _fold(expression: Expression) -> Expression:
    match expression:
        case Column() | Literal():
            return expression
        case And(operands):
            return _absorb(expression, operands, neutral=True)
        case Or(operands):
            return _absorb(expression, operands, neutral=False)
        case Compare(left=left, right=right) | Arithmetic(left=left, right=right):
            if _is_null(left) or _is_null(right):
                return Literal(None, expression.type)  # NULL wins over whatever the other is
        case Function(implementation=implementation):
            if implementation is not None:
                return expression  # a user's function is called for rows only
        case _:
            pass
    if not all(isinstance(child, Literal) for child in children(expression)):
        return expression
    folded = constant_value(expression)
    return expression if folded is None else folded


def _is_null(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.is_null


def _absorb(expression: And | Or, operands: tuple[Expression, ...], neutral: bool) -> Expression:
    kept = []
    for operand in operands:
        if isinstance(operand, Literal) and not operand.is_null:
            if operand.value is not neutral:
                return operand
        else:
            kept.append(operand)
    if not kept:
        return Literal(neutral, BOOLEAN)
    if len(kept) == 1:
        return kept[0]
    if all(_is_null(operand) for operand in kept):
        return kept[0]
    return expression if len(kept) == len(operands) else type(expression)(tuple(kept))

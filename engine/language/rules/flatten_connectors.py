"""One AND of many instead of ANDs of ANDs, the same for OR; operands that stand twice stay once."""

from __future__ import annotations

from engine.language.rules.tree import transform
from engine.model.expressions import And, Expression, Or


def flatten_connectors(expression: Expression) -> Expression:
    """Apply the rule."""
    return transform(expression, _flatten)


def _flatten(expression: Expression) -> Expression:
    if not isinstance(expression, And | Or):
        return expression
    same = type(expression)
    flat: dict[Expression, None] = {}
    for operand in expression.operands:
        if isinstance(operand, same):
            flat.update(dict.fromkeys(operand.operands))
        else:
            flat[operand] = None
    operands = tuple(flat)
    return operands[0] if len(operands) == 1 else same(operands)

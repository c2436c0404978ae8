"""Move NOT towards the leaves: ``NOT (a < 1 AND b)`` -> ``a >= 1 OR NOT b``.

De Morgan's laws hold with NULLs and errors, and a comparison's mirror is exact, since NaN has its place in
the order.
"""

from __future__ import annotations

from engine.language.rules.tree import transform
from engine.model.expressions import NEGATED, And, Compare, Expression, Literal, Not, Or
from engine.model.types import BOOLEAN


def push_not_down(expression: Expression) -> Expression:
    """Apply the rule."""
    return transform(expression, lambda node: _negated(node.operand) if isinstance(node, Not) else node)


def _negated(expression: Expression) -> Expression:
    match expression:
        case Not(operand):
            return operand
        case And(operands):
            return Or(tuple(_negated(operand) for operand in operands))
        case Or(operands):
            return And(tuple(_negated(operand) for operand in operands))
        case Compare(op, left, right):
            return Compare(NEGATED[op], left, right)
        case Literal(value):
            return Literal(None if value is None else not value, BOOLEAN)
        case _:
            return Not(expression)

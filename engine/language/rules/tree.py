"""Walking bound expressions from the leaves up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from engine.model.expressions import (
    And,
    Arithmetic,
    Case,
    Cast,
    Compare,
    Expression,
    Function,
    In,
    IsNull,
    Like,
    Negate,
    Not,
    Or,
)


def transform(expression: Expression, visit: Callable[[Expression], Expression]) -> Expression:
    """Rebuild the tree, each node visited after its children; nodes that do not change are kept."""
    match expression:
        case Compare(left=left, right=right) | Arithmetic(left=left, right=right):
            new_left, new_right = transform(left, visit), transform(right, visit)
            if new_left is not left or new_right is not right:
                expression = replace(expression, left=new_left, right=new_right)
        case And(operands) | Or(operands):
            new = tuple(transform(operand, visit) for operand in operands)
            if any(a is not b for a, b in zip(new, operands, strict=True)):
                expression = replace(expression, operands=new)
        case (
            Not(operand=operand)
            | IsNull(operand=operand)
            | In(operand=operand)
            | Like(operand=operand)
            | Negate(operand=operand)
            | Cast(operand=operand)
        ):
            new_operand = transform(operand, visit)
            if new_operand is not operand:
                expression = replace(expression, operand=new_operand)
        case Case(branches, otherwise, type_):
            expression = Case(
                tuple((transform(c, visit), transform(v, visit)) for c, v in branches),
                transform(otherwise, visit),
                type_,
            )
        case Function(arguments=arguments):
            new = tuple(transform(argument, visit) for argument in arguments)
            if any(a is not b for a, b in zip(new, arguments, strict=True)):
                expression = replace(expression, arguments=new)
        case _:
            pass
    return visit(expression)

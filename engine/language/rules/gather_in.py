"""``a = 1 OR a = 2 OR b`` -> ``a IN (1, 2) OR b``, for literals of the operand's own type.

Equal outcomes: where nothing matches IN is NULL if the list holds a NULL, as the OR is.
"""

from __future__ import annotations

from engine.language.rules.tree import transform
from engine.model.expressions import Compare, Expression, In, Literal, Or


def gather_in(expression: Expression) -> Expression:
    """Apply the rule."""
    return transform(expression, _gather)


def _gather(expression: Expression) -> Expression:
    if not isinstance(expression, Or):
        return expression
    choices: dict[Expression, list[Literal]] = {}
    operands: list[Expression] = []
    for operand in expression.operands:
        key = _equality(operand)
        if key is None:
            operands.append(operand)
            continue
        subject, literal = key
        if subject not in choices:
            choices[subject] = []
            operands.append(operand)
        choices[subject].append(literal)
    if all(len(found) == 1 for found in choices.values()):
        return expression
    result: list[Expression] = []
    for operand in operands:
        key = _equality(operand)
        found = choices[key[0]] if key is not None else []
        result.append(In(key[0], tuple(found)) if key is not None and len(found) > 1 else operand)
    return result[0] if len(result) == 1 else Or(tuple(result))


def _equality(expression: Expression) -> tuple[Expression, Literal] | None:
    if (
        isinstance(expression, Compare)
        and expression.op == "="
        and isinstance(expression.right, Literal)
        and not isinstance(expression.left, Literal)
        and expression.left.type == expression.right.type
    ):
        return expression.left, expression.right
    return None

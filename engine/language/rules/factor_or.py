"""What all parts of an OR ask: ``(a AND x) OR (a AND y)`` becomes ``a AND (x OR y)``.

An equality of two sources that every part holds is then one that they are joined by. Only tests of columns
that cannot err are taken out: where x is TRUE and y NULL, an error of ``a`` would be NULL before and an error
behind.
"""

from __future__ import annotations

from engine.language.rules.tree import transform
from engine.model.expressions import (
    And,
    Column,
    Compare,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Or,
    children,
    conjunction,
)


def factor_or(expression: Expression) -> Expression:
    """Apply the rule."""
    return transform(expression, _factored)


def _factored(expression: Expression) -> Expression:
    if not isinstance(expression, Or):
        return expression
    parts = [part.operands if isinstance(part, And) else (part,) for part in expression.operands]
    shared = [test for test in dict.fromkeys(parts[0]) if _is_plain(test)]
    for part in parts[1:]:
        shared = [test for test in shared if test in part]
    if not shared:
        return expression
    rests = [tuple(test for test in part if test not in shared) for part in parts]
    if not all(rests):
        return conjunction(shared)  # a OR (a AND x) is a
    return And((*shared, Or(tuple(conjunction(rest) for rest in rests))))


def _is_plain(test: Expression) -> bool:
    return isinstance(test, Compare | In | IsNull | Like) and all(
        isinstance(part, Column | Literal) for part in children(test)
    )

"""ORDER BY: sort keys."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlglot import exp

from engine.algebra.sort.stage import SortKey
from engine.language.bind.scope import Scope
from engine.language.places import shown
from engine.model.expressions import Expression
from tureen.errors import SyntaxRefused, TypeMismatch

KEYS_MAX = 100
"""Each key of a sort is a column of all its rows."""


def require_few(items: Sequence[exp.Expr], scope: Scope) -> None:
    """Raises LimitExceeded."""
    if len(items) > KEYS_MAX:
        raise scope.place(items[KEYS_MAX]).exceeded(
            "order_keys_max", KEYS_MAX, len(items), hint="order by fewer keys"
        )


def require_varying(item: exp.Expr, clause: str, selected: Collection[str], scope: Scope) -> None:
    """Raises SyntaxRefused: all rows have the same one. selected: names of the columns of SELECT."""
    constant = item.unnest()
    if not (constant.is_string or isinstance(constant, exp.Boolean | exp.Null)):
        return
    text = str(constant.this)
    hint = "write the column's name, or its number from 1"
    if constant.is_string and (text in selected or text in scope.names.columns):
        hint = f'the column is written "{shown(text)}"; in single quotes it is a text'
    raise scope.place(item).refuse(
        SyntaxRefused, f"a constant in {clause} is the same for all rows", hint=hint
    )


def sort_key(expression: Expression, item: exp.Expr, scope: Scope) -> SortKey:
    """What one item of ORDER BY means; NULLs are last going up and first going down unless it says. Raises
    TypeMismatch: values of its type have no order.
    """
    if expression.type.is_nested:
        raise scope.place(item).refuse(
            TypeMismatch,
            f"{expression.type} has no order",
            hint="order by a part of it, or by CAST(x AS STRING), its text",
        )
    descending = bool(item.args["descending"])
    nulls_first = item.args.get("nulls_first")
    return SortKey(expression, descending, descending if nulls_first is None else bool(nulls_first))

"""ORDER BY: sort keys."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from engine.algebra.sort.stage import SortKey
from engine.language.bind.scope import Scope
from engine.model.expressions import Expression

KEYS_MAX = 100
"""Each key of a sort is a column of all its rows."""


def require_few(items: Sequence[exp.Expr], scope: Scope) -> None:
    """Raises LimitExceeded."""
    if len(items) > KEYS_MAX:
        raise scope.place(items[KEYS_MAX]).exceeded(
            "order_keys_max", KEYS_MAX, len(items), hint="order by fewer keys"
        )


def sort_key(expression: Expression, item: exp.Expr) -> SortKey:
    """What one item of ORDER BY means; NULLs are last going up and first going down unless it says."""
    descending = bool(item.args["descending"])
    nulls_first = item.args.get("nulls_first")
    return SortKey(expression, descending, descending if nulls_first is None else bool(nulls_first))

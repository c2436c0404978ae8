"""ORDER BY: sort keys."""

from __future__ import annotations

from sqlglot import exp

from engine.language.expressions import Expression
from engine.language.query import SortKey


def sort_key(expression: Expression, item: exp.Expr) -> SortKey:
    """What one item of ORDER BY means; NULLs are last going up and first going down unless it says."""
    descending = bool(item.args["descending"])
    nulls_first = item.args.get("nulls_first")
    return SortKey(expression, descending, descending if nulls_first is None else bool(nulls_first))

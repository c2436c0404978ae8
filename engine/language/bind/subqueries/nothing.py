"""What an aggregate without GROUP BY gives over no rows: counts are 0, all others are NULL.

Grouped by what correlates it has no row there, so that no partner is found: then this stands in its place.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.algebra.aggregate.stage import AggregateCall
from engine.language.rules import rewrite
from engine.language.rules.tree import transform
from engine.model.expressions import Case, Column, Expression, IsNull, Literal

_COUNTS = ("COUNT", "APPROX_COUNT_DISTINCT", "REGR_COUNT")


def over_nothing(
    value: Expression,
    calls: tuple[AggregateCall, ...],
    keys: int,
    around: Mapping[int, Expression] | None = None,
) -> Expression:
    """The value, over the columns of groups, of a group without rows. keys: how many columns are before those
    of the calls. around: what is there in any case, by the places of keys that it equals.
    """

    def of_no_rows(node: Expression) -> Expression:
        if not isinstance(node, Column):
            return node
        if around is not None and node.index in around:
            return around[node.index]
        counts = node.index >= keys and calls[node.index - keys].function in _COUNTS
        return Literal(0 if counts else None, node.type)

    return rewrite(transform(value, of_no_rows))


def where_missing(value: Expression, marker: Expression, empty: Expression) -> Expression:
    """The value, or ``empty`` where there is no partner: its marker is NULL there, and nowhere else."""
    if isinstance(empty, Literal) and empty.is_null:
        return value
    return Case(((IsNull(marker), empty),), value, value.type)

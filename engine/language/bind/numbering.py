"""ROW_NUMBER() OVER (...) in one SELECT: each different one becomes a column."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from engine.algebra.row_number.stage import RowNumber
from engine.algebra.sort.stage import SortKey
from engine.language.bind.group_windows import expanded
from engine.language.bind.ordering import require_few, sort_key
from engine.language.bind.scalar import bind_scalar
from engine.language.bind.scope import Scope
from engine.model.expressions import Column, Expression
from engine.model.types import BIGINT

FIRST = -1_000_000
"""Columns of numbers count down from here until it is settled where they stand."""


class Numbering:
    """The stages of the numbers, in the order in which they were met."""

    def __init__(self) -> None:
        self._places: dict[tuple[tuple[Expression, ...], tuple[SortKey, ...]], int] = {}

    def column(self, node: exp.Expr, scope: Scope) -> Expression:
        """The column of one call."""
        inside = replace(scope, numbering=None, clause="OVER")
        keys = dict.fromkeys(bind_scalar(key, inside) for key in expanded(node.args["partition"], inside))
        require_few(node.args["order"], inside)
        order = tuple(sort_key(bind_scalar(item.this, inside), item) for item in node.args["order"])
        place = self._places.setdefault((tuple(keys), order), len(self._places))
        return Column(FIRST - place, "row_number", BIGINT)

    def stages(self) -> list[RowNumber]:
        """One for each; keys and order as they were bound."""
        return [RowNumber(keys, order) for keys, order in self._places]

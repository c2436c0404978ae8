"""ROW_NUMBER() OVER (...), and the first rows of each part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from engine.algebra.operator import Operator
from engine.algebra.sort.stage import SortKey
from engine.model.expressions import Expression
from engine.model.types import BIGINT, Type


@dataclass(frozen=True, slots=True)
class RowNumber(Operator):
    """ROW_NUMBER() OVER (PARTITION BY keys ORDER BY order): one more column, a BIGINT, at the end.

    The rows of each value of the keys (NULL is a value, NaN too; a key that is an error counts as NULL, and
    is counted) are numbered from 1 in the order that ``order`` gives, stably; rows keep their places. count:
    only rows up to this number stay, the top of each; None: all.
    """

    replaces_missing: ClassVar[bool] = True
    widens: ClassVar[bool] = True

    keys: tuple[Expression, ...]
    order: tuple[SortKey, ...]
    count: int | None = None

    @property
    def goes_by_order(self) -> bool:
        return True

    def columns_above(self, below: Sequence[tuple[str, Type]]) -> Sequence[tuple[str, Type]]:
        return *below, ("row_number", BIGINT)

    def up_to_number(self, count: int) -> RowNumber | None:
        return replace(self, count=count) if self.count is None else None

    def with_expressions(self, change: Callable[[Expression], Expression]) -> RowNumber:
        """With others in the place of what it evaluates."""
        order = tuple(key.with_expression(change) for key in self.order)
        return replace(self, keys=tuple(map(change, self.keys)), order=order)

    def expressions(self) -> tuple[Expression, ...]:
        return (*self.keys, *(key.expression for key in self.order))

"""ROW_NUMBER() OVER (...), and the first rows of each part."""

from __future__ import annotations

from dataclasses import dataclass

from engine.algebra.operator import Operator
from engine.algebra.sort.stage import SortKey
from engine.model.expressions import Expression


@dataclass(frozen=True, slots=True)
class RowNumber(Operator):
    """ROW_NUMBER() OVER (PARTITION BY keys ORDER BY order): one more column, a BIGINT, at the end.

    The rows of each value of the keys (NULL is a value, NaN too; a key that is an error counts as NULL, and
    is counted) are numbered from 1 in the order that ``order`` gives, stably; rows keep their places. count:
    only rows up to this number stay, the top of each; None: all.
    """

    keys: tuple[Expression, ...]
    order: tuple[SortKey, ...]
    count: int | None = None

    @property
    def goes_by_order(self) -> bool:
        return True

    def expressions(self) -> tuple[Expression, ...]:
        return (*self.keys, *(key.expression for key in self.order))

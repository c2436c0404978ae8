"""FETCH FIRST n ROWS WITH TIES."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from engine.algebra.operator import Operator
from engine.algebra.sort.stage import SortKey
from engine.model.expressions import Expression


@dataclass(frozen=True, slots=True)
class WithTies(Operator):
    """The rows in the order of the keys, of which the first ``offset`` are left out: the next ``count``, and
    those behind them that are equal to the last of these in all keys.
    """

    replaces_missing: ClassVar[bool] = True
    sorts: ClassVar[bool] = True

    keys: tuple[SortKey, ...]
    count: int
    offset: int = 0

    @property
    def goes_by_order(self) -> bool:
        return self.offset > 0  # which of equal rows are left out

    def expressions(self) -> tuple[Expression, ...]:
        return tuple(key.expression for key in self.keys)

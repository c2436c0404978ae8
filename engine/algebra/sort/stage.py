"""ORDER BY."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from engine.algebra.operator import Operator
from engine.model.expressions import Expression


@dataclass(frozen=True, slots=True)
class SortKey:
    """An expression to sort by. Ascending has NULLs last, descending first, unless the text says otherwise;
    NaN is above all numbers.
    """

    expression: Expression
    descending: bool = False
    nulls_first: bool = False

    def with_expression(self, change: Callable[[Expression], Expression]) -> SortKey:
        """With another in the place of what it sorts by."""
        return replace(self, expression=change(self.expression))


@dataclass(frozen=True, slots=True)
class Sort(Operator):
    """Stable."""

    sorts: ClassVar[bool] = True

    keys: tuple[SortKey, ...]

    def expressions(self) -> tuple[Expression, ...]:
        return tuple(key.expression for key in self.keys)

"""ORDER BY."""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Sort(Operator):
    """Stable."""

    sorts: ClassVar[bool] = True

    keys: tuple[SortKey, ...]

    def expressions(self) -> tuple[Expression, ...]:
        return tuple(key.expression for key in self.keys)

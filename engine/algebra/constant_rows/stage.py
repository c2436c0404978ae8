"""VALUES: rows of constants, whatever is below."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from engine.algebra.operator import Operator
from engine.model.expressions import Literal
from engine.model.types import Type


@dataclass(frozen=True, slots=True)
class ConstantRows(Operator):
    """Rows of constants, in this order, at every instant. Of the relation below nothing is read: it tells
    alone at which instants there are answers.

    columns: names, no two alike, and types. rows: a literal of its type for each column.
    """

    reads_nothing: ClassVar[bool] = True

    columns: tuple[tuple[str, Type], ...]
    rows: tuple[tuple[Literal, ...], ...]

    @property
    def computed(self) -> tuple[tuple[str, Type], ...]:
        return self.columns

    @property
    def places_read(self) -> frozenset[int]:
        return frozenset()

    @property
    def rows_read(self) -> int:
        return 0

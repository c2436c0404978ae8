"""HAVING, and a WHERE above other stages."""

from __future__ import annotations

from dataclasses import dataclass

from engine.algebra.operator import Operator
from engine.model.expressions import Expression


@dataclass(frozen=True, slots=True)
class Filter(Operator):
    """HAVING, or a WHERE above other stages: rows where it is TRUE; errors are counted."""

    predicate: Expression

    @property
    def condition_of_rows(self) -> Expression:
        return self.predicate

    def expressions(self) -> tuple[Expression, ...]:
        return (self.predicate,)

"""IN and EXISTS, NOT IN and NOT EXISTS."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from engine.algebra.operator import Operator
from engine.model.expressions import Column, Expression

if TYPE_CHECKING:
    from engine.language.query import Query


@dataclass(frozen=True, slots=True)
class SemiJoin(Operator):
    """Rows whose keys are (negated: are not) among the rows of ``inner``, a query over any source.

    null_aware: as IN does: a NULL key, or a NULL among inner's rows where nothing equals, makes the outcome
    NULL, so that NOT IN then keeps nothing, unless inner has no rows, when it keeps all; there is one key
    then. Otherwise as EXISTS does: NULL equals nothing. Keys have the types of inner's columns. No keys:
    whether inner has rows; its one column then means nothing.
    """

    seeks_partners: ClassVar[bool] = True

    keys: tuple[Expression, ...]
    inner: Query
    negated: bool = False
    null_aware: bool = False

    @property
    def right_input(self) -> Query:
        return self.inner

    def with_right_input(self, query: Query) -> SemiJoin:
        return replace(self, inner=query)

    @property
    def compared(self) -> tuple[tuple[Expression, Expression], ...]:
        columns = self.inner.columns
        return tuple((key, Column(place, *columns[place])) for place, key in enumerate(self.keys))

    @property
    def negates(self) -> bool:
        return self.negated

    def expressions(self) -> tuple[Expression, ...]:
        return self.keys

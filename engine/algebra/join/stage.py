"""JOIN of all kinds, ASOF too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from engine.algebra.operator import Operator
from engine.language.column_names import with_inner
from engine.model.expressions import Expression
from engine.model.types import Type

if TYPE_CHECKING:
    from engine.language.query import Query


JoinKind = Literal["inner", "left", "right", "full", "semi", "anti"]


@dataclass(frozen=True, slots=True)
class Latest:
    """ASOF: of the inner rows that may be partners only the latest: the one with the greatest ``inner`` that
    is not above ``outer`` (strict: that is below it), the last in order among equals.

    outer: over the relation's columns; inner: over inner's columns, of the same type. NULL has no partner.
    """

    outer: Expression
    inner: Expression
    strict: bool = False


@dataclass(frozen=True, slots=True)
class Join(Operator):
    """Rows of the relation with rows of ``inner``, a query over any source.

    keys: pairs of expressions of one type, over the relation's columns and over inner's; partners equal in
    all of them, and NULL equals nothing. condition: over the relation's columns and, numbered on, inner's:
    what partners must satisfy besides. An error in a key counts as NULL, one in the condition (looked at for
    rows that equal in the keys) as FALSE, and both are counted. latest: ASOF, after keys, before condition.

    Columns: the relation's, then inner's; of ``semi`` and ``anti`` (at least one partner; none) the
    relation's alone. ``left`` keeps rows without a partner, with NULLs for inner's columns; ``right`` and
    ``full`` keep inner's. Order: that of the relation, partners in inner's order; then inner's rows without
    a partner. Rows are not numbered (:mod:`engine.operators.relation`) where numbers are combined.
    """

    seeks_partners: ClassVar[bool] = True
    widens: ClassVar[bool] = True
    unordered: ClassVar[tuple[str, ...]] = ("keys",)

    inner: Query
    kind: JoinKind
    keys: tuple[tuple[Expression, Expression], ...] = ()
    condition: Expression | None = None
    latest: Latest | None = None

    @property
    def pairs(self) -> Join | None:
        return None if self.kind in ("semi", "anti") or self.latest is not None else self

    @property
    def join(self) -> Join:
        return self

    @property
    def goes_by_order(self) -> bool:
        return self.latest is not None

    def columns_above(self, below: Sequence[tuple[str, Type]]) -> Sequence[tuple[str, Type]]:
        return below if self.kind in ("semi", "anti") else with_inner(below, self.inner.columns)

    @property
    def right_input(self) -> Query:
        return self.inner

    def with_right_input(self, query: Query) -> Join:
        return replace(self, inner=query)

    @property
    def compared(self) -> tuple[tuple[Expression, Expression], ...]:
        return self.keys

    @property
    def negates(self) -> bool:
        return self.kind == "anti"

    def expressions(self) -> tuple[Expression, ...]:
        left = [key for key, _ in self.keys]
        left += [] if self.condition is None else [self.condition]
        return tuple(left if self.latest is None else [*left, self.latest.outer])

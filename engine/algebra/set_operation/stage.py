"""UNION, INTERSECT and EXCEPT."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from engine.algebra.operator import Operator
from engine.model.expressions import Column, Expression

if TYPE_CHECKING:
    from engine.language.query import Query


SetOperationKind = Literal["union", "intersect", "except"]


@dataclass(frozen=True, slots=True)
class SetOperation(Operator):
    """UNION ALL, INTERSECT [ALL] or EXCEPT [ALL] of the relation, the left input, and ``inner``, the right.

    Both have as many columns, of the same types; the result has the names of the left input. NULL equals NULL
    here, and NaN equals NaN. With v1 and v2 copies of a row left and right, ``union`` gives v1 + v2 of them,
    ``intersect`` min(v1, v2) and ``except`` max(v1 - v2, 0); those of ``except`` are the youngest left rows,
    by entry. Order: of ``union`` the left rows, then the right ones; of the others that of the left rows.

    all: without it, a row is given at most once: where v1 and v2 are positive, or v1 is and v2 is 0. UNION is
    UNION ALL below a Distinct. on: of EXCEPT ALL: the places of the columns that are compared, (left, right),
    instead of all; left rows are given whole, and the right input may have other columns.
    """

    kind: SetOperationKind
    inner: Query
    all: bool = True
    on: tuple[tuple[int, int], ...] | None = None

    @property
    def united(self) -> Query | None:
        return self.inner if self.kind == "union" else None

    @property
    def goes_by_order(self) -> bool:
        return self.on is not None

    @property
    def right_input(self) -> Query:
        return self.inner

    def with_right_input(self, query: Query) -> SetOperation:
        return replace(self, inner=query)

    @property
    def compared(self) -> tuple[tuple[Expression, Expression], ...]:
        given = [Column(place, name, type_) for place, (name, type_) in enumerate(self.inner.columns)]
        if self.on is None:
            return tuple(zip(given, given, strict=True))
        return tuple((Column(place, "", given[other].type), given[other]) for place, other in self.on)

    @property
    def negates(self) -> bool:
        return self.kind == "except"

    @property
    def places_read(self) -> frozenset[int] | None:
        if self.kind == "union":
            return frozenset()
        return None if self.on is None else frozenset(place for place, _ in self.on)

    @property
    def one_zero(self) -> bool:
        return self.kind != "union" and self.on is None

"""A subquery's value as a join: its rows, what they must equal around them, what the join gives of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.language.bind.placing import asked_of_pairs
from engine.language.bind.relation import BoundRelation, Extent
from engine.language.bind.subqueries.nothing import where_missing
from engine.language.rules.tree import transform
from engine.model.expressions import Column, Compare, Expression


@dataclass(frozen=True, slots=True)
class SubqueryValue:
    """inner: one row at most for each value of its columns at ``places``, which must equal ``outer``, over
    what is around. value: over inner's columns; empty: what stands for it where there is no partner. whole:
    whether rows without a partner stay.
    """

    inner: BoundRelation
    outer: tuple[Expression, ...]
    places: tuple[int, ...]
    value: Expression
    empty: Expression
    whole: bool

    def joined(self, relation: BoundRelation, sql: str) -> tuple[BoundRelation, Expression]:
        """The relation, joined, with the columns that it had; and the value over what the join gives."""
        joined = relation.joined(self.inner, "left" if self.whole else "inner", sql)
        own = [output.expression for output in joined.columns[len(relation.columns) :]]
        equal = [
            Compare("=", outer, own[place]) for outer, place in zip(self.outer, self.places, strict=True)
        ]
        joined = asked_of_pairs(joined, equal)

        def moved(node: Expression) -> Expression:
            return own[node.index] if isinstance(node, Column) else node

        value = transform(self.value, moved)
        if self.places:
            value = where_missing(value, own[self.places[0]], self.empty)
        extent = Extent(joined.extent.stages, relation.extent.over(0, self.inner.extent.nested()).depth)
        return replace(joined, columns=relation.columns, extent=extent), value

"""Where a condition goes among joins: as near to the scans as it can stand without another meaning.

A condition over one source alone goes to its scan, one over both sides of a join into the join, unless an
outer join lies between that would give rows for it to reject:

    below a RIGHT or FULL JOIN    nothing that is asked of its result goes to its left side
    below a LEFT or FULL JOIN     nor to its right side
    below ASOF                    what WHERE asks of the right side is asked of the partner that was found

What ON asks is asked of pairs: of the side that is not kept whole it may be asked before. Of the versions of
a table only their key may be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from engine.algebra.filter.stage import Filter
from engine.language.bind.relation import BoundRelation
from engine.language.bind.scalar import TRUE
from engine.language.rules import rewrite
from engine.language.rules.factor_or import factor_or
from engine.language.rules.flatten_connectors import flatten_connectors
from engine.model.expressions import And, Expression, Or, columns_of, conjunction


def narrowed(relation: BoundRelation, conditions: Iterable[Expression]) -> BoundRelation:
    """Only rows where all conditions, over what the last stage or join gives, are TRUE."""
    if not relation.joins:
        return relation.narrowed(conditions)
    placing = _Placing(relation)
    above: list[Expression] = []
    for condition in conditions:
        above += [part for part in conjuncts(condition) if not placing.sink(part, len(relation.joins))]
    relation = placing.placed()
    return relation.then(Filter(rewrite(conjunction(above)))) if above else relation


def asked_of_pairs(relation: BoundRelation, conditions: Iterable[Expression]) -> BoundRelation:
    """The relation, whose last join has these conditions in its ON."""
    placing, last = _Placing(relation), len(relation.joins) - 1
    join = relation.joins[last]
    for condition in conditions:
        for part in conjuncts(condition):
            left, right = join.sides(part)
            if not left and not right and rewrite(part) == TRUE:
                continue
            if not right and join.kind in ("inner", "semi", "right") and placing.sink(part, last):
                continue
            alone = right and not left and join.kind not in ("right", "full") and join.chooses_by(part)
            (placing.alone if alone else placing.conditions)[last].append(part)
    return placing.placed()


def conjuncts(condition: Expression) -> Iterator[Expression]:
    """The parts that AND joins, or that every part of an OR holds."""
    waiting = [condition]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Or):
            part = factor_or(flatten_connectors(part))
        if isinstance(part, And):
            waiting += reversed(part.operands)
        else:
            yield part


class _Placing:
    """Conditions as they are placed: below all joins, and for each join in one of three places."""

    def __init__(self, relation: BoundRelation) -> None:
        self._relation = relation
        self._below: list[Expression] = []
        self.alone: list[list[Expression]] = [[] for _ in relation.joins]
        self.conditions: list[list[Expression]] = [[] for _ in relation.joins]
        self._asked: list[list[Expression]] = [[] for _ in relation.joins]

    def sink(self, condition: Expression, level: int) -> bool:
        """Place a condition that holds behind the first ``level`` joins, if it can stand before."""
        joins = self._relation.joins
        top = max((column.index for column in columns_of(condition)), default=-1)
        needed = 0
        for number, join in enumerate(joins):
            if join.gives and top >= join.offset:
                needed = number + 1
        if any(join.kind in ("right", "full") for join in joins[needed:level]):
            return False
        if not needed:
            self._below.append(condition)
            return True
        place = needed - 1
        join = joins[place]
        is_alone = join.sides(condition) == (False, True)
        if is_alone and join.latest is None and join.kind in ("inner", "right"):
            self.alone[place].append(condition)
        elif join.kind == "inner":
            (self.conditions if join.latest is None else self._asked)[place].append(condition)
        else:
            return False
        return True

    def placed(self) -> BoundRelation:
        """The relation with all of them."""
        joins = [
            replace(
                join,
                alone=(*join.alone, *alone),
                conditions=(*join.conditions, *conditions),
                asked=(*join.asked, *asked),
            )
            for join, alone, conditions, asked in zip(
                self._relation.joins, self.alone, self.conditions, self._asked, strict=True
            )
        ]
        below = replace(self._relation, joins=())
        if self._below:
            below = below.narrowed(self._below)
        return replace(below, joins=tuple(joins))

"""Inequalities of a join's condition that a sorted side answers: ``a.x < b.y``, ``a.x BETWEEN b.y AND b.z``.

What they leave out is FALSE or NULL in one conjunct, so that the condition is neither TRUE nor an error
there, whatever its other conjuncts are; and what they leave in is TRUE in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from engine.model import expressions as ex
from engine.model.batch import BoolArray, Column
from engine.model.lazy_columns import LazyColumns
from engine.operators.keys import ordered
from engine.operators.partners import Bound, BoundedValues
from engine.operators.relation import Relation


@dataclass(frozen=True, slots=True)
class _Inequality:
    """``value op bound``, of one side's rows and of the other's. of_right: the right rows have the value."""

    conjunct: ex.Expression
    of_right: bool
    value: ex.Expression
    op: str
    bound: ex.Expression

    @property
    def lower(self) -> bool:
        return self.op in (">", ">=")


def bounded_by(
    condition: ex.Expression, left: Relation, right: Relation
) -> tuple[BoundedValues, ex.Expression | None] | None:
    """The inequalities to look partners up by, and what is left of the condition; None: there are none.

    condition: over the left columns and, numbered on, the right ones. An operand that errs in any row is
    none to look up by, for its errors are counted pair by pair.
    """
    conjuncts = list(_conjuncts(condition))
    width = len(left.columns)
    found = [each for conjunct in conjuncts for each in _inequalities(conjunct, width)]
    for chosen in _choices(found):
        bounded = _evaluated(chosen, left, right)
        if bounded is not None:
            used = [each.conjunct for each in chosen]
            rest = [conjunct for conjunct in conjuncts if not any(conjunct is each for each in used)]
            if len(rest) > 1:
                return bounded, ex.And(tuple(rest))
            return bounded, rest[0] if rest else None
    return None


def _conjuncts(condition: ex.Expression) -> Iterator[ex.Expression]:
    if isinstance(condition, ex.And):
        for operand in condition.operands:
            yield from _conjuncts(operand)
    else:
        yield condition


def _inequalities(conjunct: ex.Expression, width: int) -> Iterator[_Inequality]:
    """A comparison of the two sides, read both ways."""
    if not isinstance(conjunct, ex.Compare) or conjunct.op in ("=", "<>") or ex.calls_user(conjunct):
        return
    sides = [_sides(conjunct.left, width), _sides(conjunct.right, width)]
    if sides not in ([{False}, {True}], [{True}, {False}]):
        return
    right_first = sides[0] == {True}
    ways = [
        _Inequality(conjunct, right_first, conjunct.left, conjunct.op, conjunct.right),
        _Inequality(conjunct, not right_first, conjunct.right, ex.TURNED[conjunct.op], conjunct.left),
    ]
    yield from ways if right_first else ways[::-1]


def _sides(expression: ex.Expression, width: int) -> set[bool]:
    """The sides whose columns an expression reads; True: the right."""
    if isinstance(expression, ex.Column):
        return {expression.index >= width}
    return {side for child in ex.children(expression) for side in _sides(child, width)}


def _choices(found: list[_Inequality]) -> Iterator[tuple[_Inequality, ...]]:
    """What may be looked up by, the best first: a value with bounds on both sides, else with one."""
    for one in found:
        for other in found:
            if (
                one.lower
                and not other.lower
                and (one.of_right, one.value) == (other.of_right, other.value)
                and one.bound.type == other.bound.type
            ):
                yield one, other
    for one in found:
        yield (one,)


def _evaluated(chosen: tuple[_Inequality, ...], left: Relation, right: Relation) -> BoundedValues | None:
    of_right = chosen[0].of_right
    held = _column(chosen[0].value, left, right, of_right)
    bounds = [_column(each.bound, left, right, not of_right) for each in chosen]
    columns = [column for column in (held, *bounds) if column is not None]
    if len(columns) <= len(bounds):
        return None
    values = ordered(columns)
    if values is None:
        return None
    return BoundedValues(
        of_right,
        values[0],
        _usable(columns[0]),
        tuple(
            Bound(keys, _usable(column), each.lower, each.op in ("<", ">"))
            for each, keys, column in zip(chosen, values[1:], columns[1:], strict=True)
        ),
    )


def _column(expression: ex.Expression, left: Relation, right: Relation, of_right: bool) -> Column | None:
    """The value of an expression for each row of its side; None where one is an error."""
    relation = left
    if of_right:
        width, columns = len(left.columns), right.columns
        relation = Relation(
            LazyColumns(width + len(columns), lambda place: columns[place - width]), len(right)
        )
    result = relation.evaluate(expression)
    return None if result.error is not None and result.error.any() else result.column


def _usable(column: Column) -> BoolArray:
    return np.ones(len(column), np.bool_) if column.valid is None else column.valid

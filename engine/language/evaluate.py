"""Evaluate bound expressions over columns, vectorised.

Semantics are those of :mod:`engine.model.expressions`. Nothing is raised for data: errors are values.
Inputs are not changed. Cost: O(rows) a node; functions and comparisons of one string work once per distinct
value. Every branch of a CASE is computed for every row, and what was not taken is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from engine.language.evaluation import choices, logic
from engine.language.evaluation.arithmetic import arithmetic, negate
from engine.language.evaluation.casts import cast
from engine.language.evaluation.comparison import compare, is_in
from engine.language.evaluation.patterns import like
from engine.language.evaluation.user import call_user, late
from engine.language.evaluation.vector import Array, Vector, constant, from_column, spread, to_column
from engine.language.functions import KERNELS
from engine.model import batch
from engine.model.batch import BoolArray
from engine.model.expressions import (
    And,
    Arithmetic,
    Case,
    Cast,
    Column,
    Compare,
    Expression,
    Function,
    In,
    IsNull,
    Like,
    Literal,
    Negate,
    Not,
    Or,
    calls_user,
    user_functions,
)
from engine.model.interruption import may_go_on
from engine.model.lazy_columns import LazyColumns
from engine.model.types import BOOLEAN, Kind


@dataclass(frozen=True, slots=True)
class Result:
    """column: n values, not valid where NULL and where an error. error: bool[n], None where there is none."""

    column: batch.Column
    error: BoolArray | None


def evaluate(expression: Expression, columns: Sequence[batch.Column], n: int) -> Result:
    """The value of an expression for each of n rows.

    columns: by place in the source's schema, each of n rows; those that the expression does not name are
    not read.
    """
    with np.errstate(all="ignore"):
        column, error = to_column(_vector(expression, columns, n), n)
    return Result(column, error)


def truth(
    expression: Expression, columns: Sequence[batch.Column], n: int
) -> tuple[BoolArray, BoolArray | None]:
    """Where a BOOLEAN expression is TRUE, bool[n], and where it is an error, bool[n] or None if nowhere."""
    with np.errstate(all="ignore"):
        vector = _vector(expression, columns, n)
        true = vector.values if vector.unusable is None else vector.values & ~vector.unusable
        error = vector.error if vector.error is not None and vector.error.any() else None
    return spread(true, n), None if error is None else spread(error, n)


def constant_value(expression: Expression) -> Literal | None:
    """The literal that an expression without columns amounts to; None if that is an error."""
    result = evaluate(expression, (), 1)
    if result.error is not None:
        return None
    kind = expression.type.kind
    if result.column.valid is not None:
        return Literal(None, expression.type)
    value = result.column.values[0]
    if kind is Kind.STRING:
        assert result.column.dictionary is not None
        return Literal(result.column.dictionary[int(value)].as_py(), expression.type)
    if kind is Kind.DECIMAL:
        return Literal(Decimal(int(value)).scaleb(-expression.type.scale), expression.type)
    return Literal(value.item(), expression.type)


def _vector(expression: Expression, columns: Sequence[batch.Column], n: int) -> Vector:
    may_go_on()
    match expression:
        case Column(index=index):
            return from_column(columns[index])
        case Literal(value, type_):
            return constant(value, type_)
        case Compare(op, left, right):
            return compare(op, _vector(left, columns, n), _vector(right, columns, n))
        case And(operands):
            if calls_user(operands[-1]):
                return _late(operands, columns, n, logic.conjunction, deciding=False)
            return logic.conjunction([_vector(operand, columns, n) for operand in operands])
        case Or(operands):
            if calls_user(operands[-1]):
                return _late(operands, columns, n, logic.disjunction, deciding=True)
            return logic.disjunction([_vector(operand, columns, n) for operand in operands])
        case Not(operand):
            return logic.negation(_vector(operand, columns, n))
        case IsNull(operand):
            return logic.is_null(_vector(operand, columns, n))
        case In(operand, listed):
            return is_in(_vector(operand, columns, n), listed)
        case Like(operand=operand):
            return like(_vector(operand, columns, n), expression)
        case Arithmetic(op, left, right, type_):
            return arithmetic(op, _vector(left, columns, n), _vector(right, columns, n), type_)
        case Negate(operand):
            return negate(_vector(operand, columns, n))
        case Case(branches, otherwise, type_):
            conditions = [_vector(condition, columns, n) for condition, _ in branches]
            values = [_vector(value, columns, n) for _, value in branches]
            return choices.case(conditions, values, _vector(otherwise, columns, n), type_, n)
        case Cast(operand, type_, lenient):
            return cast(_vector(operand, columns, n), type_, lenient)
        case Function(name, arguments, type_, implementation):
            if implementation is not None:
                return call_user(implementation, [_vector(argument, columns, n) for argument in arguments], n)
            return KERNELS[name]([_vector(argument, columns, n) for argument in arguments], type_, n)


def _cost_to_decide(operand: Expression, deciding: bool) -> float:
    """What an operand costs for each row that it decides, as its calls were measured; where nothing was 0,
    so that operands stay in their order.
    """
    cost_ns = sum(one.meter.cost_ns or 0.0 for one in user_functions(operand))
    if isinstance(operand, Function) and operand.implementation is not None:
        true = operand.implementation.meter.true_share
        return cost_ns / (true if deciding else 1 - true)
    return 2 * cost_ns


def _late(
    operands: Sequence[Expression],
    columns: Sequence[batch.Column],
    n: int,
    connect: Callable[[list[Vector]], Vector],
    deciding: bool,
) -> Vector:
    """AND or OR whose last operands call users' functions: those see only the rows that need them, the first
    the one that decides most rows for its cost.
    """
    first = [operand for operand in operands if not calls_user(operand)]
    found = [_vector(operand, columns, n) for operand in first] or [constant(not deciding, BOOLEAN)]
    for operand in sorted(operands[len(first) :], key=lambda one: _cost_to_decide(one, deciding)):

        def rows_of(rows: Array, operand: Expression = operand) -> Vector:
            taken = LazyColumns(len(columns), lambda place: columns[place].take(rows))
            return _vector(operand, taken, len(rows))

        more = late(rows_of, connect(found), deciding, n)
        if more is None:
            break
        found.append(more)
    return connect(found)

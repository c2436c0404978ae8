"""Constants that queries of a shape differ in: conditions with parameters in place of them.

    HAVING COUNT(*) > 5   and   HAVING COUNT(*) > 7      are   HAVING COUNT(*) > $0   with 5 and 7

Only constants that a column is compared with are taken out: others may decide what an expression means.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.language.evaluate import evaluate
from engine.model import batch
from engine.model.batch import Int32Array, Int64Array, concatenate_columns
from engine.model.expressions import And, Column, Compare, Expression, Literal, Not, Or
from engine.model.lazy_columns import LazyColumns
from engine.model.types import Type

FIRST = 1_000_000
"""Parameters are columns from this place on: above all columns of a relation."""

Constants = tuple[Literal, ...]


def parameterised(predicate: Expression) -> tuple[Expression, Constants]:
    """A condition with parameters, and what they are."""
    constants: list[Literal] = []
    return _lifted(predicate, constants), tuple(constants)


def _lifted(expression: Expression, constants: list[Literal]) -> Expression:
    match expression:
        case And(operands):
            return And(tuple(_lifted(one, constants) for one in operands))
        case Or(operands):
            return Or(tuple(_lifted(one, constants) for one in operands))
        case Not(operand):
            return Not(_lifted(operand, constants))
        case Compare(op, left, Literal() as right) if not isinstance(left, Literal):
            return Compare(op, left, _parameter(right, constants))
        case Compare(op, Literal() as left, right) if not isinstance(right, Literal):
            return Compare(op, _parameter(left, constants), right)
    return expression


def _parameter(literal: Literal, constants: list[Literal]) -> Column:
    constants.append(literal)
    return Column(FIRST + len(constants) - 1, "", literal.type)


class ConstantTable:
    """The constants of columns by number."""

    def __init__(self, types: Sequence[Type]) -> None:
        self._types = types
        self._rows: list[Constants | None] = []
        self._columns: list[batch.Column] | None = None

    def put(self, column: int, constants: Constants) -> None:
        """A column comes."""
        while len(self._rows) <= column:
            self._rows.append(None)
        self._rows[column] = constants
        self._columns = None

    def of(self, parameter: int, columns: Int32Array) -> batch.Column:
        """A parameter's value for each of these columns."""
        if self._columns is None:
            known = next(row for row in self._rows if row is not None)
            self._columns = [
                concatenate_columns(
                    type_,
                    [evaluate((row or known)[place], (), 1).column for row in self._rows],
                )
                for place, type_ in enumerate(self._types)
            ]
        return self._columns[parameter].take(columns)


def with_parameters(
    columns: Sequence[batch.Column], rows: Int64Array, table: ConstantTable, owners: Int32Array
) -> LazyColumns:
    """The columns of pairs of a row and a query's column: those of the rows, and parameters from FIRST on."""

    def make(place: int) -> batch.Column:
        return table.of(place - FIRST, owners) if place >= FIRST else columns[place].take(rows)

    return LazyColumns(len(columns), make)

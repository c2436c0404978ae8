"""Relations at an instant: what the stages of a query pass on to each other.

Rows in an order, with columns. A column is made when somebody asks for it, and kept; so a scan gathers only
what later stages read, and only of the rows that are left by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from engine.language.evaluate import Result, evaluate
from engine.model import expressions as ex
from engine.model.batch import BoolArray, Column, Int64Array
from engine.model.lazy_columns import LazyColumns


class Moments(NamedTuple):
    """Where rows of streams stand in the order of time, int64[n] each: ascending, the first weighs most."""

    timestamp: Int64Array
    partition: Int64Array
    offset: Int64Array


class Relation:
    """n rows. columns: each of n rows; stored: makes the ordinals that rows of a scan have in their source,
    int64[n]; None of other rows. moments: makes those of rows of streams that are in the order of time; None
    of rows that are not.
    """

    __slots__ = ("_moments", "_stored", "columns", "n")

    def __init__(
        self,
        columns: Sequence[Column],
        n: int,
        stored: Callable[[], Int64Array] | None = None,
        moments: Callable[[], Moments] | None = None,
    ) -> None:
        self.columns = columns
        self.n = n
        self._stored = stored
        self._moments = moments

    def __len__(self) -> int:
        return self.n

    @property
    def is_stored(self) -> bool:
        """Whether its rows have ordinals."""
        return self._stored is not None

    def stored_ordinals(self) -> Int64Array:
        """int64[n], of a scan's rows, or some of them."""
        assert self._stored is not None
        return self._stored()

    @property
    def is_in_time(self) -> bool:
        """Whether its rows have moments."""
        return self._moments is not None

    def moments(self) -> Moments:
        """The moments of its rows, which are in the order of time."""
        assert self._moments is not None
        return self._moments()

    def take(self, rows: Int64Array) -> Relation:
        """The rows at these places, in that order, which need not be that of time."""
        columns, stored = self.columns, self._stored
        taken = LazyColumns(len(columns), lambda place: columns[place].take(rows))
        return Relation(taken, len(rows), None if stored is None else lambda: stored()[rows])

    def among(self, rows: Int64Array) -> Relation:
        """The rows at these places, ascending."""
        taken, moments = self.take(rows), self._moments
        if moments is not None:
            taken._moments = lambda: Moments(*(each[rows] for each in moments()))
        return taken

    def slice(self, start: int, stop: int) -> Relation:
        """Rows start to stop, without a copy."""
        columns, stored, moments = self.columns, self._stored, self._moments
        cut = LazyColumns(len(columns), lambda place: columns[place].slice(start, stop))
        return Relation(
            cut,
            stop - start,
            None if stored is None else lambda: stored()[start:stop],
            None if moments is None else lambda: Moments(*(each[start:stop] for each in moments())),
        )

    def with_columns(self, columns: Sequence[Column]) -> Relation:
        """A relation of the same rows with other columns."""
        return Relation(columns, self.n, self._stored, self._moments)

    def evaluate(self, expression: ex.Expression) -> Result:
        """The value of an expression for each row."""
        if isinstance(expression, ex.Column):
            return Result(self.columns[expression.index], None)
        return evaluate(expression, self.columns, self.n)

    def pieces(self, expression: ex.Expression) -> Sequence[Column] | None:
        """The values of an expression as :meth:`engine.model.lazy_columns.LazyColumns.pieces` has them."""
        if isinstance(expression, ex.Column) and isinstance(self.columns, LazyColumns):
            return self.columns.pieces(expression.index)
        return None

    def values_of(self, expressions: Iterable[ex.Expression]) -> tuple[list[Column], int]:
        """Columns of these expressions, NULL where a value is an error, and how many are."""
        columns, errors = [], 0
        for expression in expressions:
            result = self.evaluate(expression)
            errors += count(result.error)
            columns.append(result.column)
        return columns, errors


def count(mask: BoolArray | None) -> int:
    """How many rows of a mask are set."""
    return 0 if mask is None else int(np.count_nonzero(mask))

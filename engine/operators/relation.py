"""Relations at an instant: what the stages of a query pass on to each other.

Rows in an order, with columns. A column is made when somebody asks for it, and kept; so a scan gathers only
what later stages read, and only of the rows that are left by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from engine.language import expressions as ex
from engine.language.evaluate import Result, evaluate
from engine.model.batch import BoolArray, Column, Int64Array
from engine.model.lazy_columns import LazyColumns


class Relation:
    """n rows. columns: each of n rows; stored: makes the ordinals that rows of a scan have in their source,
    int64[n]; None of other rows.
    """

    __slots__ = ("_stored", "columns", "n")

    def __init__(
        self,
        columns: Sequence[Column],
        n: int,
        stored: Callable[[], Int64Array] | None = None,
    ) -> None:
        self.columns = columns
        self.n = n
        self._stored = stored

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

    def take(self, rows: Int64Array) -> Relation:
        """The rows at these places, in that order."""
        columns, stored = self.columns, self._stored
        taken = LazyColumns(len(columns), lambda place: columns[place].take(rows))
        return Relation(taken, len(rows), None if stored is None else lambda: stored()[rows])

    def slice(self, start: int, stop: int) -> Relation:
        """Rows start to stop, without a copy."""
        columns, stored = self.columns, self._stored
        cut = LazyColumns(len(columns), lambda place: columns[place].slice(start, stop))
        return Relation(cut, stop - start, None if stored is None else lambda: stored()[start:stop])

    def with_columns(self, columns: Sequence[Column]) -> Relation:
        """The same rows with other columns."""
        return Relation(columns, self.n, self._stored)

    def evaluate(self, expression: ex.Expression) -> Result:
        """The value of an expression for each row."""
        if isinstance(expression, ex.Column):
            return Result(self.columns[expression.index], None)
        return evaluate(expression, self.columns, self.n)

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

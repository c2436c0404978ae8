"""Relations at an instant: what the stages of a query pass on to each other.

Rows in an order, with columns. A column is made when somebody asks for it, and kept; so a scan gathers only
what later stages read, and only of the rows that are left by then.

Numbers are combined by *ordinals* (:mod:`engine.kernels.folds`): rows of a scan are *numbered* by the stream
and keep that number. Rows of a table, a join, an aggregate or a table function are not; there the values that
a call is over count from 0 in each group, so that what happens in one group is nothing to the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import overload

import numpy as np

from engine.language import expressions as ex
from engine.language.evaluate import Result, evaluate
from engine.model.batch import BoolArray, Column, Int64Array


class LazyColumns(Sequence[Column]):
    """``count`` columns, each made by ``make(place)`` when it is first read."""

    def __init__(self, count: int, make: Callable[[int], Column]) -> None:
        self._made: list[Column | None] = [None] * count
        self._make = make

    def __len__(self) -> int:
        return len(self._made)

    @overload
    def __getitem__(self, place: int) -> Column: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Column]: ...

    def __getitem__(self, place: int | slice) -> Column | Sequence[Column]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        column = self._made[place]
        if column is None:
            column = self._made[place] = self._make(place)
        return column


class Relation:
    """n rows. columns: each of n rows; number: makes their ordinals, int64[n]; None: they have none.

    stored: of a scan's rows where they stand in their source, where that is not what they are numbered by.
    """

    __slots__ = ("_number", "_ordinals", "_stored", "columns", "n")

    def __init__(
        self,
        columns: Sequence[Column],
        n: int,
        number: Callable[[], Int64Array] | None = None,
        stored: Callable[[], Int64Array] | None = None,
    ) -> None:
        self.columns = columns
        self.n = n
        self._number = number
        self._stored = stored
        self._ordinals: Int64Array | None = None

    def __len__(self) -> int:
        return self.n

    def ordinals(self) -> Int64Array:
        """int64[n]; not ascending after a sort. Of rows that are not numbered their places."""
        if self._ordinals is None:
            self._ordinals = np.arange(self.n) if self._number is None else self._number()
        return self._ordinals

    @property
    def numbered(self) -> bool:
        """Whether a stream has numbered the rows."""
        return self._number is not None

    def stored_ordinals(self) -> Int64Array:
        """int64[n], ascending: of the relation that a scan gives, the ordinals of its rows in their
        source.
        """
        return self.ordinals() if self._stored is None else self._stored()

    def take(self, rows: Int64Array) -> Relation:
        """The rows at these places, in that order."""
        columns = self.columns
        taken = LazyColumns(len(columns), lambda place: columns[place].take(rows))
        return Relation(taken, len(rows), (lambda: self.ordinals()[rows]) if self.numbered else None)

    def slice(self, start: int, stop: int) -> Relation:
        """Rows start to stop, without a copy."""
        columns = self.columns
        cut = LazyColumns(len(columns), lambda place: columns[place].slice(start, stop))
        numbers = (lambda: self.ordinals()[start:stop]) if self.numbered else None
        return Relation(cut, stop - start, numbers)

    def with_columns(self, columns: Sequence[Column]) -> Relation:
        """The same rows with other columns."""
        return Relation(columns, self.n, self.ordinals if self.numbered else None)

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

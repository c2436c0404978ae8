"""Columns that are made when somebody asks for them, and kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import overload

from engine.model.batch import Batch, Column


class LazyColumns(Sequence[Column]):
    """``count`` columns, each made by ``make(place)`` when it is first read.

    Places above the count may be read where ``make`` knows them; iteration passes them over.
    """

    def __init__(self, count: int, make: Callable[[int], Column]) -> None:
        self._count = count
        self._make = make
        self._made: dict[int, Column] = {}

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Column]:
        return (self[place] for place in range(self._count))

    @overload
    def __getitem__(self, place: int) -> Column: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Column]: ...

    def __getitem__(self, place: int | slice) -> Column | Sequence[Column]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(self._count))]
        if place < 0:
            place += self._count
        column = self._made.get(place)
        if column is None:
            column = self._made[place] = self._make(place)
        return column


def readable(rows: Batch) -> LazyColumns:
    """The columns of a batch with its sample keys behind them, as predicates read them."""
    return LazyColumns(len(rows.columns), rows.column)

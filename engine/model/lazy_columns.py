"""Columns that are made when somebody asks for them, and kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import overload

from engine.model.batch import Batch, Column


class LazyColumns(Sequence[Column]):
    """``count`` columns, each made by ``make(place)`` when it is first read.

    Places above the count may be read where ``make`` knows them; iteration passes them over.
    """

    def __init__(
        self,
        count: int,
        make: Callable[[int], Column],
        in_pieces: Callable[[int], Sequence[Column] | None] | None = None,
    ) -> None:
        """in_pieces: makes the pieces of a column, as :meth:`pieces` gives them."""
        self._count = count
        self._make = make
        self._in_pieces = in_pieces
        self._pieces: dict[int, Sequence[Column] | None] = {}
        self._made: dict[int, Column] = {}

    def pieces(self, place: int) -> Sequence[Column] | None:
        """A column of strings as several, one behind another, each by the codes of one table, where it takes
        less memory so; None: it does not.
        """
        if self._in_pieces is None or place in self._made:
            return None
        if place not in self._pieces:
            self._pieces[place] = self._in_pieces(place)
        return self._pieces[place]

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

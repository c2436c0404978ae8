"""What the rows of a stream that a query has seen say of those that are to come.

They are read in the order of entry, up to NOW of the query, whatever its predicates accept. Rows that nobody
read, since they had left before, say less, never anything wrong.
"""

from __future__ import annotations

import numpy as np

from engine.dataflow.arrangements.keys import Keys
from engine.dataflow.arrangements.owned_rows import KeyValues
from engine.model.batch import Column, Int32Array, Int64Array

UNSEEN = -1


class OpenKeys:
    """Keys of a stream that is clustered by them, from their first row until they are over: when more than
    ``within_rows`` rows with others came since. One writer.

    Cost: a sort of the rows that are read; O(open keys) a call of :meth:`over`, at most within_rows + the
    rows of a step. keys: has a user more for each that is open.
    """

    def __init__(self, keys: Keys, within_rows: int) -> None:
        self._keys = keys
        self._within_rows = within_rows
        self._open: Int32Array = np.empty(0, np.int32)
        self._first: Int64Array = np.full(keys.capacity, UNSEEN, np.int64)
        """By number: the ordinal of the first row."""
        self._count: Int64Array = np.zeros(keys.capacity, np.int64)

    def __len__(self) -> int:
        return len(self._open)

    def read(self, values: KeyValues, first: int) -> None:
        """The next rows, the first at this ordinal; those without a key are of no key."""
        usable = np.flatnonzero(values.usable)
        if not len(usable):
            return
        columns = [column.take(usable) for column in values.columns]
        numbers = self._keys.number(columns, len(usable))
        self._make_room()
        found, at, counts = np.unique(numbers, return_index=True, return_counts=True)
        new = self._first[found] == UNSEEN
        self._keys.take(found[new])
        self._first[found[new]] = first + usable[at[new]]
        self._count[found] += counts
        self._open = np.concatenate([self._open, found[new]])

    def passed(self, first: int) -> None:
        """Rows below this ordinal cannot be read any more."""
        self._first[self._open], self._count[self._open] = first, 0

    def over(self, end: int) -> Int32Array:
        """The numbers of keys that are over by this ordinal. To be given back to the keys."""
        others = end - self._first[self._open] - self._count[self._open]
        is_over = others > self._within_rows
        numbers = self._open[is_over]
        self._open = self._open[~is_over]
        self._first[numbers], self._count[numbers] = UNSEEN, 0
        return numbers

    def _make_room(self) -> None:
        more = self._keys.capacity - len(self._first)
        if more > 0:
            self._first = np.concatenate([self._first, np.full(more, UNSEEN)])
            self._count = np.concatenate([self._count, np.zeros(more, np.int64)])

    @property
    def nbytes(self) -> int:
        return self._open.nbytes + self._first.nbytes + self._count.nbytes

    def _check(self) -> None:
        assert len(np.unique(self._open)) == len(self._open)
        assert np.flatnonzero(self._first != UNSEEN).tolist() == sorted(self._open.tolist())


_NULL = np.iinfo(np.int64).min


class LowBound:
    """The greatest value of a column of all but the last ``within_rows`` rows: no row to come is below it,
    where the stream is ordered so. One writer. O(rows that are read + within_rows).
    """

    def __init__(self, within_rows: int) -> None:
        self._within_rows = within_rows
        self._last: Int64Array = np.empty(0, np.int64)
        self.value: int | None = None
        """The bound; None: none is known."""

    def read(self, column: Column) -> None:
        """The next rows; NULL bounds nothing."""
        values = np.where(column.there(), column.values.astype(np.int64), _NULL)
        rows = np.concatenate([self._last, values])
        bounding = len(rows) - self._within_rows
        greatest = int(rows[: max(0, bounding)].max(initial=_NULL))
        if greatest > _NULL:
            self.value = greatest if self.value is None else max(self.value, greatest)
        self._last = rows[max(0, bounding) :].copy()

    @property
    def nbytes(self) -> int:
        return self._last.nbytes

"""The rows of each bucket in arrival order: two bytes a row, never a copy of the row.

Ordinals ascend without gaps. Blocks are laid out bucket by bucket once they are full, the last one when it is
asked for. So the rows of a bucket in a range of ordinals are found whatever zones the range lies in: entries
that name a range stay valid when zones are joined.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.kernels import row_buckets as kernels
from engine.kernels.row_buckets import BLOCK, NOWHERE, SHIFT
from engine.model.batch import Int32Array, Int64Array

_NO_ROWS: Int64Array = np.empty(0, np.int64)


class OrdinalLists(NamedTuple):
    """Lists of ordinals, one after another: list q is rows[offsets[q] : offsets[q + 1]], ascending."""

    offsets: Int64Array
    rows: Int64Array


class RowBuckets:
    """Rows by bucket. ``first`` <= ordinal < ``next`` are held; none before the first call of append. Those
    below ``floor`` are gone, whether they were let go of yet or not.
    """

    def __init__(self, buckets: int) -> None:
        """buckets: below 65,535."""
        self._buckets = buckets
        self._order = np.empty((1, BLOCK), np.uint16)
        self._starts = np.zeros((1, buckets + 1), np.int32)
        self._open = np.full(BLOCK, NOWHERE, np.uint16)
        self._is_laid_out = False
        self.first = 0
        self.next = 0
        self.floor = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self._order.nbytes + self._starts.nbytes + self._open.nbytes

    def begin(self, first: int) -> None:
        """The next row has this ordinal; those before are gone."""
        if self.first != self.next:
            raise ValueError("rows are held")
        self.first = self.next = first
        self._open[:] = NOWHERE
        self._is_laid_out = False

    def append(self, bucket: npt.NDArray[np.integer]) -> None:
        """Take in the rows that follow, by their buckets, [n]. O(n)."""
        at, n = 0, len(bucket)
        while at < n:
            place = self.next & (BLOCK - 1)
            count = min(n - at, BLOCK - place)
            self._open[place : place + count] = bucket[at : at + count]
            self._is_laid_out = False
            at, self.next = at + count, self.next + count
            if place + count == BLOCK:
                self._lay_out((self.next - 1) >> SHIFT)
                self._open[:] = NOWHERE

    def drop_below(self, ordinal: int) -> None:
        """Rows before the ordinal are gone; their blocks are used again."""
        self.first = max(self.first, min(ordinal, self.next))

    def lists(self, bucket: Int32Array, first: Int64Array, end: Int64Array) -> OrdinalLists:
        """List q: the rows of bucket[q] that are held in first[q] <= ordinal < end[q]. O(blocks + rows)."""
        offsets, first, end = self._offsets(bucket, first, end)
        rows = np.empty(offsets[-1], np.int64)
        if len(rows):
            kernels.rows_in(self._order, self._starts, bucket, first, end, offsets, rows)
        return OrdinalLists(offsets, rows)

    def counts(self, first: int, end: int) -> Int64Array:
        """int64[buckets]: how many rows of each bucket are held in first <= ordinal < end."""
        every = np.arange(self._buckets, dtype=np.int32)
        ends = np.full(self._buckets, end, np.int64)
        return np.diff(self._offsets(every, np.full(self._buckets, first, np.int64), ends)[0])

    def buckets_of(self, first: int, end: int) -> Int32Array:
        """int32[end - first]: the bucket of each row of a range; of rows that are not held the last."""
        place = first & (BLOCK - 1)
        if first >= max(self.first, self.next - (self.next & (BLOCK - 1))) and end <= self.next:
            return self._open[place : place + end - first].astype(np.int32)  # of the open block
        every = np.arange(self._buckets, dtype=np.int32)
        ranges = (np.full(self._buckets, number, np.int64) for number in (first, end))
        offsets, rows = self.lists(every, *ranges)
        found = np.full(end - first, self._buckets - 1, np.int32)
        found[rows - first] = np.repeat(every, np.diff(offsets))
        return found

    def _offsets(
        self, bucket: Int32Array, first: Int64Array, end: Int64Array
    ) -> tuple[Int64Array, Int64Array, Int64Array]:
        """(where lists begin, and the last ends; first and end within what is held). O(blocks)."""
        if not self._is_laid_out and self.next & (BLOCK - 1) and self.next > self.first:
            self._lay_out(self.next >> SHIFT)
            self._is_laid_out = True
        first, end = np.maximum(first, self.first), np.minimum(end, self.next)
        offsets = np.zeros(len(bucket) + 1, np.int64)
        kernels.rows_in(self._order, self._starts, bucket, first, end, offsets, _NO_ROWS)
        return offsets, first, end

    def _lay_out(self, block: int) -> None:
        blocks = block - (self.first >> SHIFT) + 1
        if blocks > len(self._order):
            self._grow(blocks, block)
        slot = block & (len(self._order) - 1)
        kernels.sort_block(self._open, self._order[slot], self._starts[slot])

    def _grow(self, blocks: int, last: int) -> None:
        """Room for so many blocks up to the last, which is not there yet."""
        before = len(self._order)
        order = np.empty((1 << (blocks - 1).bit_length(), BLOCK), np.uint16)
        starts = np.zeros((len(order), self._buckets + 1), np.int32)
        for block in range(self.first >> SHIFT, last):
            order[block & (len(order) - 1)] = self._order[block & (before - 1)]
            starts[block & (len(order) - 1)] = self._starts[block & (before - 1)]
        self._order, self._starts = order, starts

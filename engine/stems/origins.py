"""Where the rows of a segment come from: the partition and the offset of each, as small as they can be kept.

Rows of one partition whose offsets count up by one are a run: a stream of one partition whose log has no gaps
keeps next to nothing. Where runs are short, the two arrays stay as they are, 12 bytes a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from engine.model.batch import Int32Array, Int64Array
from engine.model.spill import Array

RUN_ROWS_MIN = 4
"""Runs are kept where they are this long on average: they take 16 bytes each."""


@dataclass(frozen=True, slots=True)
class Origins:
    """partition, offset: of each row; or of each run, and then ``starts`` tells where runs begin, ascending
    from 0.
    """

    partition: Int32Array
    offset: Int64Array
    starts: Int32Array | None = None

    def of(self, first: int, last: int) -> tuple[Int32Array, Int64Array]:
        """(partition, offset) of rows first <= r < last. O(rows) where runs are kept."""
        if self.starts is None:
            return self.partition[first:last], self.offset[first:last]
        rows = np.arange(first, last)
        run = self.starts.searchsorted(rows, "right") - 1 if len(self.starts) > 1 else np.zeros_like(rows)
        return self.partition[run], self.offset[run] + (rows - self.starts[run])

    def behind(self, first: int) -> Origins:
        """The origins of the rows from ``first`` on."""
        if self.starts is None:
            return Origins(self.partition[first:], self.offset[first:])
        run = int(self.starts.searchsorted(first, "right")) - 1
        starts, offset = self.starts[run:] - np.int32(first), self.offset[run:].copy()
        offset[0] -= starts[0]
        starts[0] = 0
        return Origins(self.partition[run:], offset, starts)

    def packed(self, n: int) -> Origins:
        """The origins of the first n rows, as runs where that is smaller. These have no runs yet."""
        partition, offset = self.partition[:n], self.offset[:n]
        follows = (partition[1:] == partition[:-1]) & (offset[1:] == offset[:-1] + 1)
        starts = np.flatnonzero(np.concatenate([[True], ~follows])[:n]).astype(np.int32)
        if len(starts) * RUN_ROWS_MIN > n:
            return Origins(partition, offset)
        return Origins(partition[starts], offset[starts], starts)

    def arrays(self) -> list[Array]:
        """All that is held."""
        arrays: list[Array] = [self.partition, self.offset]
        return arrays if self.starts is None else [*arrays, self.starts]

    def with_arrays(self, given: Iterator[Array]) -> Origins:
        """Equal origins that hold the next of other arrays, which are as :meth:`arrays` has them."""
        return Origins(next(given), next(given), None if self.starts is None else next(given))

    @property
    def nbytes(self) -> int:
        starts = 0 if self.starts is None else self.starts.nbytes
        return self.partition.nbytes + self.offset.nbytes + starts

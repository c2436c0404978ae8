"""The kept matches of 64 query slots over one sealed segment, dense or as row lists.

Dense: ``uint64[rows]``, bit b of row r tells whether slot b's query accepts it: 8 bytes a row.
Row lists: for each slot the ascending rows that match: 2 bytes a match.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.kernels import bitmaps
from engine.model.batch import Int64Array

SAMPLE_STRIDE = 64
LIST_GAIN = 2
"""Row lists must be this many times smaller than the dense form to be worth the pass that makes them."""


@dataclass(frozen=True, slots=True)
class DenseWord:
    """Bits as they were computed."""

    column: bitmaps.Words

    def rows(self, bit: int, first: int, last: int) -> Int64Array:
        """Places first <= r < last that match, ascending. O(last - first)."""
        out = np.empty(last - first, np.int64)
        return out[: bitmaps.rows_with_bit(self.column, bit, first, last, out)]

    def count(self, bit: int, first: int, last: int) -> int:
        """How many of them. O(last - first)."""
        return int(bitmaps.count_bit(self.column, bit, first, last))

    def dense(self, n: int) -> bitmaps.Words:
        return self.column[:n].copy()

    @property
    def nbytes(self) -> int:
        return self.column.nbytes


@dataclass(frozen=True, slots=True)
class RowLists:
    """Matches as row numbers. starts: int64[65]; places: uint16[matches]."""

    starts: Int64Array
    places: npt.NDArray[np.uint16]

    def rows(self, bit: int, first: int, last: int) -> Int64Array:
        """O(matches of the slot)."""
        low, high = self._range(bit, first, last)
        return self.places[low:high].astype(np.int64)

    def count(self, bit: int, first: int, last: int) -> int:
        """O(log matches)."""
        low, high = self._range(bit, first, last)
        return high - low

    def _range(self, bit: int, first: int, last: int) -> tuple[int, int]:
        low, high = int(self.starts[bit]), int(self.starts[bit + 1])
        places = self.places[low:high]
        if first > 0:
            start = low + int(places.searchsorted(np.uint16(first)))
        else:
            start = low
        if last < 65_536:
            high = low + int(places.searchsorted(np.uint16(last)))
        return start, high

    def dense(self, n: int) -> bitmaps.Words:
        out = np.empty(n, np.uint64)
        bitmaps.from_row_lists(self.starts, self.places, out)
        return out

    @property
    def nbytes(self) -> int:
        return self.starts.nbytes + self.places.nbytes


WordColumn = DenseWord | RowLists


def pack(column: bitmaps.Words, n: int) -> WordColumn:
    """Keep a column of n <= 65,536 rows as row lists where they are much smaller, else dense, uncopied.

    Whether row lists pay is estimated from every 64th row first.
    """
    if LIST_GAIN * 2 * bitmaps.popcount_sample(column, n, SAMPLE_STRIDE) > 8 * n:
        return DenseWord(column[:n])
    counts = np.empty(64, np.int64)
    bitmaps.count_per_bit(column, n, counts)
    matches = int(counts.sum())
    if LIST_GAIN * 2 * matches > 8 * n:
        return DenseWord(column[:n])
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    places = np.empty(matches, np.uint16)
    bitmaps.to_row_lists(column, n, starts, places)
    return RowLists(starts, places)

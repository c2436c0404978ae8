"""The kept matches of 64 query slots over one sealed segment as row lists: the rows of each, ascending.

2 bytes a match. As bits they would be 8 bytes a row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.kernels import bitmaps
from engine.model.batch import Int64Array

LIST_GAIN = 2
"""Row lists must be this many times smaller than the dense form to be worth the pass that makes them."""


@dataclass(frozen=True, slots=True)
class RowLists:
    """Matches as row numbers. starts: int64[65]; places: uint16[matches], on disk where ``is_spilled``."""

    starts: Int64Array
    places: npt.NDArray[np.uint16]
    is_spilled: bool = False

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

    def bits(self, first: int, last: int) -> bitmaps.Words:
        """uint64[last - first]: as bits."""
        out = np.empty(last - first, np.uint64)
        bitmaps.from_row_lists(self.starts, self.places, first, out)
        return out

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self.starts.nbytes + (0 if self.is_spilled else self.places.nbytes)

    @classmethod
    def empty(cls) -> RowLists:
        """Nothing matches."""
        return cls(np.zeros(65, np.int64), np.zeros(0, np.uint16))

    def with_lists(self, other: RowLists, mask: int) -> RowLists:
        """The lists of the mask's bits are the other's."""
        sources = [other if mask >> bit & 1 else self for bit in range(64)]
        lists = [
            source.places[source.starts[bit] : source.starts[bit + 1]] for bit, source in enumerate(sources)
        ]
        starts = np.zeros(65, np.int64)
        np.cumsum([len(places) for places in lists], out=starts[1:])
        return RowLists(starts, np.concatenate(lists))

    def without(self, bit: int, rows: Int64Array) -> RowLists:
        """These rows, ascending, match in a bit no more. O(matches)."""
        low, high = int(self.starts[bit]), int(self.starts[bit + 1])
        kept = self.places[low:high]
        kept = kept[~np.isin(kept, rows.astype(np.uint16), assume_unique=True)]
        starts = self.starts.copy()
        starts[bit + 1 :] -= high - low - len(kept)
        return RowLists(starts, np.concatenate([self.places[:low], kept, self.places[high:]]))

    def _check(self, n: int) -> None:
        assert len(self.starts) == 65
        assert self.starts[64] == len(self.places)
        for first, last in zip(self.starts[:-1], self.starts[1:], strict=True):
            places = self.places[first:last].astype(np.int64)
            assert (np.diff(places) > 0).all()
            assert not len(places) or places[-1] < n


def is_sparse(matches: int, words: int) -> bool:
    """Whether row lists are small enough, beside so many words of bits."""
    return LIST_GAIN * 2 * matches <= 8 * words


def lists_of_bits(column: bitmaps.Words, mask: int, n: int) -> RowLists | None:
    """The masked bits of uint64[>= n], n <= 65,536, as row lists; None where those are not small enough."""
    counts = np.empty(64, np.int64)
    bitmaps.count_per_bit(column, np.uint64(mask), n, counts)
    matches = int(counts.sum())
    if not is_sparse(matches, n):
        return None
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    places = np.empty(matches, np.uint16)
    bitmaps.to_row_lists(column, np.uint64(mask), n, starts, places)
    return RowLists(starts, places)

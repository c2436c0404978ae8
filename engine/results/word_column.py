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

SAMPLED_RUNS = 16
LIST_GAIN = 2
"""Row lists must be this many times smaller than the dense form to be worth the pass that makes them."""

EVERY_BIT = 2**64 - 1


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

    def _check(self, n: int) -> None:
        assert len(self.starts) == 65
        assert self.starts[64] == len(self.places)
        for first, last in zip(self.starts[:-1], self.starts[1:], strict=True):
            places = self.places[first:last].astype(np.int64)
            assert (np.diff(places) > 0).all()
            assert not len(places) or places[-1] < n


WordColumn = DenseWord | RowLists


def _is_sparse(matches: int, n: int) -> bool:
    return LIST_GAIN * 2 * matches <= 8 * n


def pack(columns: bitmaps.Words, words: int, n: int) -> list[WordColumn]:
    """Keep columns[w, :n], n <= 65,536, as row lists where those are much smaller, else dense, uncopied.

    Whether row lists pay is estimated from some rows first.
    """
    estimates = np.empty(words, np.int64)
    bitmaps.sample_bits(columns, words, n, SAMPLED_RUNS, estimates)
    packed: list[WordColumn] = []
    for word, estimate in enumerate(estimates.tolist()):
        column = columns[word, :n]
        lists = _lists(column, EVERY_BIT, n) if _is_sparse(estimate, n) else None
        packed.append(DenseWord(column) if lists is None else lists)
    return packed


def _lists(column: bitmaps.Words, mask: int, n: int) -> RowLists | None:
    """The masked bits as row lists; None where those are not small enough."""
    counts = np.empty(64, np.int64)
    bitmaps.count_per_bit(column, np.uint64(mask), n, counts)
    matches = int(counts.sum())
    if not _is_sparse(matches, n):
        return None
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    places = np.empty(matches, np.uint16)
    bitmaps.to_row_lists(column, np.uint64(mask), n, starts, places)
    return RowLists(starts, places)


def merge(word: WordColumn, bits: bitmaps.Words, mask: int, n: int) -> WordColumn:
    """A word column that takes the masked bits of ``bits``, uint64[n], and keeps its others.

    A dense one is written in place.
    """
    if isinstance(word, RowLists):
        lists = _lists(bits, mask, n)
        if lists is not None:
            united = word.with_lists(lists, mask)
            if _is_sparse(len(united.places), n):
                return united
        word = DenseWord(word.dense(n))
    bitmaps.merge_bits(word.column, bits, np.uint64(mask), n)
    return word

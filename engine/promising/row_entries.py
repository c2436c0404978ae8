"""Entries of a set over one stream: rows of cells that are to be visited, and who looks for them.

An entry is a range of ordinals of one value bucket, so a collapse of zones leaves it valid. Entries of a
bucket never overlap: a row is in one at most, and so is visited once for all that look for it then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt

from engine.model.batch import Int32Array, Int64Array

Float64Array = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]
Standings = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class RowEntries:
    """Columns of n entries; not written to."""

    bucket: Int32Array
    # int64: where the range of ordinals began; those below the cursor were visited, or left the windows.
    first: Int64Array
    cursor: Int64Array
    # int64: the ordinal after the last of the range.
    end: Int64Array
    # int64: rows of the bucket in the range, without those that left the windows unvisited.
    rows: Int64Array
    # int64: how many of these were visited.
    done: Int64Array
    # int64, ms: NOW when its last rows were put in.
    queued_ms: Int64Array
    # float64: before fading, as the rank says.
    priority: Float64Array
    # int8: FRESH, or a rank of :mod:`engine.promising.picking`.
    standing: Standings
    # uint64[n, words]: the members that look for its rows.
    wanted: Words

    def __len__(self) -> int:
        return len(self.bucket)

    @property
    def left(self) -> Int64Array:
        """int64[n]: rows that are to be visited."""
        return self.rows - self.done

    @property
    def nbytes(self) -> int:
        """Bytes of all columns."""
        return sum(getattr(self, each.name).nbytes for each in fields(self))

    @classmethod
    def none(cls, words: int) -> RowEntries:
        """No entries; so many words of members."""
        nothing = np.empty(0, np.int64)
        return cls(
            np.empty(0, np.int32),
            nothing,
            nothing,
            nothing,
            nothing,
            nothing,
            nothing,
            np.empty(0, np.float64),
            np.empty(0, np.int8),
            np.empty((0, words), np.uint64),
        )

    @classmethod
    def made(
        cls,
        bucket: Int32Array,
        first: Int64Array,
        end: Int64Array,
        rows: Int64Array,
        queued_ms: int,
        wanted: Words,
    ) -> RowEntries:
        """New ones, whose priorities are not known."""
        n = len(bucket)
        return cls(
            bucket,
            first,
            first,
            end,
            rows,
            np.zeros(n, np.int64),
            np.full(n, queued_ms, np.int64),
            np.zeros(n),
            np.full(n, FRESH, np.int8),
            wanted,
        )

    def take(self, which: npt.NDArray[np.bool_ | np.int64]) -> RowEntries:
        """Some of them."""
        return RowEntries(*(getattr(self, each.name)[which] for each in fields(self)))

    def widened(self, words: int) -> RowEntries:
        """With room for the bits of more members."""
        more = words - self.wanted.shape[1]
        if more <= 0:
            return self
        return replace(self, wanted=np.pad(self.wanted, ((0, 0), (0, more))))

    @staticmethod
    def together(parts: Sequence[RowEntries]) -> RowEntries:
        """The entries of all parts, one part after another."""
        if len(parts) == 1:
            return parts[0]
        columns = zip(*([getattr(part, each.name) for each in fields(part)] for part in parts), strict=True)
        return RowEntries(*map(np.concatenate, columns))

    def _check(self) -> None:
        assert (self.first <= self.cursor).all()
        assert (self.cursor < self.end).all()
        assert (self.done >= 0).all()
        assert (self.done < self.rows).all()
        assert self.wanted.any(axis=1).all()
        order = np.lexsort((self.cursor, self.bucket))
        same = np.diff(self.bucket[order]) == 0
        assert (self.end[order][:-1] <= self.cursor[order][1:])[same].all()


FRESH = -1
"""The standing of an entry that is new. Below it are those of entries that have new rows or members since
they were ranked: all these are to be ranked.
"""


def stale(standing: Standings) -> Standings:
    """The standings of these entries once all of them are to be ranked again, or for the first time."""
    return np.where(standing > FRESH, -2 - standing, standing).astype(np.int8)


def before(standing: Standings) -> Standings:
    """The ranks that stale standings had; -1 where there was none."""
    return -2 - standing


def gaps(
    first: int, end: int, taken_first: Int64Array, taken_end: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """The parts of first .. end that no taken range holds: where they begin and end, ascending.

    taken: ascending, not overlapping.
    """
    inside = (taken_end > first) & (taken_first < end)
    begins = np.concatenate([[first], taken_end[inside]])
    ends = np.concatenate([taken_first[inside], [end]])
    held = begins < ends
    return begins[held].astype(np.int64), ends[held].astype(np.int64)

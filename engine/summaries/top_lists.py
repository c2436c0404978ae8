"""The values with the largest estimates of each cell of a zone.

A zone that grows takes its rows in pieces of CHUNK. The distinct values of a piece, and those that are
listed, compete by what the counters say at its end; where a list was full, only values that the piece has
several times. So the lists depend on the rows of the zone alone, and on which of them were there when
lists were first asked for: these compete by the counters of that time. A value that fell out may come back in
a later piece. Zones that are joined have of both lists the best by the counters of both.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.kernels import top_values
from engine.kernels.top_values import TOP, Top, TopRoom, Values
from engine.model.batch import Int32Array, Int64Array
from engine.summaries.summary_type import HashArray, Places, ZoneCells

CHUNK = 8_192


class TopValues(NamedTuple):
    """The listed values of one cell, the largest estimate first. hash: uint64[n]; estimate: int32[n]; row:
    int64[n], the ordinal of the last row that has the value and was looked at; retention may have let it go.
    """

    hash: HashArray
    estimate: Int32Array
    row: Int64Array


def empty_top(buckets: int, depth: int) -> Top:
    """Lists without values. depth: t."""
    return Top(
        np.zeros((buckets, TOP), np.uint64),
        np.zeros((buckets, TOP), np.int64),
        np.zeros((buckets, TOP), np.int32),
        np.ones((buckets, TOP), np.int32),
        np.zeros((buckets, TOP, depth), np.int32),
    )


def copied(top: Top) -> Top:
    """Another one of the same values."""
    return Top(top.hash.copy(), top.row.copy(), top.estimate.copy(), top.share.copy(), top.places.copy())


def listed(top: Top, bucket: int) -> TopValues:
    """One list."""
    count = int(np.count_nonzero(top.estimate[bucket]))
    return TopValues(
        top.hash[bucket, :count].copy(), top.estimate[bucket, :count].copy(), top.row[bucket, :count].copy()
    )


def join(cells: ZoneCells, into: Top, other: Top) -> None:
    """The lists of two zones become those of both, by the cells of both together. O(buckets TOP t)."""
    bucket, place = np.nonzero(other.estimate)
    at = (bucket, place)
    values = Values(other.hash[at], bucket.astype(np.int32), other.places[at], other.share[at])
    of_zone, scratch = (cells.counters[0], cells.rows[0]), _scratch(into)
    top_values.refresh(*of_zone, into, scratch)
    top_values.offer_listed(*of_zone, values, other.row[at], into, scratch)


class UnlistedRows:
    """The rows of a growing zone that its lists don't know of yet: less than CHUNK."""

    def __init__(self, depth: int) -> None:
        """depth: t."""
        self.hash: HashArray = np.zeros(CHUNK, np.uint64)
        self.places = Places(
            np.zeros((CHUNK, depth), np.int32), np.zeros(CHUNK, np.int32), np.zeros(CHUNK, np.int32)
        )
        self._table = np.zeros((2 * CHUNK, 2), np.uint64)
        self._chosen = np.empty(CHUNK, np.int64)
        self._times = np.empty(CHUNK, np.int32)
        # Rows that are held, and the ordinal of the first.
        self.count = 0
        self.first = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        arrays = (self.hash, *self.places, self._table, self._chosen, self._times)
        return sum(array.nbytes for array in arrays)

    @property
    def room(self) -> int:
        """Rows until a piece is whole."""
        return CHUNK - self.count

    def take(
        self, hash_: HashArray, places: Places, rows: slice, first: int, cells: ZoneCells, top: Top
    ) -> None:
        """Rows of a batch that the cells have taken in, no more than there is room for. O(rows).

        first: the ordinal of the batch's first row.
        """
        if rows.stop - rows.start == CHUNK:  # a whole piece need not be held
            of_piece = Places(*(array[rows] for array in places))
            self._compete(hash_[rows], of_piece, first + rows.start, CHUNK, cells, top)
            return
        if not self.count:
            self.first = first + rows.start
        into = slice(self.count, self.count + rows.stop - rows.start)
        self.hash[into] = hash_[rows]
        for mine, its in zip(self.places, places, strict=True):
            mine[into] = its[rows]
        self.count = into.stop
        if self.count == CHUNK:
            self.end(cells, top)

    def hold(self, hash_: HashArray, places: Places, first: int) -> None:
        """Hold these rows, and no others; they are copied."""
        self.count, self.first = len(hash_), first
        self.hash[: self.count] = hash_
        for mine, its in zip(self.places, places, strict=True):
            mine[: self.count] = its

    def end(self, cells: ZoneCells, top: Top) -> None:
        """What is held is a piece."""
        self.show(cells, top)
        self.count = 0

    def show(self, cells: ZoneCells, top: Top) -> None:
        """What is held competes, and is held on."""
        self._compete(self.hash, self.places, self.first, self.count, cells, top)

    def _compete(
        self, hash_: HashArray, places: Places, first: int, count: int, cells: ZoneCells, top: Top
    ) -> None:
        values = Values(hash_, places.bucket, places.counters, places.share)
        of_zone, scratch = (cells.counters[0], cells.rows[0]), _scratch(top)
        chosen, times = self._chosen, self._times
        distinct = top_values.latest(values, count, first, top, self._table, chosen, times)
        top_values.refresh(*of_zone, top, scratch)
        full = top.estimate[:, -1] > 0
        top_values.offer(*of_zone, values, chosen, times, distinct, first, full, top, scratch)


def _scratch(top: Top) -> TopRoom:
    depth = top.places.shape[2]
    return TopRoom(np.empty(depth, np.int64), np.empty(depth, np.int32))

"""Stored rows of one input as promising entries visit them: chains of the rows of each value bucket.

Beside each row from ``first`` on stand the number of its join key, whether it may have a partner at all, its
bucket, and the row before it in that bucket. Of some ordinals, the bounds of zones, the newest row below of
each bucket is known, and how many there were: so the rows of a cell are counted without being looked at, and
a visit starts at the newest row of a cell in no time.

Memory: 17 bytes a row that is in some window, and 16 for each cell. Cost: O(1) a row.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from engine.kernels import promising
from engine.model.batch import BoolArray, Int32Array, Int64Array
from engine.model.capacities import USUAL, Capacities

ROWS_MIN = 8_192


class BucketBound(NamedTuple):
    """What stands below an ordinal. newest: int64[buckets], the last row of each bucket, -1: none that is
    known. counts: int64[buckets], how many there were since the chains began.
    """

    newest: Int64Array
    counts: Int64Array


class RowChains:
    """The chains of one input's rows. ``buckets``: how many there are, the bucket of values without a cell
    among them.
    """

    def __init__(self, buckets: int, start: int, capacities: Capacities = USUAL) -> None:
        self._rows_min = capacities.first(ROWS_MIN)
        """start: the first ordinal that will come."""
        self._buckets = buckets
        self.first = self.end = self.floor = start
        self._keys = np.empty(0, np.int64)
        self._wanted = np.empty(0, np.bool_)
        self._bucket = np.empty(0, np.int32)
        self._back = np.empty(0, np.int32)
        self._now = BucketBound(np.full(buckets, promising.ENDED, np.int64), np.zeros(buckets, np.int64))
        self._floor_counts = np.zeros(buckets, np.int64)
        self._bounds: dict[int, BucketBound] = {}

    def __len__(self) -> int:
        """Rows that windows hold."""
        return self.end - self.floor

    def append(self, keys: Int64Array, wanted: BoolArray, buckets: Int32Array, cuts: Iterable[int]) -> None:
        """Rows come. keys, wanted, buckets: of each. cuts: ordinals whose bounds will be asked for; of those
        outside the new rows nothing is done.
        """
        n, start, stop = len(keys), self.end, self.end + len(keys)
        self._make_room(n)
        new = slice(start - self.first, stop - self.first)
        self._keys[new], self._wanted[new], self._bucket[new] = keys, wanted, buckets
        inside = sorted({start, stop, *(cut for cut in cuts if start < cut < stop)})
        self._note(start)
        for one, other in pairwise(inside):
            self._chain(one, other, *self._now)
            self._note(other)
        self.end = stop

    def _chain(self, start: int, stop: int, newest: Int64Array, counts: Int64Array) -> None:
        first = self.first
        promising.chain(self._bucket, start - first, stop - first, first, newest, counts, self._back)

    def _note(self, ordinal: int) -> None:
        self._bounds[ordinal] = BucketBound(self._now.newest.copy(), self._now.counts.copy())

    def _make_room(self, n: int) -> None:
        if self.end + n - self.first <= len(self._keys):
            return
        start = min(self.floor, self.end)
        alive = slice(start - self.first, self.end - self.first)
        room = max(self._rows_min, 2 * (self.end - start + n))
        for name in ("_keys", "_wanted", "_bucket", "_back"):
            before = getattr(self, name)
            array = np.empty(room, before.dtype)
            array[: self.end - start] = before[alive]
            setattr(self, name, array)
        self.first = start

    def drop_below(self, ordinal: int) -> None:
        """Rows below this ordinal are in no window any more. O(rows that go)."""
        stop = min(ordinal, self.end)
        if stop > self.floor:
            gone = self._bucket[self.floor - self.first : stop - self.first]
            self._floor_counts += np.bincount(gone, minlength=self._buckets)
            self.floor = stop

    def keep_bounds(self, ordinals: Iterable[int]) -> None:
        """Bounds of other ordinals will not be asked for."""
        kept = {*ordinals, self.end}
        self._bounds = {at: bound for at, bound in self._bounds.items() if at in kept}

    def bounds(self, ordinals: Iterable[int]) -> list[BucketBound]:
        """What stands below these ordinals; of a bound that was not noted the rows are counted anew."""
        wanted = list(ordinals)
        lacking = sorted({at for at in wanted if at not in self._bounds})
        if lacking:
            newest, counts = np.full(self._buckets, promising.ENDED, np.int64), self._floor_counts.copy()
            at = self.floor
            for ordinal in lacking:
                stop = min(max(ordinal, at), self.end)
                self._chain(at, stop, newest, counts)
                self._bounds[ordinal] = BucketBound(newest.copy(), counts.copy())
                at = stop
        return [self._bounds[at] for at in wanted]

    @property
    def floor_counts(self) -> Int64Array:
        """int64[buckets]: rows of each bucket below the floor."""
        return self._floor_counts

    def rows(self) -> promising.ChainedRows:
        """From ``first`` on."""
        return promising.ChainedRows(self.first, self._keys, self._wanted, self._back)

    def wanted(self, start: int, stop: int) -> Int64Array:
        """int64, ascending: the rows of this range that may have a partner."""
        start = max(start, self.first)
        return start + np.flatnonzero(self._wanted[start - self.first : stop - self.first])

    def wanted_flags(self, start: int) -> BoolArray:
        """bool: of the rows from ``start`` to the end."""
        return self._wanted[start - self.first : self.end - self.first]

    def keys_of(self, ordinals: Int64Array) -> Int64Array:
        """int64[n]: the numbers of their keys."""
        keys: Int64Array = self._keys[ordinals - self.first]
        return keys

    def used_codes(self) -> Int64Array:
        """The numbers of keys that rows in windows have, distinct and ascending."""
        alive = slice(self.floor - self.first, self.end - self.first)
        return np.unique(self._keys[alive][self._wanted[alive]])

    def recode(self, used: Int64Array, renewed: Int64Array) -> None:
        """The key with number used[i] has number renewed[i] from now on."""
        alive = slice(self.floor - self.first, self.end - self.first)
        keys = self._keys.copy()
        wanted = self._wanted[alive]
        keys[alive][wanted] = renewed[np.searchsorted(used, keys[alive][wanted])]
        self._keys = keys

    @property
    def nbytes(self) -> int:
        rows = self._keys.nbytes + self._wanted.nbytes + self._bucket.nbytes + self._back.nbytes
        return rows + 16 * self._buckets * len(self._bounds)

    def _check(self) -> None:
        assert self.first <= self.floor <= self.end
        newest: dict[int, int] = {}
        for ordinal in range(self.floor, self.end):
            bucket, back = int(self._bucket[ordinal - self.first]), int(self._back[ordinal - self.first])
            before = newest.get(bucket)
            if before is None:
                assert back == 0 or ordinal - back < self.floor
            else:
                assert ordinal - back == before
            newest[bucket] = ordinal
        for bucket, ordinal in newest.items():
            assert self._now.newest[bucket] == ordinal
        alive = np.bincount(
            self._bucket[self.floor - self.first : self.end - self.first], minlength=self._buckets
        )
        assert (self._floor_counts + alive == self._now.counts).all()

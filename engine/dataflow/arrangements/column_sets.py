"""Sets of columns under numbers: rows that the same columns accept have one set, which stands once.

Cost: a look-up a row that is not of all the same columns, O(members) a set that is new.
"""

from __future__ import annotations

import numpy as np

from engine.dataflow.columns import Over
from engine.dataflow.delta import Delta
from engine.kernels.window_pairs import WordRuns
from engine.model.batch import BoolArray, Int32Array, Int64Array

NO_RUNS = WordRuns(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.uint64))


class ColumnSets:
    """One writer. Set 0 is empty."""

    def __init__(self) -> None:
        self._members: list[Int32Array] = [np.empty(0, np.int32)]
        self._numbers: dict[bytes, int] = {b"": 0}
        self._runs = NO_RUNS

    def __len__(self) -> int:
        return len(self._members)

    def of(self, delta: Delta) -> Int32Array:
        """int32[n]: the sets of the columns of the rows of a delta."""
        n, starts, owners = len(delta.temporal), delta.starts, delta.owners
        if n and len(owners) == n and bool((np.diff(starts) == 1).all()):
            columns, which = np.unique(owners, return_inverse=True)
            return np.array([self._number(columns[i : i + 1]) for i in range(len(columns))], np.int32)[which]
        follows = owners[1:] > owners[:-1]
        follows[starts[1:-1][(starts[1:-1] > 0) & (starts[1:-1] < len(owners))] - 1] = True
        if not follows.all():
            owners = owners[np.lexsort((owners, delta.rows()))]
        whole, found = np.ascontiguousarray(owners, np.int32), np.empty(n, np.int32)
        held, borders = whole.tobytes(), (4 * starts).tolist()
        for row in range(n):
            key = held[borders[row] : borders[row + 1]]
            number = self._numbers.get(key)
            found[row] = self._put(key) if number is None else number
        return found

    def union(self, one: Int32Array, other: Int32Array) -> Int32Array:
        """int32[n]: the sets with the columns of both, row by row."""
        pairs, which = np.unique(one.astype(np.int64) << 32 | other, return_inverse=True)
        found = [
            self._number(np.union1d(self._members[pair >> 32], self._members[pair & 0xFFFFFFFF]))
            for pair in pairs.tolist()
        ]
        return np.array(found, np.int32)[which]

    def without(self, columns: Int32Array) -> Int32Array:
        """These columns are in no set any more. Returns int32: by number of a set that of what is left."""
        kept = [members[~np.isin(members, columns)] for members in self._members]
        return self._renumbered(kept)

    def only(self, used: Int32Array) -> Int32Array:
        """Sets that are not among these go. Returns int32: as :meth:`without`."""
        there: BoolArray = np.zeros(len(self), np.bool_)
        there[used] = True
        kept = [self._members[place] if there[place] else self._members[0] for place in range(len(self))]
        return self._renumbered(kept)

    def _renumbered(self, members: list[Int32Array]) -> Int32Array:
        self._members, self._numbers = [np.empty(0, np.int32)], {b"": 0}
        self.spread_anew()
        return np.array([self._number(each) for each in members], np.int32)

    def runs(self, over: Over) -> WordRuns:
        """The columns that are over those of each set; to be made anew where ``over`` is another one."""
        known = len(self._runs.starts) - 1
        if known < len(self):
            more = _runs(self._members[known:], over)
            self._runs = WordRuns(
                np.concatenate([self._runs.starts, self._runs.starts[-1] + more.starts[1:]]),
                np.concatenate([self._runs.words, more.words]),
                np.concatenate([self._runs.bits, more.bits]),
            )
        return self._runs

    def spread_anew(self) -> None:
        """Other columns are over those of sets."""
        self._runs = NO_RUNS

    def _number(self, members: Int32Array) -> int:
        key = members.astype(np.int32).tobytes()
        number = self._numbers.get(key)
        return self._put(key) if number is None else number

    def _put(self, key: bytes) -> int:
        self._numbers[key] = len(self._members)
        self._members.append(np.frombuffer(key, np.int32))
        return len(self._members) - 1

    @property
    def nbytes(self) -> int:
        """A number of 100 bytes and its name beside the members of a set."""
        members = sum(each.nbytes for each in self._members)
        return 2 * members + 100 * len(self) + sum(array.nbytes for array in self._runs)

    def _check(self) -> None:
        assert len(self._numbers) == len(self._members)
        for members in self._members:
            assert bool((members[1:] > members[:-1]).all())


def runs_of(sets: Int64Array, columns: Int32Array, count: int) -> WordRuns:
    """Sets as runs. sets, columns: of each member, in any order, none twice. count: how many sets."""
    order = np.lexsort((columns, sets))
    sets, columns = sets[order], columns[order]
    bits = np.uint64(1) << (columns & 63).astype(np.uint64)
    words = columns >> 6
    first = np.flatnonzero(np.diff(sets, prepend=-1).astype(np.bool_) | (np.diff(words, prepend=-1) != 0))
    starts = np.searchsorted(sets[first], np.arange(count + 1)).astype(np.int64)
    whole = np.bitwise_or.reduceat(bits, first) if len(first) else bits
    return WordRuns(starts, words[first].astype(np.int32), whole.astype(np.uint64))


def _runs(members: list[Int32Array], over: Over) -> WordRuns:
    pairs, readers = over.read(np.concatenate(members))
    counts = np.array([len(each) for each in members])
    return runs_of(np.repeat(np.arange(len(members)), counts)[pairs], readers, len(members))

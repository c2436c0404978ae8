"""Sets of columns under numbers: rows that the same columns accept have one set, which stands once.

Who reads rows has columns of its own over these; which of them are over each set stands as runs of words
(:class:`engine.kernels.window_pairs.WordRuns`), worked out when a set comes, and again for the sets with a
column over which others come or go. Cost: a look-up a row that is not of all the same columns, O(members) a
set that is new, and a pass over all members where columns come or go.
"""

from __future__ import annotations

import numpy as np

from engine.dataflow.arrangements.row_store import longer
from engine.dataflow.columns import Over
from engine.dataflow.delta import Delta
from engine.kernels.window_pairs import WordRuns
from engine.model.batch import BoolArray, Int32Array, Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.model.runs import places_of

ROOM_MIN = 64


class ColumnSets:
    """One writer. Set 0 is empty. Two sets may come to have the same columns, where others went."""

    def __init__(self, capacities: Capacities = USUAL) -> None:
        self._room_min = capacities.first(ROOM_MIN)
        self._forget()

    def _forget(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._count = 0
        self._members: Int32Array = np.empty(self._room_min, np.int32)
        """Members of all sets, one set after another."""
        self._ends: Int64Array = np.zeros(self._room_min, np.int64)
        """[sets]: where the members of each end."""
        self._spread = 0
        """So many sets have runs."""
        self._changed: set[int] = set()
        """Columns over which others came or went since runs were made."""
        self._stale: set[int] = set()
        """Sets that lost such columns since: their runs have the others over these still."""
        nothing = np.zeros(self._room_min, np.int64), np.zeros(self._room_min, np.int64)
        self._runs = WordRuns(
            *nothing, np.empty(self._room_min, np.int32), np.empty(self._room_min, np.uint64)
        )
        self._used = 0
        """So many words of runs are in use, or were."""
        self._put(b"")

    def __len__(self) -> int:
        return self._count

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
            self._number(np.union1d(self.members(pair >> 32), self.members(pair & 0xFFFFFFFF)))
            for pair in pairs.tolist()
        ]
        return np.array(found, np.int32)[which]

    def members(self, number: int) -> Int32Array:
        """int32[m]: the columns of a set, ascending."""
        return self._members[self._ends[number - 1] if number else 0 : self._ends[number]]

    def remove(self, columns: Int32Array) -> None:
        """These columns, over which there are no others, are in no set any more."""
        count = len(self)
        left: BoolArray = ~np.isin(self._members[: self._ends[count - 1]], columns)
        gone = np.flatnonzero(~left)
        if not len(gone):
            return
        having = np.searchsorted(self._ends[:count], gone, side="right")
        if self._changed:
            changed = np.isin(self._members[gone], np.array(sorted(self._changed), np.int32))
            self._stale.update(np.unique(having[changed]).tolist())
        sets = np.unique(having).tolist()
        for number in sets:
            key = self.members(number).tobytes()
            if self._numbers.get(key) == number:
                del self._numbers[key]
        running = np.concatenate([[0], np.cumsum(left)])
        kept = self._members[: len(left)][left]
        self._members[: len(kept)] = kept
        self._ends[:count] = running[self._ends[:count]]
        for number in sets:
            self._numbers.setdefault(self.members(number).tobytes(), number)

    def only(self, used: Int32Array) -> Int32Array:
        """Sets that are not among these go. Returns int32: by number of a set the one it has now."""
        there: BoolArray = np.zeros(len(self), np.bool_)
        there[used] = True
        members = [self.members(each if there[each] else 0).copy() for each in range(len(self))]
        self._forget()
        return np.array([self._number(each) for each in members], np.int32)

    # --- columns over them ------------------------------------------------------------------------

    def changed(self, column: int) -> None:
        """Another column is over this one, or one is not any more."""
        self._changed.add(column)

    def runs(self, over: Over) -> WordRuns:
        """The columns that are over those of each set. Arrays may be longer than what is in use."""
        if self._changed and self._is_wasteful():
            self._spread = self._used = 0
        if self._changed and self._spread:
            those = np.array(sorted(self._changed), np.int32)
            count = int(self._ends[self._spread - 1])
            places = np.flatnonzero(np.isin(self._members[:count], those))
            having = np.searchsorted(self._ends[: self._spread], places, side="right")
            stale = [number for number in self._stale if number < self._spread]
            self._spread_sets(np.unique(np.concatenate([having, np.array(stale, np.int64)])), over)
        self._changed.clear()
        self._stale.clear()
        if self._spread < len(self):
            self._spread_sets(np.arange(self._spread, len(self)), over)
            self._spread = len(self)
        return self._runs

    def _is_wasteful(self) -> bool:
        """Whether most words of runs are of sets that have others by now."""
        live = int((self._runs.ends[: self._spread] - self._runs.starts[: self._spread]).sum())
        return self._used > self._room_min + 2 * live

    def _spread_sets(self, sets: Int64Array, over: Over) -> None:
        """Runs of some sets are written behind all others."""
        begins = np.where(sets > 0, self._ends[sets - 1], 0)
        counts = self._ends[sets] - begins
        pairs, readers = over.read(self._members[places_of(begins, counts)])
        made = runs_of(np.repeat(np.arange(len(sets)), counts)[pairs], readers, len(sets))
        more, runs = len(made.words), self._runs
        if self._used + more > len(runs.words):
            room = 2 * (self._used + more)
            runs = runs._replace(words=longer(runs.words, room), bits=longer(runs.bits, room))
        if len(self) > len(runs.starts):
            room = 2 * len(self)
            runs = runs._replace(starts=longer(runs.starts, room), ends=longer(runs.ends, room))
        runs.words[self._used : self._used + more] = made.words
        runs.bits[self._used : self._used + more] = made.bits
        runs.starts[sets], runs.ends[sets] = self._used + made.starts, self._used + made.ends
        self._runs = runs
        self._used += more

    # --- room -------------------------------------------------------------------------------------

    def _number(self, members: Int32Array) -> int:
        key = members.astype(np.int32).tobytes()
        number = self._numbers.get(key)
        return self._put(key) if number is None else number

    def _put(self, key: bytes) -> int:
        number, first = self._count, int(self._ends[self._count - 1]) if self._count else 0
        self._numbers[key] = number
        self._count += 1
        end = first + len(key) // 4
        if end > len(self._members):
            self._members = longer(self._members, 2 * end)
        if number == len(self._ends):
            self._ends = longer(self._ends, 2 * number)
        self._members[first:end] = np.frombuffer(key, np.int32)
        self._ends[number] = end
        return number

    @property
    def nbytes(self) -> int:
        """With 100 bytes for the name of a set beside its members."""
        count = int(self._ends[len(self) - 1])
        arrays = (self._members, self._ends, *self._runs)
        return sum(array.nbytes for array in arrays) + 4 * count + 100 * len(self)

    def _check(self) -> None:
        assert not len(self.members(0))
        for number in range(len(self)):
            members = self.members(number)
            assert bool((members[1:] > members[:-1]).all())
            assert self.members(self._numbers[members.tobytes()]).tolist() == members.tolist()


def runs_of(sets: Int64Array, columns: Int32Array, count: int) -> WordRuns:
    """Sets as runs. sets, columns: of each member, in any order, none twice. count: how many sets."""
    order = np.lexsort((columns, sets))
    sets, columns = sets[order], columns[order]
    bits = np.uint64(1) << (columns & 63).astype(np.uint64)
    words = columns >> 6
    first = np.flatnonzero(np.diff(sets, prepend=-1).astype(np.bool_) | (np.diff(words, prepend=-1) != 0))
    borders = np.searchsorted(sets[first], np.arange(count + 1)).astype(np.int64)
    whole = np.bitwise_or.reduceat(bits, first) if len(first) else bits
    starts, ends = borders[:-1].copy(), borders[1:].copy()
    return WordRuns(starts, ends, words[first].astype(np.int32), whole.astype(np.uint64))

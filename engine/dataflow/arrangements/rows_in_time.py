"""The rows of a stream in the order of time, by key: one store for windows of all sizes.

A row is kept with the set of columns that accept it. It goes when the widest window has left it. Cost: O(1) a
row, amortised.
"""

from __future__ import annotations

import numpy as np

from engine.dataflow.arrangements.column_sets import ColumnSets
from engine.dataflow.arrangements.keys import Keys
from engine.dataflow.arrangements.owned_rows import KeyValues
from engine.dataflow.arrangements.row_queue import RowQueue
from engine.dataflow.buffers.buffer import Work
from engine.dataflow.delta import Delta
from engine.kernels import window_pairs as kernels
from engine.kernels.window_pairs import NOBODY, RowsStored
from engine.model.batch import BoolArray, Int32Array, Int64Array
from engine.model.capacities import USUAL, Capacities

SETS_MIN = 64
"""So many sets of columns are kept in any case."""


class RowsInTime(RowQueue):
    """keys: shared by the inputs of a join."""

    by_place = (*RowQueue.by_place, "_before", "_accepted")
    to_places = (*RowQueue.to_places, "_before")

    def __init__(self, keys: Keys, capacities: Capacities = USUAL) -> None:
        super().__init__(keys, capacities)
        self.sets = ColumnSets(capacities)
        self.work = Work()
        self._before: Int32Array = np.empty(self._room_min, np.int32)
        self._accepted: Int32Array = np.empty(self._room_min, np.int32)
        self._sets_min = capacities.first(SETS_MIN)
        self._sets_most = self._sets_min

    @property
    def at(self) -> Int64Array:
        """int64[high]: instants of entry, ascending from ``low`` on."""
        return self._at[: self.high]

    def stored(self) -> RowsStored:
        """As kernels take them."""
        return RowsStored(self._at, self._key, self._before, self._accepted, self._last_by_key())

    def append(self, delta: Delta, keys: KeyValues) -> None:
        """Rows enter, after those that are here. Rows without a key are left out."""
        self._put(delta, keys)

    def stand(self, delta: Delta, keys: KeyValues) -> None:
        """Rows are there for some columns, perhaps for others already; they may stand among those that are
        here.
        """
        if not len(self):
            self._put(delta, keys)
            return
        known, ordinals = self.ordinals(slice(self.low, self.high)), delta.ids_of()[:, 0]
        places = np.minimum(np.searchsorted(known, ordinals), len(known) - 1)
        is_known = known[places] == ordinals
        again = np.flatnonzero(is_known & keys.usable)
        if len(again):
            slots = self.low + places[again]
            sets = self.sets.of(delta.take(again))
            self._accepted[slots] = self.sets.union(self._accepted[slots], sets)
        new = np.flatnonzero(~is_known & keys.usable)
        if len(new):
            self._put(delta.take(new), keys.take(new))
            self._sort()

    def _put(self, delta: Delta, keys: KeyValues) -> None:
        if not keys.usable.all():
            usable = np.flatnonzero(keys.usable)
            delta, keys = delta.take(usable), keys.take(usable)
        here = self._enter(delta.ids_of()[:, 0], delta.temporal.valid_from, keys.columns)
        self._accepted[here] = self.sets.of(delta)
        self.work.inserted += here.stop - here.start
        kernels.link(here.start, here.stop, self.stored())

    def _sort(self) -> None:
        """Rows were put behind others that they stand among."""
        here = slice(self.low, self.high)
        order = np.argsort(self._ordinals[here], kind="stable")
        for each in (self._ordinals, self._at, self._key, self._accepted):
            each[here] = each[here][order]
        self._last[:] = NOBODY
        kernels.link(self.low, self.high, self.stored())

    def key_numbers(self) -> Int32Array:
        """int32[rows]: of all rows, in order."""
        return self._key[self.low : self.high]

    def has(self, numbers: Int32Array) -> BoolArray:
        """bool[n]: of which keys there is a row, by number."""
        found: BoolArray = self._last_by_key()[numbers] >= self.low
        return found

    def let_go(self, gone: BoolArray) -> None:
        """Rows go before their time. gone: bool[rows], in order. O(rows + keys)."""
        here = slice(self.low, self.high)
        left = np.flatnonzero(~gone)
        self._keys.give_back(self._key[here][gone])
        for each in (self._ordinals, self._at, self._key, self._accepted):
            each[self.low : self.low + len(left)] = each[here][left]
        self.work.deleted += int(gone.sum())
        self.high = self.low + len(left)
        self._last[:] = NOBODY
        kernels.link(self.low, self.high, self.stored())

    def leave(self, until: int) -> None:
        """The rows go that came at an instant or before."""
        low = self.low + int(np.searchsorted(self.at[self.low :], until, side="right"))
        self.work.deleted += low - self.low
        self.work.dropped += low - self.low
        self._leave(low)
        if len(self.sets) > self._sets_most:
            here = slice(self.low, self.high)
            self._accepted[here] = self.sets.only(self._accepted[here])[self._accepted[here]]
            self._sets_most = self._sets_min + 2 * len(self.sets)

    def drop(self, columns: Int32Array) -> None:
        """No row is accepted by these columns any more; rows of nobody stay until they leave."""
        self.sets.remove(columns)

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept, without the keys."""
        return super().nbytes + self.sets.nbytes

    def _check(self) -> None:
        super()._check()
        self.sets._check()
        last: dict[int, int] = {}
        for place in range(self.low, self.high):
            key, before = int(self._key[place]), int(self._before[place])
            assert max(before, self.low - 1) == last.get(key, self.low - 1)
            last[key] = place

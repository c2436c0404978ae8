"""The rows of a stream in the order of time, by key: one store for windows of all sizes.

A row is kept as its ordinal, its instant, its key and the set of columns that accept it, without values. Rows
come at the end and go at the beginning, when the widest window has left them; the store is compacted when
half of its room is empty. Cost: O(1) a row, amortised.
"""

from __future__ import annotations

import numpy as np

from engine.dataflow.arrangements.column_sets import ColumnSets
from engine.dataflow.arrangements.keys import Keys
from engine.dataflow.arrangements.owned_rows import KeyValues
from engine.dataflow.arrangements.row_store import longer
from engine.dataflow.buffers.buffer import Work
from engine.dataflow.delta import Delta
from engine.kernels import window_pairs as kernels
from engine.kernels.window_pairs import NOBODY, RowsStored
from engine.model.batch import Int32Array, Int64Array
from engine.model.capacities import USUAL, Capacities

ROOM_MIN = 256
SETS_MIN = 64
"""So many sets of columns are kept in any case."""


class RowsInTime:
    """One writer. keys: shared by the inputs of a join. Rows are at the places from ``low`` to ``high``."""

    def __init__(self, keys: Keys, capacities: Capacities = USUAL) -> None:
        self._room_min = room = capacities.first(ROOM_MIN)
        self.sets = ColumnSets(capacities)
        self.low = 0
        self.high = 0
        self.work = Work()
        self._keys = keys
        self._ordinals: Int64Array = np.empty(room, np.int64)
        self._at: Int64Array = np.empty(room, np.int64)
        self._key: Int32Array = np.empty(room, np.int32)
        self._before: Int32Array = np.empty(room, np.int32)
        self._accepted: Int32Array = np.empty(room, np.int32)
        self._first: Int32Array = np.empty(0, np.int32)
        self._sets_min = capacities.first(SETS_MIN)
        self._sets_most = self._sets_min

    def __len__(self) -> int:
        return self.high - self.low

    @property
    def at(self) -> Int64Array:
        """int64[high]: instants of entry, ascending from ``low`` on."""
        return self._at[: self.high]

    def ordinals(self, places: Int32Array) -> Int64Array:
        """int64[n]: where rows stand in their source."""
        return self._ordinals[places]

    def stored(self) -> RowsStored:
        """As kernels take them."""
        known = self._first
        if len(known) < self._keys.capacity:
            self._first = np.full(self._keys.capacity, NOBODY, np.int32)
            self._first[: len(known)] = known
        return RowsStored(self._at, self._key, self._before, self._accepted, self._first)

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
        known, ordinals = self._ordinals[self.low : self.high], delta.ids_of()[:, 0]
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
        n = len(delta.temporal)
        self._make_room_for(n)
        numbers = self._keys.number(keys.columns, n)
        self._keys.take(numbers)
        low, self.high = self.high, self.high + n
        here = slice(low, self.high)
        self._ordinals[here], self._at[here] = delta.ids_of()[:, 0], delta.temporal.valid_from
        self._key[here], self._accepted[here] = numbers, self.sets.of(delta)
        self.work.inserted += n
        kernels.link(low, self.high, self.stored())

    def _sort(self) -> None:
        """Rows were put behind others that they stand among."""
        here = slice(self.low, self.high)
        order = np.argsort(self._ordinals[here], kind="stable")
        for each in (self._ordinals, self._at, self._key, self._accepted):
            each[here] = each[here][order]
        self._first[:] = NOBODY
        kernels.link(self.low, self.high, self.stored())

    def leave(self, until: int) -> None:
        """The rows go that came at an instant or before."""
        low = self.low + int(np.searchsorted(self.at[self.low :], until, side="right"))
        self._keys.give_back(self._key[self.low : low])
        self.work.deleted += low - self.low
        self.work.dropped += low - self.low
        self.low = low
        if len(self.sets) > self._sets_most:
            here = slice(self.low, self.high)
            self._accepted[here] = self.sets.only(self._accepted[here])[self._accepted[here]]
            self._sets_most = self._sets_min + 2 * len(self.sets)

    def drop(self, columns: Int32Array) -> None:
        """No row is accepted by these columns any more; rows of nobody stay until they leave."""
        self.sets.remove(columns)

    def _make_room_for(self, n: int) -> None:
        room = len(self._at)
        if self.high + n <= room:
            return
        held, moved = len(self), self.low
        if 2 * (held + n) <= room:  # half of it was left
            room = len(self._at)
        else:
            room = max(room, held + n + max(self._room_min, (held + n) // 4))
        for name in ("_ordinals", "_at", "_key", "_before", "_accepted"):
            array = getattr(self, name)
            setattr(self, name, longer(array[self.low : self.high], room))
        self._before -= np.int32(moved)
        self._first -= np.int32(moved)
        np.maximum(self._first, NOBODY, out=self._first)
        self.low, self.high = 0, held

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept, without the keys."""
        arrays = (self._ordinals, self._at, self._key, self._before, self._accepted, self._first)
        return sum(array.nbytes for array in arrays) + self.sets.nbytes

    def _check(self) -> None:
        self.sets._check()
        here = slice(self.low, self.high)
        assert bool((np.diff(self._at[here]) >= 0).all())
        assert bool((np.diff(self._ordinals[here]) > 0).all())
        last: dict[int, int] = {}
        for place in range(self.low, self.high):
            key, before = int(self._key[place]), int(self._before[place])
            assert max(before, self.low - 1) == last.get(key, self.low - 1)
            last[key] = place
        assert all(self._first[key] == place for key, place in last.items())

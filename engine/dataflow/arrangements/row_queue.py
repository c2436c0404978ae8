"""Rows of a stream in the order of time, by key: they come at the end and go at the beginning.

A row is its ordinal, its instant, its key and what a subclass keeps by place, without values. The arrays are
compacted when half of their room is empty. Cost: O(1) a row, amortised; 16 bytes a row and 4 a key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from engine.dataflow.arrangements.keys import Keys
from engine.dataflow.arrangements.row_store import longer
from engine.kernels.window_pairs import NOBODY
from engine.model.batch import Column, Int32Array, Int64Array
from engine.model.capacities import USUAL, Capacities

ROOM_MIN = 256
OFFSETS_MAX = (1 << 31) - 1
"""Ordinals are kept less another, which they are so far from at most when they come."""


class RowQueue:
    """One writer. keys: perhaps shared. Rows are at the places from ``low`` to ``high``; what leads to a row
    that went is a place below ``low``.
    """

    by_place: ClassVar[tuple[str, ...]] = ("_ordinals", "_at", "_key")
    """Names of the arrays that have an item for each place."""
    to_places: ClassVar[tuple[str, ...]] = ("_last",)
    """Names of the arrays whose items are places."""

    def __init__(self, keys: Keys, capacities: Capacities = USUAL) -> None:
        self._room_min = room = capacities.first(ROOM_MIN)
        self.low = 0
        self.high = 0
        self._keys = keys
        self._ordinals: Int32Array = np.empty(room, np.int32)
        """Less ``_origin``."""
        self._origin = 0
        self._at: Int64Array = np.empty(room, np.int64)
        self._key: Int32Array = np.empty(room, np.int32)
        self._last: Int32Array = np.empty(0, np.int32)

    def __len__(self) -> int:
        return self.high - self.low

    def ordinals(self, places: Int32Array | slice) -> Int64Array:
        """int64[n]: where rows stand in their source."""
        return self._origin + self._ordinals[places].astype(np.int64)

    def _below(self, ordinal: int) -> int:
        """The place of the first row that is not below an ordinal. O(log n)."""
        here, most = self._ordinals[self.low : self.high], np.iinfo(np.int32)
        offset = np.int32(min(max(ordinal - self._origin, most.min), most.max))
        return self.low + int(np.searchsorted(here, offset))

    def _enter(self, ordinals: Int64Array, at: Int64Array, keys: Sequence[Column]) -> slice:
        """Rows come, after those that are here. Returns their places."""
        n = len(ordinals)
        self._make_room_for(n)
        numbers = self._keys.number(keys, n)
        self._keys.take(numbers)
        here = slice(self.high, self.high + n)
        self._ordinals[here], self._at[here], self._key[here] = self._offsets(ordinals), at, numbers
        self.high += n
        return here

    def _offsets(self, ordinals: Int64Array) -> Int64Array:
        """Ordinals as they are kept; those that are here are told from another origin where that is far."""
        if len(ordinals) and int(np.abs(ordinals[[0, -1]] - self._origin).max()) > OFFSETS_MAX:
            here = slice(self.low, self.high)
            held, before = self._ordinals[here], self._origin
            self._origin = before + int(held[0]) if len(held) else int(ordinals[0])
            held -= np.int32(self._origin - before if len(held) else 0)
        return ordinals - self._origin

    def _leave(self, low: int) -> None:
        """The rows before a place go."""
        self._keys.give_back(self._key[self.low : low])
        self.low = low

    def _last_by_key(self) -> Int32Array:
        """int32[keys]: the last place of each key."""
        known = len(self._last)
        if known < self._keys.capacity:
            self._last = longer(self._last, self._keys.capacity)
            self._last[known:] = NOBODY
        return self._last

    def _make_room_for(self, n: int) -> None:
        room = len(self._at)
        if self.high + n <= room:
            return
        held, moved = len(self), self.low
        if 2 * (held + n) > room:  # less than half of it was left
            room = max(room, held + n + max(self._room_min, (held + n) // 4))
        for name in self.by_place:
            setattr(self, name, longer(getattr(self, name)[self.low : self.high], room))
        for name in self.to_places:
            places = getattr(self, name)
            places -= np.int32(moved)
            np.maximum(places, NOBODY, out=places)
        self.low, self.high = 0, held

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept, without the keys."""
        names = dict.fromkeys((*self.by_place, *self.to_places))
        return sum(getattr(self, name).nbytes for name in names)

    def _check(self) -> None:
        here = slice(self.low, self.high)
        assert bool((np.diff(self._at[here]) >= 0).all())
        assert bool((np.diff(self._ordinals[here]) > 0).all())
        keys = self._key[here].tolist()
        last = {key: place for place, key in enumerate(keys, start=self.low)}
        assert all(self._last[key] == place for key, place in last.items())

"""Rows of a stream by their sessions: those that end at an instant are found without a look at the others.

A row is kept as its ordinal, its instant, its key and links to the rows beside it in its session
(:mod:`engine.kernels.sessions`), without values. Rows come at the end and go at the beginning, as retention
takes them; the store is compacted when half of its room is empty. Cost: O(1) a row, amortised, and O(1) for
each row of the sessions that are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from engine.changes.assigned import Sessions
from engine.changes.windows import Span
from engine.dataflow.arrangements.keys import Keys
from engine.dataflow.arrangements.row_store import longer
from engine.kernels import sessions as kernels
from engine.kernels.sessions import LinkedRows
from engine.kernels.window_pairs import NOBODY
from engine.model.batch import Column, Int32Array, Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.model.types import Type
from engine.operators.keys import with_one_zero

ROOM_MIN = 256


class SessionRows:
    """One writer. Rows are at the places from ``low`` to ``high``."""

    def __init__(self, gap_ms: int, keys: Sequence[Type], capacities: Capacities = USUAL) -> None:
        """keys: types of the keys of sessions."""
        room = self._room_min = capacities.first(ROOM_MIN)
        self._gap_ms = gap_ms
        self._keys = Keys(keys, capacities)
        self.low = 0
        self.high = 0
        self._ordinals: Int64Array = np.empty(room, np.int64)
        self._at: Int64Array = np.empty(room, np.int64)
        self._key: Int32Array = np.empty(room, np.int32)
        self._before: Int32Array = np.empty(room, np.int32)
        self._after: Int32Array = np.empty(room, np.int32)
        self._last: Int32Array = np.empty(0, np.int32)

    def __len__(self) -> int:
        return self.high - self.low

    def append(self, ordinals: Int64Array, timestamps: Int64Array, keys: Sequence[Column]) -> None:
        """Rows come, after those that are here; their keys. int64[n], both ascending."""
        n = len(ordinals)
        self._make_room_for(n)
        numbers = self._keys.number([with_one_zero(key) for key in keys], n)
        self._keys.take(numbers)
        low, self.high = self.high, self.high + n
        here = slice(low, self.high)
        self._ordinals[here], self._at[here], self._key[here] = ordinals, timestamps, numbers
        known = len(self._last)
        if known < self._keys.capacity:
            self._last = longer(self._last, self._keys.capacity)
            self._last[known:] = NOBODY
        kernels.link(self.low, low, self.high, self._gap_ms, self._linked())

    def leave(self, until: int) -> None:
        """The rows below an ordinal go."""
        low = self.low + int(np.searchsorted(self._ordinals[self.low : self.high], until))
        self._keys.give_back(self._key[self.low : low])
        self.low = low

    def ending(self, spans: Iterable[Span], before_ms: int | None) -> tuple[Int64Array, Sessions]:
        """The sessions whose last instant is in one of these spans, as far as their rows have come, and those
        that have a row before an instant; with the ordinals of their rows, int64[n].
        """
        lasts = [self._last_in(low - self._gap_ms + 1, high - self._gap_ms + 1) for low, high in spans]
        if before_ms is not None:
            stop = self._place(before_ms)
            heads = np.empty(stop - self.low, np.int32)
            lasts.append(heads[: kernels.last_of_heads(self.low, stop, self._linked(), heads)])
        found = np.sort(np.concatenate([np.empty(0, np.int32), *lasts]))
        return self._found(found[np.diff(found, prepend=NOBODY) > 0])

    def _last_in(self, low_ms: int, high_ms: int) -> Int32Array:
        """Rows of these instants that no row of their session follows."""
        low, high = self._place(low_ms), self._place(high_ms)
        return (low + np.flatnonzero(self._after[low:high] == NOBODY)).astype(np.int32)

    def _place(self, at_ms: int) -> int:
        """Where the rows of an instant and later ones begin."""
        return self.low + int(np.searchsorted(self._at[self.low : self.high], at_ms))

    def _found(self, lasts: Int32Array) -> tuple[Int64Array, Sessions]:
        rows, starts = self._linked(), np.empty(len(lasts), np.int64)
        none = np.empty(0, np.int32)
        count = kernels.rows_of_sessions(self.low, lasts, rows, starts, none, none)
        places, session = np.empty(count, np.int32), np.empty(count, np.int32)
        if count:
            kernels.rows_of_sessions(self.low, lasts, rows, starts, places, session)
        order = np.argsort(places)
        places = places[order]
        ends = self._at[lasts] + self._gap_ms
        return self._ordinals[places], Sessions(
            self._at[places], session[order].astype(np.int64), starts, ends
        )

    def _linked(self) -> LinkedRows:
        return LinkedRows(self._at, self._key, self._before, self._after, self._last)

    def _make_room_for(self, n: int) -> None:
        room = len(self._at)
        if self.high + n <= room:
            return
        held, moved = len(self), self.low
        if 2 * (held + n) > room:  # less than half of it was left
            room = max(room, held + n + max(self._room_min, (held + n) // 4))
        for name in ("_ordinals", "_at", "_key", "_before", "_after"):
            array = getattr(self, name)
            setattr(self, name, longer(array[self.low : self.high], room))
        for links in (self._before, self._after, self._last):
            links -= np.int32(moved)
            np.maximum(links, NOBODY, out=links)
        self.low, self.high = 0, held

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept."""
        arrays = (self._ordinals, self._at, self._key, self._before, self._after, self._last)
        return sum(array.nbytes for array in arrays) + self._keys.nbytes

    def _check(self) -> None:
        self._keys._check()
        here = slice(self.low, self.high)
        assert bool((np.diff(self._at[here]) >= 0).all())
        assert bool((np.diff(self._ordinals[here]) > 0).all())
        last: dict[int, int] = {}
        for place in range(self.low, self.high):
            found = last.get(int(self._key[place]), NOBODY)
            follows = found != NOBODY and self._at[place] - self._at[found] < self._gap_ms
            assert max(int(self._before[place]), self.low - 1) == (found if follows else self.low - 1)
            if found != NOBODY:
                assert self._after[found] == (place if follows else NOBODY)
            last[int(self._key[place])] = place
        assert all(self._last[key] == place for key, place in last.items())

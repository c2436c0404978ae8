"""Rows of a stream by their sessions: those that end at an instant are found without a look at the others.

Rows are linked with those beside them in their session (:mod:`engine.kernels.sessions`). They come at the end
and go as retention takes them. Cost: O(1) a row, amortised, and O(1) for each row of the sessions that are
asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from engine.changes.assigned import Sessions
from engine.changes.windows import Span
from engine.dataflow.arrangements.keys import Keys
from engine.dataflow.arrangements.row_queue import RowQueue
from engine.kernels import sessions as kernels
from engine.kernels.sessions import LinkedRows
from engine.kernels.window_pairs import NOBODY
from engine.model.batch import Column, Int32Array, Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.model.types import Type
from engine.operators.keys import with_one_zero


class SessionRows(RowQueue):
    """One writer."""

    by_place = (*RowQueue.by_place, "_before", "_after")
    to_places = (*RowQueue.to_places, "_before", "_after")

    def __init__(self, gap_ms: int, keys: Sequence[Type], capacities: Capacities = USUAL) -> None:
        """keys: types of the keys of sessions."""
        super().__init__(Keys(keys, capacities), capacities)
        self._gap_ms = gap_ms
        self._before: Int32Array = np.empty(self._room_min, np.int32)
        self._after: Int32Array = np.empty(self._room_min, np.int32)

    def append(self, ordinals: Int64Array, timestamps: Int64Array, keys: Sequence[Column]) -> None:
        """Rows come, after those that are here; their keys. int64[n], both ascending."""
        here = self._enter(ordinals, timestamps, [with_one_zero(key) for key in keys])
        kernels.link(self.low, here.start, here.stop, self._gap_ms, self._linked())

    def leave(self, until: int) -> None:
        """The rows below an ordinal go."""
        self._leave(self._below(until))

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
        return self.ordinals(places), Sessions(
            self._at[places], session[order].astype(np.int64), starts, ends
        )

    def _linked(self) -> LinkedRows:
        return LinkedRows(self._at, self._key, self._before, self._after, self._last_by_key())

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept."""
        return super().nbytes + self._keys.nbytes

    def _check(self) -> None:
        super()._check()
        self._keys._check()
        last: dict[int, int] = {}
        for place in range(self.low, self.high):
            found = last.get(int(self._key[place]), NOBODY)
            follows = found != NOBODY and self._at[place] - self._at[found] < self._gap_ms
            assert max(int(self._before[place]), self.low - 1) == (found if follows else self.low - 1)
            if found != NOBODY:
                assert self._after[found] == (place if follows else NOBODY)
            last[int(self._key[place])] = place

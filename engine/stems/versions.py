"""Which version of a table's row follows which.

Every row of a table is a *version* of its key's row. For each of them stands here the ordinal of the next
version of the key, so that whether it is the latest among the first ``end`` rows is one comparison, for any
``end`` in the past:

    ordinal          0     1     2     3     4
    key              a     b     a     b     a
    deleted                            yes
    superseded       2     3     4     3     -          at end = 3: b of 1 and a of 2 are there
    before           -     -     0     1     2

A version that takes its key away is superseded by itself: it is nobody's latest. Numbers only ever become
what they are to be (from none to an ordinal that is not visible to earlier readers), so readers of earlier
ends need no lock and no copy.

Keys are equal as GROUP BY has it, but never NULL.

Cost: a version that enters, O(1), hashing. Memory: 16 bytes a version, and the keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from engine.model.batch import Batch, BoolArray, Column, Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.model.types import Kind

NONE = np.iinfo(np.int64).max
"""No version follows."""
LONG_AGO = np.iinfo(np.int64).min
"""When a version was first superseded in a table of which some are gone already."""

_FIRST_ROOM = 1_024


class TableVersions:
    """The writing side. Rows enter in the order of their ordinals, from ``first`` on."""

    def __init__(self, key: Sequence[int], first: int, capacities: Capacities = USUAL) -> None:
        """key: places of the key columns."""
        self._room_min = capacities.first(_FIRST_ROOM)
        self._key = tuple(key)
        self.first_loss_ms: int | None = None if first == 0 else LONG_AGO
        """The first instant at which a version was superseded or a key taken away, ever."""
        self.restart(first)

    def restart(self, first: int) -> None:
        """All rows go; others will enter from this ordinal on."""
        self.first = self.end = first
        self.last = 0
        """How many versions are their keys' rows."""
        self._latest: dict[Any, int] = {}
        room = self._room_min
        self._superseded = np.full(room, NONE, np.int64)
        self._before = np.full(room, -1, np.int64)
        self._settled = first
        self._spent = 0

    def enter(self, rows: Batch) -> None:
        """The next versions. The last column says which of them take their key away."""
        start, stop = self.end - self.first, self.end - self.first + len(rows)
        self._make_room(stop)
        latest, end = self._latest, self.end
        known = latest.get
        before = np.empty(len(rows), np.int64)
        for place, key in enumerate(self._keys(rows)):
            before[place] = known(key, -1)
            latest[key] = end + place
        self._before[start:stop] = before
        followers = np.flatnonzero(before >= 0)
        gone: BoolArray = rows.columns[-1].values
        taken = np.flatnonzero(gone)
        self._superseded[start + taken] = end + taken
        replaced = before[followers] - self.first
        alive = self._superseded[replaced] == NONE
        self._superseded[replaced[alive]] = end + followers[alive]
        self.last += len(rows) - len(taken) - int(np.count_nonzero(alive))
        if self.first_loss_ms is None and (len(followers) or len(taken)):
            firsts = [int(found[0]) for found in (followers, taken) if len(found)]
            self.first_loss_ms = int(rows.timestamp[min(firsts)])
        self.end += len(rows)

    def _make_room(self, rows: int) -> None:
        room = len(self._superseded)
        if rows <= room:
            return
        more = max(rows, 2 * room) - room
        self._superseded = np.concatenate([self._superseded, np.full(more, NONE, np.int64)])
        self._before = np.concatenate([self._before, np.full(more, -1, np.int64)])

    def _keys(self, rows: Batch) -> Iterable[Any]:
        columns = [_values(rows.columns[place]) for place in self._key]
        return columns[0] if len(columns) == 1 else zip(*columns, strict=True)

    # --- what nobody may ask for any more -----------------------------------------------------------

    def spent(self, cut: int) -> int:
        """How many rows are not the latest of their key at any instant from that of ordinal ``cut - 1`` on.

        ``cut`` never goes back. O(rows since the last time).
        """
        if cut > self._settled:
            low, high = self._settled - self.first, cut - self.first
            ordinals = np.arange(self._settled, cut, dtype=np.int64)
            before = self._before[low:high]
            follows = before >= 0
            replaced = self._superseded[before[follows] - self.first] == ordinals[follows]
            taken = self._superseded[low:high] == ordinals
            self._spent += int(np.count_nonzero(replaced)) + int(np.count_nonzero(taken))
            self._settled = cut
        return self._spent

    def survivors(self, cut: int) -> Int64Array:
        """Ordinals of the others, ascending."""
        return self.first + np.flatnonzero(self._superseded[: self.end - self.first] >= cut)

    # --- readers ----------------------------------------------------------------------------------

    @property
    def superseded(self) -> Int64Array:
        """int64: by ordinal - first, the ordinal of the next version; NONE; of one that takes away, its
        own.
        """
        return self._superseded

    @property
    def before(self) -> Int64Array:
        """int64: by ordinal - first, the ordinal of the version before, -1 where there is none."""
        return self._before

    def _check(self, rows: Batch) -> None:
        """rows: all from ``first`` to ``end``."""
        n = self.end - self.first
        assert len(rows) == n
        superseded = np.full(n, NONE, np.int64)
        latest: dict[Any, int] = {}
        gone = rows.columns[-1].values
        for place, key in enumerate(self._keys(rows)):
            known = latest.get(key)
            assert self._before[place] == (-1 if known is None else self.first + known)
            if known is not None and not gone[known]:
                superseded[known] = self.first + place
            if gone[place]:
                superseded[place] = self.first + place
            latest[key] = place
        assert self.last == np.count_nonzero(superseded == NONE)
        assert superseded.tolist() == self._superseded[:n].tolist()
        assert {key: self.first + place for key, place in latest.items()} == self._latest
        assert self._spent == n - len(self.survivors(self._settled))


def _values(column: Column) -> list[Any]:
    """Hashable values of a column without NULL, equal where the column's are."""
    if column.type.kind is not Kind.STRING:
        values = column.values
        if column.type.kind is Kind.DOUBLE:  # one NaN, one zero
            values = np.where(np.isnan(values), np.nan, values + 0.0).view(np.int64)
        plain: list[Any] = values.tolist()
        return plain
    strings: list[Any] = column.text_array().to_pylist()
    return strings

"""Entries that leave in the order in which they came: a ring, in at the end, out at the front."""

from __future__ import annotations

import numpy as np

from engine.dataflow.buffers.buffer import NOBODY, NOTHING, Buffer, Leaving, room_for
from engine.kernels import buffers as kernels
from engine.model.batch import Int32Array, Int64Array
from engine.model.capacities import USUAL, Capacities

ROOM_MIN = 256


class FifoBuffer(Buffer):
    """For exits that never descend, such as those of a window of time by its rows' timestamps, or of a window
    of the last n rows by their number.

    Cost: O(log entries) to take or drop any number, and the copy of what is taken; a search by halves to
    remove one. 12 bytes an entry. In the ring stand, from ``_head`` on, first the ``_passed`` entries that
    were dropped and wait to be reclaimed, then the ``_count`` others, of which ``_crossed`` left prematurely.
    """

    def __init__(self, capacities: Capacities = USUAL) -> None:
        super().__init__()
        self._room_min = room_for(capacities.first(ROOM_MIN), 1)
        self._places: Int32Array = np.empty(self._room_min, np.int32)
        self._exits: Int64Array = np.empty(self._room_min, np.int64)
        self._head = self._passed = self._count = self._crossed = 0

    def __len__(self) -> int:
        return self._count - self._crossed

    def insert(self, places: Int32Array, exits: Int64Array) -> None:
        """Raises ValueError if an entry leaves before one that came before it."""
        n = len(places)
        if not n:
            return
        if bool((exits[1:] < exits[:-1]).any()) or (self._count and exits[0] < self._last_exit()):
            raise ValueError("an entry leaves before one that came before it")
        self._resize(room_for(self._passed + self._count + n, len(self._places)))
        self._write(self._passed + self._count, places, exits)
        self._count += n
        self.work.inserted += n

    def take(self, until: int) -> Leaving:
        if not self._count:
            return NOTHING
        gone = self._leave(until)
        self.work.visited += gone + (gone < self._count + gone)
        if not gone:
            return NOTHING
        if self._passed:
            self._set_beside()
        leaving = self._without_crossed(self._advance(gone))
        self._shrink()
        return self._taken(*leaving)

    def drop(self, until: int) -> int:
        gone = self._leave(until)
        self.work.visited += int(self._count + gone > 0)
        crossed = 0
        if self._crossed and gone:
            crossed = int(np.count_nonzero(self._read(self._passed, gone).places == NOBODY))
            self._crossed -= crossed
        self._passed += gone
        self._dropped_count += gone - crossed
        self.work.deleted += gone - crossed
        self.work.dropped += gone - crossed
        return gone - crossed

    def reclaim(self, wanted: int) -> Int32Array:
        found = super().reclaim(wanted)
        more = min(wanted - len(found), self._passed)
        if more <= 0:
            return found
        places = self._advance(more).places
        self._passed -= more
        places = places[places != NOBODY]
        self._dropped_count -= len(places)
        self._shrink()
        both = np.concatenate([found, places]) if len(found) else places
        missing = min(wanted - len(both), self._dropped_count)
        return np.concatenate([both, self.reclaim(missing)]) if missing > 0 else both

    def remove(self, places: Int32Array, exits: Int64Array) -> None:
        if not len(places):
            return
        start = (self._head + self._passed) & (len(self._places) - 1)
        found, visited = kernels.cross_out(self._places, self._exits, start, self._count, places, exits)
        self._crossed += found
        self.work.visited += visited
        if 2 * self._crossed > self._count:
            self._rewrite(len(self._places))
        self._left_out(found, len(places))

    def live(self, now: int) -> Int32Array:
        gone = self._due(now)
        places = self._read(self._passed + gone, self._count - gone).places
        return places[places != NOBODY] if self._crossed else places

    # --- the ring ---------------------------------------------------------------------------------

    def _due(self, until: int) -> int:
        """How many entries in front leave, those included that left prematurely."""
        start = (self._head + self._passed) & (len(self._places) - 1)
        return int(kernels.first_after(self._exits, start, self._count, until))

    def _leave(self, until: int) -> int:
        gone = self._due(until)
        self._count -= gone
        return gone

    def _last_exit(self) -> int:
        return int(self._exits[(self._head + self._passed + self._count - 1) & (len(self._exits) - 1)])

    def _read(self, start: int, count: int) -> Leaving:
        """Copies of so many entries from the one at ``start`` behind the head on."""
        room = len(self._places)
        first = (self._head + start) & (room - 1)
        stop = first + count
        if stop <= room:
            return Leaving(self._places[first:stop].copy(), self._exits[first:stop].copy())
        parts = slice(first, room), slice(0, stop - room)
        return Leaving(
            np.concatenate([self._places[part] for part in parts]),
            np.concatenate([self._exits[part] for part in parts]),
        )

    def _advance(self, count: int) -> Leaving:
        """The head goes past so many entries."""
        read = self._read(0, count)
        self._head = (self._head + count) & (len(self._places) - 1)
        return read

    def _set_beside(self) -> None:
        """What was dropped waits to be reclaimed out of the ring."""
        places = self._advance(self._passed).places
        places, self._passed = places[places != NOBODY], 0
        self._dropped_count -= len(places)
        self._put_down(places)

    def _write(self, start: int, places: Int32Array, exits: Int64Array) -> None:
        room = len(self._places)
        first = (self._head + start) & (room - 1)
        fit = min(len(places), room - first)
        self._places[first : first + fit], self._exits[first : first + fit] = places[:fit], exits[:fit]
        self._places[: len(places) - fit], self._exits[: len(places) - fit] = places[fit:], exits[fit:]

    def _without_crossed(self, read: Leaving) -> Leaving:
        if not self._crossed:
            return read
        there = read.places != NOBODY
        self._crossed -= int(np.count_nonzero(~there))
        return Leaving(read.places[there], read.exits[there])

    def _shrink(self) -> None:
        used = self._passed + self._count
        if len(self._places) > self._room_min and 4 * used < len(self._places):
            self._resize(room_for(2 * used, self._room_min))

    def _resize(self, room: int) -> None:
        if room != len(self._places):
            self._rewrite(room)

    def _rewrite(self, room: int) -> None:
        """The ring anew, without what left prematurely."""
        passed = self._read(0, self._passed)
        others = self._without_crossed(self._read(self._passed, self._count))
        self._count = len(others.places)
        if room != len(self._places):
            self._places, self._exits = np.empty(room, np.int32), np.empty(room, np.int64)
        self._head = 0
        if self._passed:
            self._write(0, passed.places, passed.exits)
        self._write(self._passed, others.places, others.exits)

    @property
    def nbytes(self) -> int:
        return self._places.nbytes + self._exits.nbytes + sum(each.nbytes for each in self._dropped)

    def _check(self) -> None:
        room = len(self._places)
        assert room == len(self._exits)
        assert room & (room - 1) == 0
        assert 0 <= self._passed + self._count <= room
        entries = self._read(self._passed, self._count)
        assert bool((entries.exits[1:] >= entries.exits[:-1]).all())
        there = entries.places[entries.places != NOBODY]
        assert self._count - len(there) == self._crossed
        assert len(np.unique(there)) == len(there) == len(self)
        passed = self._read(0, self._passed).places
        assert self._dropped_count == sum(map(len, self._dropped)) + np.count_nonzero(passed != NOBODY)

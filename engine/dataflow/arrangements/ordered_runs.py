"""Rows in order, run by run, of which the first are told (:mod:`engine.kernels.ranked`).

A run is a number of whoever asks. Cost: O(log n) a row, and what is said there; O(rows) where heaps are built
anew, after as many rows went.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from engine.dataflow.arrangements.row_store import RowStore, longer
from engine.kernels import ranked as kernels
from engine.kernels.ranked import RankBounds, RankEvents, RankVersions
from engine.model.batch import BoolArray, Int32Array, Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.model.limits import Limits
from engine.model.runs import places_of
from tureen.errors import LimitExceeded

ALL = 1 << 62
"""More rows than there are."""
SPARE_MIN = 30
"""Rows kept in order besides those that are told, at least."""
PIECE_MIN = 4
DEAD_MIN = 1_024
"""So many entries of rows that are gone stay in heaps in any case."""


def bounds_of(offset: int, most: int | None, *, numbered: bool) -> RankBounds:
    """The first rows from an offset on, ``most`` the place after the last; None: all."""
    if most is None:
        return RankBounds(offset, ALL, ALL, numbered)
    return RankBounds(offset, most, most + max(SPARE_MIN, most), numbered)


class OrderedRuns:
    """Keeps rows of a store in order, in runs. One writer."""

    def __init__(self, bounds: RankBounds, rows: RowStore, capacities: Capacities = USUAL) -> None:
        self._bounds = bounds
        self._piece_min, self._dead_min = capacities.first(PIECE_MIN), capacities.first(DEAD_MIN)
        self._rows = rows
        self._runs = _no_runs(rows)
        self._rooms: Int64Array = np.zeros(0, np.int64)
        """By run, how many rows its piece has room for."""
        self._top = 0
        self._most_entries = self._dead_min
        self._records = 1

    # --- rows that come and go --------------------------------------------------------------------

    def enter(self, starts: Int64Array, runs: Int32Array, slots: Int32Array) -> None:
        """Rows enter. Row r is slots[r], in runs[starts[r]:starts[r + 1]]."""
        self._make_room(runs)
        kernels.enter(starts, runs, slots, self._bounds.keep, self._held())

    def fold(self, entering: RankEvents, limits: Limits) -> RankVersions:
        """Rows enter and leave. Raises LimitExceeded: more is to be told than may be."""
        came = entering.rows[entering.signs > 0]
        pairs = len(entering.rows)
        if len(entering.runs) == len(entering.slots):  # a run each
            self._make_room(entering.runs[came])
        else:
            counts = np.diff(entering.starts)
            pairs = int(counts[entering.rows].sum())
            self._make_room(entering.runs[places_of(entering.starts[came], counts[came])])
        held, progress = self._held(), np.zeros(3, np.int64)
        room = 2 * pairs + 2
        made = _records(room)
        while not kernels.fold(entering, self._bounds, self._records, held, made, progress):
            room = max(2 * room, room + 2 * int(self._runs.counts.max()))
            if room > 4 * limits.intermediate_rows_max:
                hint = "number fewer rows, as with WHERE n <= 10 or LIMIT 10, or narrow the window"
                rows_max = limits.intermediate_rows_max
                raise LimitExceeded("intermediate_rows_max", rows_max, int(progress[2]), hint=hint)
            made = RankVersions._make(longer(each, room) for each in made)
        count = int(progress[2])
        self._records += count
        kept = np.flatnonzero(made.valid_from[:count] < made.valid_to[:count])
        return RankVersions._make(each[kept] for each in made)

    def first(self, runs: Int32Array) -> RankVersions:
        """The rows that are told of some runs as they stand."""
        runs = runs[runs < len(self._runs.counts)]
        low, high = (
            self._bounds.offset,
            np.minimum(self._runs.counts[runs].astype(np.int64), self._bounds.most),
        )
        counts = np.maximum(high - low, 0)
        starts = self._runs.starts[runs] + low
        slots = self._runs.firsts[places_of(starts, counts)]
        numbers = places_of(np.full(len(runs), low + 1), counts)
        begins, ends = np.full(len(slots), kernels.NEVER), np.full(len(slots), kernels.FOREVER)
        return RankVersions(slots, np.repeat(runs, counts), begins, ends, numbers)

    def places(self, runs: Int32Array, slots: Int32Array) -> Int64Array:
        """int64[n]: how many rows of runs[i] are before slots[i], which need not be there."""
        found = np.empty(len(runs), np.int64)
        kernels.places(runs, slots, self._held(), found)
        return found

    def stretch(self, runs: Int32Array, lows: Int64Array, counts: Int64Array) -> Int32Array:
        """The slots of so many rows of some runs, from a place of each on, one run after another."""
        return self._runs.firsts[places_of(self._runs.starts[runs] + lows, counts)]

    def counts(self, runs: Int32Array) -> Int64Array:
        """int64[n]: how many rows of runs are kept in order."""
        return self._runs.counts[runs].astype(np.int64)

    def is_empty(self, runs: Int32Array) -> BoolArray:
        """bool[n]: which runs have no row."""
        found: BoolArray = self._runs.counts[runs] == 0
        return found

    def drop(self, runs: Int32Array) -> None:
        """All rows of some runs leave them; those that are in no other leave the store."""
        runs = runs[runs < len(self._runs.counts)]
        dropped = np.zeros(len(self._runs.counts), np.bool_)
        dropped[runs] = True
        self._runs.counts[runs] = 0
        self._renew(dropped)
        wanted = self._rows.held > 0
        wanted[self._runs.firsts[places_of(self._runs.starts, self._runs.counts.astype(np.int64))]] = True
        self._rows.only(wanted)

    # --- room -------------------------------------------------------------------------------------

    def _make_room(self, runs: Int32Array) -> None:
        """For rows that enter these runs, which stand there once for each."""
        if int(self._runs.used[0]) + len(runs) > self._most_entries:
            self._renew(np.zeros(len(self._runs.counts), np.bool_))
        if int(self._runs.used[0]) + len(runs) > len(self._runs.child):
            room = 2 * (int(self._runs.used[0]) + len(runs))
            entries = self._runs.slots, self._runs.runs, self._runs.child, self._runs.sibling
            slots, its, child, sibling = (longer(each, room) for each in entries)
            self._runs = self._runs._replace(slots=slots, runs=its, child=child, sibling=sibling)
        if not len(runs):
            return
        last = int(runs.max())
        if last >= len(self._runs.counts):
            room = 2 * last + self._piece_min
            self._rooms, roots = longer(self._rooms, room), np.full(room, -1, np.int32)
            roots[: len(self._runs.roots)] = self._runs.roots
            starts, counts = longer(self._runs.starts, room), longer(self._runs.counts, room)
            self._runs = self._runs._replace(starts=starts, counts=counts, roots=roots)
        coming, more = _counted(runs, len(self._runs.counts))
        wanted = np.minimum(self._runs.counts[coming] + more, self._bounds.keep + 1)
        short = wanted > self._rooms[coming]
        if short.any():
            self._move(coming[short], wanted[short])

    def _move(self, runs: Int64Array, wanted: Int64Array) -> None:
        """Give runs larger pieces."""
        rooms = np.minimum(np.maximum(2 * wanted, self._piece_min), self._bounds.keep + 1)
        if self._top + int(rooms.sum()) > len(self._runs.firsts):
            self._rooms[runs] = rooms
            self._relocate(np.flatnonzero(self._rooms))
            return
        counts = self._runs.counts[runs].astype(np.int64)
        self._copy(runs, counts, self._top + np.cumsum(rooms) - rooms, self._runs.firsts, self._runs.told)
        self._rooms[runs] = rooms
        self._top += int(rooms.sum())

    def _relocate(self, runs: Int64Array) -> None:
        """All pieces one after the other, in a pool with as much room again."""
        rooms, counts = self._rooms[runs], self._runs.counts[runs].astype(np.int64)
        self._top = int(rooms.sum())
        firsts, told = np.zeros(2 * self._top, np.int32), np.zeros(2 * self._top, np.int64)
        self._copy(runs, counts, np.cumsum(rooms) - rooms, firsts, told)
        self._runs = self._runs._replace(firsts=firsts, told=told)

    def _copy(
        self, runs: Int64Array, counts: Int64Array, starts: Int64Array, firsts: Int32Array, told: Int64Array
    ) -> None:
        before, after = places_of(self._runs.starts[runs], counts), places_of(starts, counts)
        firsts[after], told[after] = self._runs.firsts[before], self._runs.told[before]
        self._runs.starts[runs] = starts

    def _renew(self, dropped: BoolArray) -> None:
        """Entries of rows that are gone go, and of runs that are dropped."""
        kernels.renew(dropped, self._held())
        self._most_entries = self._dead_min + 2 * int(self._runs.used[0])
        self._rows.released()

    def _held(self) -> kernels.Runs:
        rows = self._rows
        return self._runs._replace(words=rows.words, gone=rows.gone, held=rows.held)

    @property
    def nbytes(self) -> int:
        held = self._held()
        return self._rooms.nbytes + sum(each.nbytes for each in held[3:])

    def _check(self) -> None:
        """Pieces are in order, what is behind them is, heaps hold what they say."""
        words, gone, used = self._rows.words, self._rows.gone, int(self._runs.used[0])
        slots, runs = self._runs.slots[:used], self._runs.runs[:used]
        held = np.bincount(slots[slots >= 0], minlength=len(gone))
        assert held.tolist() == self._rows.held.tolist()
        for run in np.flatnonzero(self._runs.counts).tolist():
            start, count = int(self._runs.starts[run]), int(self._runs.counts[run])
            assert count <= self._rooms[run]
            piece = self._runs.firsts[start : start + count]
            assert not gone[piece].any()
            rows = list(map(tuple, words[piece].tolist()))
            assert all(one < other for one, other in pairwise(rows))
            behind = slots[(runs == run) & (slots >= 0)]
            behind = behind[~gone[behind]]
            assert count >= self._bounds.most or self._runs.roots[run] < 0
            assert all(rows[-1] < tuple(row) for row in words[behind].tolist())


def _no_runs(rows: RowStore) -> kernels.Runs:
    starts, told, used = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(1, np.int64)
    counts, roots, firsts, slots, runs, child, sibling = (np.zeros(0, np.int32) for _ in range(7))
    store = rows.words, rows.gone, rows.held
    return kernels.Runs(*store, starts, counts, roots, firsts, told, slots, runs, child, sibling, used)


def _counted(runs: Int32Array, width: int) -> tuple[Int64Array, Int64Array]:
    """(runs that are there, how often)."""
    if 4 * len(runs) < width:
        found, counts = np.unique(runs, return_counts=True)
        return found.astype(np.int64), counts
    counts = np.bincount(runs, minlength=width)
    there = np.flatnonzero(counts)
    return there, counts[there]


def _records(room: int) -> RankVersions:
    slots, runs = np.empty(room, np.int32), np.empty(room, np.int32)
    return RankVersions(slots, runs, *(np.empty(room, np.int64) for _ in range(3)))

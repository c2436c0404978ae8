"""One way to candidates: the selective predicates that are reached through one attribute.

*Points*: every key that a predicate names has a run of entries, found by hashing. *Ranges*: the domain
is cut into ranges of about as many constants each, and an interval has an entry in each range it touches;
it is tested again at the entry. Entries change in place, since only the owner of the Query SteM reads them;
room that they leave is swept when most is empty.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels import candidates
from engine.kernels.candidates import EMPTY
from engine.model.batch import Int32Array, Int64Array
from engine.stems.batch_keys import BatchKeys
from engine.stems.cuts import Cuts
from engine.stems.domain import KEY_MAX, KEY_MIN
from engine.stems.region_store import RegionStore

RANGES_MAX = 4_096
SPREAD_MAX = 4
"""An interval touches this many ranges on average, or the ranges are made wider."""


class AccessPath:
    """Points or ranges of an attribute. Predicates' regions are in the store, the way in marked there."""

    def __init__(self, index: int, points: bool, store: RegionStore) -> None:
        self.index = index
        self.points = points
        self.members = 0
        self._store = store
        self._clear(_NO_KEYS)

    def _clear(self, bounds: Int64Array) -> None:
        self.entries = 0
        self._bounds = Cuts(self.index, bounds)
        self._table_keys = np.zeros(64, np.int64)
        self._table_runs = np.full(64, EMPTY, np.int32)
        self._runs = 0 if self.points else self._bounds.pieces
        room = max(64, self._runs)
        self._start = np.zeros(room, np.int32)
        self._count = np.zeros(room, np.int32)
        self._room = np.zeros(room, np.int32)
        self._pool = _Pool(64)
        self._used = 0
        self._made_for = 0

    # --- changes ----------------------------------------------------------------------------------

    def add(self, slots: Int64Array) -> None:
        """Predicates that are reached this way (among others). O(their entries), amortised."""
        self.members += len(slots)
        found = self._entries(slots)
        if not self.points and self.entries + len(found.slot) > 2 * self._made_for:
            self.rebuild(np.concatenate([self.slots(), slots]))
        else:
            self._put(found)

    def slots(self) -> Int64Array:
        """All of them, ascending. O(entries)."""
        counts = self._count[: self._runs].astype(np.int64)
        first = np.cumsum(counts) - counts
        where = np.repeat(self._start[: self._runs] - first, counts) + np.arange(int(counts.sum()))
        return np.unique(self._pool.slot[where]).astype(np.int64)

    def drop(self, slot: int) -> None:
        """A predicate goes, while the store has it still. O(entries in its runs)."""
        self.members -= 1
        found = self._entries(np.array([slot], np.int64))
        runs, _ = self._runs_of(found)
        removed = candidates.remove_entries(
            np.unique(runs), slot, self._start, self._count, *self._pool.columns
        )
        self.entries -= removed
        hollow = self._used > 1_024 and self._used > 4 * self.entries
        unused = self.points and self._runs > 1_024 and self._runs > 4 * self.entries
        if hollow or unused:
            self.rebuild(self.slots())

    def _entries(self, slots: Int64Array) -> _Found:
        store, rows = self._store, self._store.rows
        room = int(store.count[slots].sum())
        found = _Found(room)
        made = candidates.entries_of(
            slots,
            store.start,
            store.count,
            rows.attribute,
            rows.term,
            rows.flags,
            rows.low,
            rows.last,
            self.index,
            self.points,
            found.first,
            found.last,
            *found.pool.columns,
        )
        return found.head(made)

    def _runs_of(self, found: _Found) -> tuple[Int32Array, Int64Array | None]:
        """The run of each entry, and which entry, where one has several."""
        if self.points:
            runs = np.empty(len(found.slot), np.int32)
            candidates.find_runs(found.first, self._table_keys, self._table_runs, runs)
            return runs, None
        starts = self._bounds.starts
        first = np.searchsorted(starts, found.first, "right").astype(np.int64)
        after = np.searchsorted(starts, found.last, "right").astype(np.int64) + 1
        size = int((after - first).sum())
        runs, entry = np.empty(size, np.int32), np.empty(size, np.int64)
        candidates.spread_over_ranges(first, after, runs, entry)
        return runs, entry

    def _put(self, found: _Found) -> None:
        if self.points:
            self._name(found.first)
        runs, entry = self._runs_of(found)
        pool = found.pool if entry is None else found.pool.take(entry)
        coming = np.zeros(len(self._start), np.int32)
        wanted = candidates.room_wanted(runs, self._count, self._room, coming)
        self._pool.make_room(self._used, self._used + wanted)
        self._used = candidates.add_entries(
            runs,
            *pool.columns,
            coming,
            self._start,
            self._count,
            self._room,
            *self._pool.columns,
            self._used,
        )
        self.entries += len(runs)

    def _name(self, keys: Int64Array) -> None:
        """Give keys runs."""
        keys = np.unique(keys)
        if 2 * (self._runs + len(keys)) > len(self._table_keys):
            held = self._table_runs != EMPTY
            old_keys, old_runs = self._table_keys[held], self._table_runs[held]
            size = 1 << (4 * (self._runs + len(keys))).bit_length() - 1
            self._table_keys = np.zeros(max(64, size), np.int64)
            self._table_runs = np.full(max(64, size), EMPTY, np.int32)
            order = np.argsort(old_runs)  # so that they get the runs they had
            candidates.name_runs(old_keys[order], self._table_keys, self._table_runs, 0, old_runs)
        out = np.empty(len(keys), np.int32)
        self._runs = candidates.name_runs(keys, self._table_keys, self._table_runs, self._runs, out)
        if self._runs > len(self._start):
            more = max(self._runs, 2 * len(self._start)) - len(self._start)
            self._start = np.concatenate([self._start, np.zeros(more, np.int32)])
            self._count = np.concatenate([self._count, np.zeros(more, np.int32)])
            self._room = np.concatenate([self._room, np.zeros(more, np.int32)])

    def rebuild(self, slots: Int64Array) -> None:
        """The entries of these anew, close together, ranges of today's constants. O(entries log entries)."""
        found = self._entries(slots)
        self._clear(_NO_KEYS if self.points else _bounds(found.first, found.last))
        self._put(found)
        self._made_for = max(64, self.entries)

    # --- rows -------------------------------------------------------------------------------------

    def runs(self, batch: BatchKeys) -> tuple[Int32Array, int]:
        """The run of each row, EMPTY for none, and how many candidates that makes."""
        out = np.empty(batch.n, np.int32)
        if self.points:
            candidates.find_runs(batch.keys(self.index), self._table_keys, self._table_runs, out)
        else:
            out[:] = self._bounds.codes(batch)
        valid = batch.valid(self.index)
        if valid is not None:
            out[~valid] = EMPTY
        return out, candidates.count_candidates(out, self._count)

    def accepted(
        self,
        runs: Int32Array,
        keys: Int64Array,
        null: npt.NDArray[np.bool_],
        has_null: npt.NDArray[np.bool_],
        out_row: npt.NDArray[np.uint16],
        out_slot: Int32Array,
    ) -> int:
        """Write the pairs that hold; see :func:`engine.kernels.candidates.accepted`."""
        store, rows = self._store, self._store.rows
        return int(
            candidates.accepted(
                runs,
                self._start,
                self._count,
                *self._pool.columns,
                keys,
                null,
                has_null,
                store.start,
                store.count,
                rows.attribute,
                rows.term,
                rows.flags,
                rows.low,
                rows.last,
                out_row,
                out_slot,
            )
        )

    @property
    def ways(self) -> int:
        """Distinct keys, or ranges."""
        return self._runs

    def candidates_a_row(self, slot: int) -> float:
        """Entries in the runs of a predicate, on average: what a row that reaches it is tested for."""
        runs, _ = self._runs_of(self._entries(np.array([slot], np.int64)))
        return float(self._count[runs].mean()) if len(runs) else 0.0

    def nbytes(self) -> int:
        """Of all arrays."""
        arrays = (self._table_keys, self._table_runs, self._start, self._count, self._room)
        return sum(a.nbytes for a in (*arrays, *self._pool.columns))

    def _check(self) -> None:
        found = self._entries(self.slots())
        assert self.members == len(self.slots())
        runs, entry = self._runs_of(found)
        assert (runs >= 0).all()
        assert len(runs) == self.entries == int(self._count[: self._runs].sum())
        slots = found.slot if entry is None else found.slot[entry]
        held: list[tuple[int, int]] = []
        for run in range(self._runs):
            begin = int(self._start[run])
            assert self._count[run] <= self._room[run]
            held.extend((run, int(s)) for s in self._pool.slot[begin : begin + self._count[run]])
        assert sorted(held) == sorted(zip(runs.tolist(), slots.tolist(), strict=True))
        assert int(self._room[: self._runs].sum()) <= self._used <= len(self._pool.slot)


_NO_KEYS = np.zeros(0, np.int64)


def _bounds(first: Int64Array, last: Int64Array) -> Int64Array:
    """Where to cut a domain so that intervals touch few ranges each and ranges hold few."""
    ends = np.unique(np.concatenate([first[first > KEY_MIN], last[last < KEY_MAX] + 1]))
    ranges = min(RANGES_MAX, len(ends) + 1)
    while True:
        bounds = np.unique(ends[np.arange(1, ranges) * len(ends) // ranges]) if ranges > 1 else ends[:0]
        touched = np.searchsorted(bounds, last, "right") - np.searchsorted(bounds, first, "right") + 1
        if ranges == 1 or touched.sum() <= SPREAD_MAX * max(1, len(first)):
            return bounds
        ranges >>= 1


class _Pool:
    """Columns of entries."""

    def __init__(self, room: int) -> None:
        self.slot = np.empty(room, np.int32)
        self.attribute = np.empty(room, np.int16)
        self.low = np.empty(room, np.int64)
        self.last = np.empty(room, np.int64)
        self.flags = np.empty(room, np.uint8)

    @property
    def columns(
        self,
    ) -> tuple[Int32Array, npt.NDArray[np.int16], Int64Array, Int64Array, npt.NDArray[np.uint8]]:
        return self.slot, self.attribute, self.low, self.last, self.flags

    def take(self, which: Int64Array | slice) -> _Pool:
        taken = _Pool(0)
        taken.slot, taken.attribute = self.slot[which], self.attribute[which]
        taken.low, taken.last, taken.flags = self.low[which], self.last[which], self.flags[which]
        return taken

    def make_room(self, used: int, wanted: int) -> None:
        if wanted <= len(self.slot):
            return
        wider = _Pool(max(wanted, used + (used >> 1)))
        wider.slot[:used], wider.attribute[:used] = self.slot[:used], self.attribute[:used]
        wider.low[:used], wider.last[:used] = self.low[:used], self.last[:used]
        wider.flags[:used] = self.flags[:used]
        self.slot, self.attribute, self.low, self.last, self.flags = wider.columns


class _Found:
    """Entries and the keys from ``first`` to ``last`` they are found by."""

    def __init__(self, room: int) -> None:
        self.first = np.empty(room, np.int64)
        self.last = np.empty(room, np.int64)
        self.pool = _Pool(room)

    @property
    def slot(self) -> Int32Array:
        return self.pool.slot

    def head(self, made: int) -> _Found:
        self.first, self.last = self.first[:made], self.last[:made]
        self.pool = self.pool.take(slice(0, made))
        return self

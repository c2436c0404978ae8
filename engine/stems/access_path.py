"""One way to candidates: the selective predicates that are reached through one attribute.

*Points*: every key that a predicate names has a run of entries, found by hashing. *Ranges*: the domain
is cut into ranges of about as many constants each, and an interval has an entry in each range it touches;
it is tested again at the entry. Entries change in place, since only the owner of the Query SteM reads them;
room that they leave is swept when most is empty.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.domains.batch_keys import BatchKeys
from engine.domains.domain import KEY_MAX, KEY_MIN
from engine.kernels import candidates
from engine.kernels.candidates import EMPTY, ENTRY, NAMED, RUN, RowKeys
from engine.model.batch import Int32Array, Int64Array
from engine.stems.cuts import Cuts
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
        self._table = _table(64)
        self._count = 0 if self.points else self._bounds.pieces
        self._runs = np.zeros(max(64, self._count), RUN)
        self._pool = np.empty(64, ENTRY)
        self._used = 0
        self._made_for = 0

    # --- changes ----------------------------------------------------------------------------------

    def add(self, slots: Int64Array) -> None:
        """Predicates that are reached this way (among others). O(their entries), amortised."""
        self.members += len(slots)
        found = self._entries(slots)
        if not self.points and self.entries + len(found.entries) > 2 * self._made_for:
            self.rebuild(np.concatenate([self.slots(), slots]))
        else:
            self._put(found)

    def slots(self) -> Int64Array:
        """All slots, ascending. O(entries)."""
        counts = self._runs["count"][: self._count].astype(np.int64)
        first = np.cumsum(counts) - counts
        where = np.repeat(self._runs["start"][: self._count] - first, counts) + np.arange(int(counts.sum()))
        return np.unique(self._pool["slot"][where]).astype(np.int64)

    def drop(self, slot: int) -> None:
        """A predicate goes, while the store has it still. O(entries in its runs)."""
        self.members -= 1
        runs, _ = self._runs_of(self._entries(np.array([slot], np.int64)))
        removed = candidates.remove_entries(np.unique(runs), slot, self._runs, self._pool)
        self.entries -= removed
        hollow = self._used > 1_024 and self._used > 4 * self.entries
        unused = self.points and self._count > 1_024 and self._count > 4 * self.entries
        if hollow or unused:
            self.rebuild(self.slots())

    def _entries(self, slots: Int64Array) -> _Found:
        room = int(self._store.count[slots].sum())
        first, last, entries = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, ENTRY)
        made = candidates.entries_of(
            slots, self._store.regions, self.index, self.points, first, last, entries
        )
        return _Found(first[:made], last[:made], entries[:made])

    def _runs_of(self, found: _Found) -> tuple[Int32Array, Int64Array | None]:
        """The run of each entry, and which entry, where one has several."""
        if self.points:
            runs = np.empty(len(found.entries), np.int32)
            candidates.find_runs(found.first, self._table, runs)
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
        entries = found.entries if entry is None else found.entries[entry]
        order = np.lexsort((entries["low"], runs))
        runs, entries = runs[order], entries[order]
        self._make_room(self._used + candidates.room_wanted(runs, self._runs))
        self._used = candidates.add_entries(runs, entries, self._runs, self._pool, self._used)
        self.entries += len(runs)

    def _make_room(self, wanted: int) -> None:
        if wanted > len(self._pool):
            wider = np.empty(max(wanted, self._used + (self._used >> 1)), ENTRY)
            wider[: self._used] = self._pool[: self._used]
            self._pool = wider

    def _name(self, keys: Int64Array) -> None:
        """Give keys runs."""
        keys = np.unique(keys)
        if 2 * (self._count + len(keys)) > len(self._table):
            held = self._table[self._table["run"] != EMPTY]
            held = held[np.argsort(held["run"])]  # so that they get the runs they had
            size = 1 << (4 * (self._count + len(keys))).bit_length() - 1
            self._table = _table(max(64, size))
            candidates.name_runs(held["key"].copy(), self._table, 0, np.empty(len(held), np.int32))
        out = np.empty(len(keys), np.int32)
        self._count = candidates.name_runs(keys, self._table, self._count, out)
        if self._count > len(self._runs):
            wider = np.zeros(max(self._count, 2 * len(self._runs)), RUN)
            wider[: len(self._runs)] = self._runs
            self._runs = wider

    def rebuild(self, slots: Int64Array) -> None:
        """The entries of these anew, close together, ranges of today's constants. O(entries log entries)."""
        found = self._entries(slots)
        self._clear(_NO_KEYS if self.points else _bounds(found.first, found.last))
        self._put(found)
        self._made_for = max(64, self.entries)

    # --- rows -------------------------------------------------------------------------------------

    def candidates(self, batch: BatchKeys, rows: RowKeys) -> tuple[Int32Array, int]:
        """The run of each row, EMPTY where it has nothing for it, and how many candidates that makes."""
        out = np.empty(batch.n, np.int32)
        if self.points:
            candidates.find_runs(batch.keys(self.index), self._table, out)
        else:
            out[:] = self._bounds.codes(batch)
        valid = batch.valid(self.index)
        if valid is not None:
            out[~valid] = EMPTY
        return out, candidates.within_bounds(out, self._runs, self._pool, rows)

    def accepted(
        self, runs: Int32Array, rows: RowKeys, out_row: npt.NDArray[np.uint16], out_slot: Int32Array
    ) -> int:
        """Write the pairs that hold; see :func:`engine.kernels.candidates.accepted`."""
        regions = self._store.regions
        return int(candidates.accepted(runs, self._runs, self._pool, rows, regions, out_row, out_slot))

    @property
    def ways(self) -> int:
        """Distinct keys, or ranges."""
        return self._count

    def candidates_a_row(self, slot: int) -> float:
        """Entries in the runs of a predicate, on average: what a row that reaches it is tested for."""
        runs, _ = self._runs_of(self._entries(np.array([slot], np.int64)))
        return float(self._runs["count"][runs].mean()) if len(runs) else 0.0

    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return self._table.nbytes + self._runs.nbytes + self._pool.nbytes

    def _check(self) -> None:
        found = self._entries(self.slots())
        assert self.members == len(self.slots())
        runs, entry = self._runs_of(found)
        assert (runs >= 0).all()
        table = self._runs[: self._count]
        assert len(runs) == self.entries == int(table["count"].sum())
        entries = found.entries if entry is None else found.entries[entry]
        held: list[tuple[int, int]] = []
        for number, run in enumerate(table):
            assert run["count"] <= run["room"]
            mine = self._pool[run["start"] : run["start"] + run["count"]]
            held.extend((number, int(s)) for s in mine["slot"])
            assert (np.diff(mine["low"].astype(object)) >= 0).all()
            if len(mine) and run["attribute"] >= 0:
                assert (mine["attribute"] == run["attribute"]).all()
                assert (run["low"], run["last"]) == (mine["low"].min(), mine["last"].max())
        assert sorted(held) == sorted(zip(runs.tolist(), entries["slot"].tolist(), strict=True))
        assert int(table["room"].sum()) <= self._used <= len(self._pool)


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


def _table(size: int) -> candidates.Records:
    """A hash table with nothing in it."""
    table = np.zeros(size, NAMED)
    table["run"] = EMPTY
    return table


@dataclass(frozen=True, slots=True)
class _Found:
    """entries: ENTRY. first, last: int64, the keys that each is found by."""

    first: Int64Array
    last: Int64Array
    entries: candidates.Records

"""A promising set: entries (value, cell, priority), kept as columns, in the order in which they came.

An entry names its cell by a range of rows, so it stays valid when zones collapse, and advances through it
from the newest row to the oldest. Entries of one value that came together share a list of the rows that look
for partners. The set is bounded: where more come, the least promising ones are cut, and counted. An entry
goes when it has no row left, or when its rows, or all that look for them, left the windows.

Memory: 50 bytes an entry. Cost: O(1) an entry that comes; O(entries) now and then for those that go.

Source: Ali, Aref, ElTabakh, *Scalability via Summaries*, section 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from engine.kernels.promising import ProbingLists, VisitedEntries
from engine.language.preference import PreferenceOrder
from engine.model.batch import BoolArray, Int32Array, Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.promising import picking
from engine.promising.picking import Float64Array, Int8Array

ROOM_MIN = 1_024


@dataclass(slots=True)
class PromisingEntries:
    """n entries, each column of n."""

    # The place of the list of rows that look for partners.
    lists: Int32Array
    # The oldest row that it leads to, an ordinal of the probed input.
    first: Int64Array
    # The next row to visit.
    cursor: Int64Array
    # How many rows it led to at first.
    rows: Int32Array
    # How many of them are to be visited.
    left: Int32Array
    # How many of its rows are estimated to be partners of each row of its list.
    estimate: Int32Array
    # PROMISING, EMPTY, UNRANKED or PRUNED.
    rank: Int8Array
    # Before fading.
    priority: Float64Array

    def __len__(self) -> int:
        return len(self.lists)

    @classmethod
    def joined(cls, parts: Sequence[PromisingEntries]) -> PromisingEntries:
        """The entries of all parts, at least one, one part after another."""
        return cls(*(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(cls)))

    @classmethod
    def none(cls) -> PromisingEntries:
        """No entries."""
        return cls(
            np.empty(0, np.int32),
            np.empty(0, np.int64),
            np.empty(0, np.int64),
            np.empty(0, np.int32),
            np.empty(0, np.int32),
            np.empty(0, np.int32),
            np.empty(0, np.int8),
            np.empty(0, np.float64),
        )

    def copy(self) -> PromisingEntries:
        """A copy in arrays of its own."""
        return PromisingEntries(*(getattr(self, each.name).copy() for each in fields(self)))

    def take(self, places: Int64Array | BoolArray | slice) -> PromisingEntries:
        """Some of them, in that order."""
        return PromisingEntries(*(getattr(self, each.name)[places] for each in fields(self)))


class _Appended:
    """An array of int64 that numbers are appended to; what was read of it does not change."""

    __slots__ = ("_array", "_count", "_room_min")

    def __init__(self, numbers: Int64Array, capacities: Capacities) -> None:
        self._room_min = capacities.first(ROOM_MIN)
        self._array = numbers
        self._count = len(numbers)

    def append(self, numbers: Int64Array) -> None:
        """O(numbers), amortised."""
        stop = self._count + len(numbers)
        if stop > len(self._array):
            array = np.empty(max(self._room_min, 2 * stop), np.int64)
            array[: self._count] = self.held
            self._array = array
        self._array[self._count : stop] = numbers
        self._count = stop

    @property
    def held(self) -> Int64Array:
        """Without a copy."""
        held: Int64Array = self._array[: self._count]
        return held

    @property
    def nbytes(self) -> int:
        return self._array.nbytes


class PromisingSet:
    """Entries over the rows of one probed input, and the lists of the other's rows."""

    def __init__(self, capacities: Capacities = USUAL) -> None:
        self._capacities = capacities
        self._room_min = capacities.first(ROOM_MIN)
        self._held = PromisingEntries.none()
        self._count = 0
        self._list_starts = _Appended(np.empty(0, np.int64), capacities)
        self._list_counts = _Appended(np.empty(0, np.int64), capacities)
        self._list_codes = _Appended(np.empty(0, np.int64), capacities)
        self._list_rows = _Appended(np.empty(0, np.int64), capacities)

    def __len__(self) -> int:
        return self._count

    @property
    def entries(self) -> PromisingEntries:
        """The entries that are held, without a copy: finished ones until :meth:`sweep`."""
        return self._held.take(slice(0, self._count))

    def visited_entries(self) -> VisitedEntries:
        """As the kernel advances them, in place."""
        held = self.entries
        return VisitedEntries(held.lists, held.first, held.cursor, held.left)

    def lists(self) -> ProbingLists:
        """The rows that look for partners."""
        return ProbingLists(
            self._list_starts.held, self._list_counts.held, self._list_codes.held, self._list_rows.held
        )

    def newest_probing(self) -> Int64Array:
        """int64[entries]: the newest row of each entry's list."""
        lists = self.lists()
        newest: Int64Array = lists.rows[(lists.starts + lists.counts - 1)[self.entries.lists]]
        return newest

    def costs(self, entries: PromisingEntries | None = None) -> Int64Array:
        """int64[entries]: units of a visit, one for each row of the list; None: of those that are held."""
        held = self.entries if entries is None else entries
        costs: Int64Array = self._list_counts.held[held.lists]
        return costs

    def units_left(self) -> int:
        """Units that all visits would take."""
        return int((self.entries.left * self.costs()).sum())

    def estimate_left(self, among: BoolArray | None = None, stored: int = 0, probing: int = 0) -> float:
        """How many pairs of rows at or above these ordinals these entries, bool[entries], are estimated to
        lead to; None: all that are not finished; so it is the same to the bit whether these were swept. Of
        the rows of an entry those between its first and its next one are held to be evenly spread.
        """
        held, lists = self.entries, self.lists()
        places = np.flatnonzero(held.left > 0 if among is None else among)
        counted = np.append(0, np.cumsum(lists.rows >= probing))
        looking = counted[lists.starts + lists.counts] - counted[lists.starts]
        first, end = held.first[places], held.cursor[places] + 1
        within = np.maximum(end - np.maximum(first, stored), 0) / np.maximum(end - first, 1)
        share = held.left[places] / held.rows[places] * within
        return float((share * held.estimate[places] * looking[held.lists[places]]).sum())

    def add_lists(self, counts: Int64Array, codes: Int64Array, rows: Int64Array) -> int:
        """Lists come; returns the place of the first. rows: of all of them, one after another."""
        begin = len(self._list_counts.held)
        self._list_starts.append(len(self._list_rows.held) + np.cumsum(counts) - counts)
        self._list_counts.append(counts)
        self._list_codes.append(codes)
        self._list_rows.append(rows)
        return begin

    def add(self, coming: PromisingEntries) -> None:
        """Entries come behind those that are held."""
        stop = self._count + len(coming)
        if stop > len(self._held):
            room = max(self._room_min, 2 * stop)
            for each in fields(PromisingEntries):
                before = getattr(self._held, each.name)
                array = np.empty(room, before.dtype)
                array[: self._count] = before[: self._count]
                setattr(self._held, each.name, array)
        for each in fields(PromisingEntries):
            getattr(self._held, each.name)[self._count : stop] = getattr(coming, each.name)
        self._count = stop

    def keep(self, kept: BoolArray) -> None:
        """Let go of the other entries, and of lists that no entry has. O(entries + rows of lists)."""
        held = self.entries.take(kept)
        lists = self.lists()
        used = np.zeros(len(lists.counts), np.bool_)
        used[held.lists] = True
        if 2 * np.count_nonzero(used) <= len(used):
            numbers = np.cumsum(used) - 1
            held.lists = numbers[held.lists].astype(np.int32)
            self._set_lists(lists.counts[used], lists.codes[used], lists.rows[np.repeat(used, lists.counts)])
        self._held, self._count = held, len(held)

    def sweep(self, *, always: bool = False) -> bool:
        """Let go of finished entries, where they are many. Returns whether any went."""
        left = self.entries.left
        alive = np.count_nonzero(left)
        if alive == len(left) or (not always and 4 * alive >= 3 * len(left)):
            return False
        self.keep(left > 0)
        return True

    def open(self, stored: int, probing: int) -> BoolArray:
        """bool[entries]: which may lead to pairs of rows at or above these ordinals."""
        held = self.entries
        return (self.newest_probing() >= probing) & (held.left > 0) & (held.cursor >= stored)

    def restore(self, entries: PromisingEntries, counts: Int64Array, rows: Int64Array) -> None:
        """As it was saved: entries, how long their lists are, and these, which are copied. The keys of the
        lists are told by :meth:`recode`.
        """
        self._held, self._count = entries.copy(), len(entries)
        self._set_lists(counts.copy(), np.zeros(len(counts), np.int64), rows.copy())

    def _set_lists(self, counts: Int64Array, codes: Int64Array, rows: Int64Array) -> None:
        self._list_starts = _Appended(np.cumsum(counts) - counts, self._capacities)
        self._list_counts = _Appended(counts, self._capacities)
        self._list_codes = _Appended(codes, self._capacities)
        self._list_rows = _Appended(rows, self._capacities)

    def recode(self, codes: Int64Array) -> None:
        """The keys of the lists have these numbers from now on."""
        self._list_codes = _Appended(codes, self._capacities)

    @property
    def nbytes(self) -> int:
        entries = sum(getattr(self._held, each.name).nbytes for each in fields(PromisingEntries))
        return int(entries + 3 * self._list_counts.nbytes + self._list_rows.nbytes)

    def _check(self) -> None:
        held = self.entries
        assert (held.left >= 0).all()
        assert (held.left <= held.rows).all()
        assert ((held.left > 0) == (held.cursor >= held.first)).all()
        counts = self._list_counts.held
        assert (held.lists < len(counts)).all()
        assert (counts > 0).all()
        assert int(counts.sum()) == len(self._list_rows.held)


def least_promising(
    order: PreferenceOrder, entries: PromisingEntries, priority: Float64Array, count: int
) -> BoolArray:
    """bool[n]: the ``count`` entries that would be visited last; of equals the older ones.

    priority: faded.
    """
    cut = np.zeros(len(entries), np.bool_)
    if order == "asc":
        key = -priority
    elif order == "desc":
        key = priority
    else:
        key = priority * entries.left / np.maximum(entries.rows, 1)
    key = np.where(entries.rank >= picking.UNRANKED, 0.0, key)
    places = np.lexsort((key, -entries.rank))
    cut[places[:count]] = True
    return cut

"""The kept matches of one segment: bits for the dense cohort, row lists for the selective one.

Readers need no lock. What they may ask for does not change under them: the owner writes only bits and lists
of slots that just came, and who reads a slot checks its generation afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from engine.kernels import join_lineage
from engine.kernels.bitmaps import Words
from engine.model.batch import BoolArray, Int32Array, Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.store.matches.cohorts import SELECTIVE, Cohorts
from engine.store.matches.segment_bits import NamedPlaces, SegmentBits
from engine.store.matches.slot_lists import RowNumbers, SlotLists, lists_of, merged

RUNS_MAX = 4
"""More lots of late lists than this are made one."""

PAIRS_MIN = 1_024
UNLISTED_MIN = 4_096
"""So many pairs of a log are looked through for a slot before they are listed by slot."""

LATER = 1 << 16
"""Above all rows of a segment."""

NO_LISTS = SlotLists(np.zeros(0, np.int32), np.zeros(1, np.int32), np.zeros(0, np.uint16), 0)


class PairLog:
    """Pairs (row, slot) of the open segment, rows ascending; append-only. Arrays grow by being replaced.

    by_slot: the first pairs as lists, for readers, who make longer ones when many have come since.
    """

    __slots__ = ("by_slot", "count", "rows", "slots")

    def __init__(self, capacities: Capacities = USUAL) -> None:
        room = capacities.first(PAIRS_MIN)
        self.rows: RowNumbers = np.empty(room, np.uint16)
        self.slots: Int32Array = np.empty(room, np.int32)
        self.count = 0
        self.by_slot = ListedPairs()

    def append(self, rows: RowNumbers, slots: Int32Array, first: int) -> None:
        """rows: counted from ``first``."""
        end = self.count + len(rows)
        if end > len(self.rows):
            room = max(end, 2 * len(self.rows))
            self.rows = np.concatenate([self.rows[: self.count], np.empty(room - self.count, np.uint16)])
            self.slots = np.concatenate([self.slots[: self.count], np.empty(room - self.count, np.int32)])
        np.add(rows, np.uint16(first), out=self.rows[self.count : end])
        self.slots[self.count : end] = slots
        self.count = end

    def so_far(self) -> tuple[RowNumbers, Int32Array]:
        """What readers may see now."""
        return self.rows[: self.count], self.slots[: self.count]


class ListedPairs:
    """The first pairs of a log by slot, as many as were listed so far. Any reader may list more."""

    __slots__ = ("_made",)

    def __init__(self) -> None:
        self._made: tuple[SlotLists, int] = (NO_LISTS, 0)

    def rows_of(
        self, rows: RowNumbers, slots: Int32Array, known: int, slot: int, first: int, last: int
    ) -> Int64Array:
        """Rows first <= r < last of a slot in a log. known: how many slots there are.

        O(log slots + matches + pairs that are not listed), of which there are few.
        """
        lists, listed = self._made
        if len(rows) - listed > max(UNLISTED_MIN, listed >> 2, known >> 5):
            lists, listed = lists_of(rows, slots, None, 0), len(rows)
            self._made = lists, listed
        mine = lists.find(slot)
        rest, owners = rows[listed:], slots[listed:]
        low, high = place_of(rest, first), place_of(rest, last)
        found = rest[low + np.flatnonzero(owners[low:high] == slot)]
        if mine is not None:
            found = np.concatenate([mine[place_of(mine, first) : place_of(mine, last)], found])
        return found.astype(np.int64)


class PartMatches:
    """Keeps the matches of one segment. bits: those of the dense cohort. lists: lots of row lists, the newest
    last.

    log: of an open segment, pairs (rows, slots) that follow the lists; by_slot: some of them by slot. owed:
    slots that came after the rows were sealed and whose matches are still to be made; whoever asks for one
    evaluates its predicate.
    """

    __slots__ = ("__weakref__", "bits", "by_slot", "cohorts", "lists", "log", "owed")

    def __init__(
        self,
        cohorts: Cohorts,
        bits: SegmentBits,
        lists: tuple[SlotLists, ...],
        log: PairLog | None = None,
        owed: Iterable[int] = (),
    ) -> None:
        self.cohorts = cohorts
        self.bits = bits
        self.lists = lists
        self.log = None if log is None else log.so_far()
        self.by_slot = None if log is None else log.by_slot
        self.owed = set(owed)

    def rows_of(self, slot: int, first: int, last: int) -> Int64Array:
        """Places first <= r < last that the slot's predicate accepts, ascending.

        Dense: O(last - first); lists and the log of an open segment: O(log slots + matches).
        """
        place = self.cohorts.of(slot)
        if place != SELECTIVE:
            return self.bits.rows_of(place, first, last)
        listed, upto = self._listed(slot)
        rows = listed[place_of(listed, first) : place_of(listed, last)].astype(np.int64)
        if self.log is None or self.by_slot is None:
            return rows
        known = len(self.cohorts.place)
        later = self.by_slot.rows_of(*self.log, known, slot, max(first, upto), last)
        return np.concatenate([rows, later]) if len(rows) else later

    def count_of(self, slot: int, first: int, last: int) -> int:
        """How many of them."""
        place = self.cohorts.of(slot)
        if place != SELECTIVE:
            return self.bits.count_of(place, first, last)
        return len(self.rows_of(slot, first, last))

    def mark(self, wanted: NamedPlaces, marks: Words, first: int, out: Words) -> None:
        """out[i] takes the marks of the slots that accept row first + i: those of dense ones are ``wanted``,
        as these cohorts place them. marks: uint64[slots], 0 of those that nobody asks for. What is owed is
        left out. O(rows * words + matches of selective slots).
        """
        self.bits.mark(wanted, marks, first, out)
        upto = np.zeros(len(marks), np.int64)
        for lists in reversed(self.lists):
            rows, slots = lists.pairs()
            join_lineage.mark_pairs(rows, slots, np.where(upto > 0, LATER, 0), marks, first, out)
            mine = lists.slots[lists.slots < len(marks)]
            upto[mine[upto[mine] == 0]] = lists.upto
        if self.log is not None:
            rows, slots = self.log
            low, high = place_of(rows, first), place_of(rows, first + len(out))
            join_lineage.mark_pairs(rows[low:high], slots[low:high], upto, marks, first, out)

    def _listed(self, slot: int) -> tuple[RowNumbers, int]:
        """The slot's list, and up to which row it tells all."""
        for lists in reversed(self.lists):
            found = lists.find(slot)
            if found is not None:
                return found, lists.upto
        return np.zeros(0, np.uint16), 0

    # --- the owner's side -------------------------------------------------------------------------

    def made(self, slots: Iterable[int], lists: SlotLists, standing: BoolArray) -> PartMatches:
        """These slots are owed no more: their bits stand, and these are their lists. standing: by slot.

        Another object where lists of slots that no longer stand are let go, since views may read them still;
        to those the slots stay owed.
        """
        runs = with_late(self.lists, lists, standing, None)
        if len(runs) < len(self.lists):
            return PartMatches(self.cohorts, self.bits, runs, owed=self.owed.difference(slots))
        self.lists = runs
        self.owed.difference_update(slots)
        return self

    @property
    def nbytes(self) -> int:
        return self.bits.nbytes + sum(lists.nbytes for lists in self.lists)

    def _check(self, n: int) -> None:
        for lists in self.lists:
            lists._check()
            assert lists.upto <= n
        self.bits._check(n)


def with_late(
    lots: tuple[SlotLists, ...],
    lists: SlotLists,
    standing: BoolArray,
    log: tuple[RowNumbers, Int32Array] | None,
) -> tuple[SlotLists, ...]:
    """One lot more; when they are many they are made one, without slots that no longer stand."""
    if not len(lists.slots):
        return lots
    runs = (*lots, lists)
    return runs if len(runs) <= RUNS_MAX else (merged(runs, standing, log),)


def place_of(rows: RowNumbers, row: int) -> int:
    """The first place in ascending rows that is at or above a row."""
    return int(rows.searchsorted(np.uint16(row))) if row < 65_536 else len(rows)


def sealed_lists(lists: tuple[SlotLists, ...], log: PairLog, n: int) -> tuple[SlotLists, ...]:
    """Late lists and log of a segment of n rows as one lot."""
    rows, slots = log.so_far()
    if not len(rows) and not lists:
        return ()
    if lists:
        whole = merged(lists, None, (rows, slots))
        before, owners = whole.pairs()
        keep = ~np.isin(slots, whole.slots)
        rows = np.concatenate([before, rows[keep]])
        slots = np.concatenate([owners, slots[keep]])
    return (lists_of(rows, slots, None, n),)

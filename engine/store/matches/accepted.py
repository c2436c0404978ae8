"""Who accepts which rows: the kept matches of many slots over a range of rows of a segment, in one pass."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from engine.model.batch import BoolArray, Int32Array, Int64Array
from engine.model.runs import places_of
from engine.store.matches.cohorts import SELECTIVE, Cohorts
from engine.store.matches.part_matches import PartMatches, place_of
from engine.store.matches.segment_bits import NamedPlaces, near, those_of
from engine.store.matches.slot_lists import RowNumbers, SlotLists

FEW_SLOTS = 16
"""So many lists are looked up one by one."""

Pairs = tuple[Int64Array, Int32Array]
"""Places in the segment, and slots or their names."""


class Slots:
    """Slots that stand and are asked for together. ``slots``: each once, ascending; ``names``: what each is
    called, itself if nothing else; ``among``: bool by slot.
    """

    __slots__ = ("_by_row", "_dense", "among", "names", "slots")

    def __init__(self, slots: Int32Array, names: Int32Array | None = None) -> None:
        """names: int32[n], of slots that are given once each."""
        self.slots, first = np.unique(slots, return_index=True)
        self.names = self.slots if names is None else names[first]
        self.among: BoolArray = np.zeros(int(self.slots[-1]) + 1 if len(self.slots) else 0, np.bool_)
        self.among[self.slots] = True
        self._dense: WeakKeyDictionary[Cohorts, tuple[NamedPlaces, Int32Array]] = WeakKeyDictionary()
        self._by_row: WeakKeyDictionary[PartMatches, tuple[tuple[SlotLists, ...], RowNumbers, Int32Array]] = (
            WeakKeyDictionary()
        )

    def dense(self, cohorts: Cohorts) -> tuple[NamedPlaces, Int32Array]:
        """Those whose matches are bits, and those of which they are not. Made once."""
        known = self._dense.get(cohorts)
        if known is None:
            places = np.full(len(self.slots), SELECTIVE, np.int32)
            there = self.slots < len(cohorts.place)
            places[there] = cohorts.place[self.slots[there]]
            selective = self.slots[places == SELECTIVE]
            known = self._dense[cohorts] = NamedPlaces(places, self.names), selective
        return known

    def names_of(self, slots: Int32Array) -> Int32Array:
        """Returns the names of some of these slots, int32[n]."""
        return slots if self.names is self.slots else self.names[self.slots.searchsorted(slots)]

    def by_row(self, matches: PartMatches, selective: Int32Array) -> tuple[RowNumbers, Int32Array]:
        """(rows, slots) of a sealed segment, by row: those among ``selective``, ascending, which are all of
        these slots whose matches are lists there. Made once: O(matches).
        """
        known = self._by_row.get(matches)
        if known is None or known[0] is not matches.lists:
            rows, owners = _pairs(matches.lists, selective)
            order = np.argsort(rows, kind="stable")
            known = self._by_row[matches] = matches.lists, rows[order], owners[order]
        return known[1], known[2]


def _pairs(lots: tuple[SlotLists, ...], slots: Int32Array) -> tuple[RowNumbers, Int32Array]:
    """Rows and owners of these slots, which ascend; the newest lot that has a slot's list tells all of it."""
    rows, owners = [np.empty(0, np.uint16)], [np.empty(0, np.int32)]
    for lot in reversed(lots):
        if not len(lot.slots):
            continue
        places = np.minimum(lot.slots.searchsorted(slots), len(lot.slots) - 1)
        there = lot.slots[places] == slots
        starts = lot.starts[places[there]].astype(np.int64)
        counts = lot.starts[places[there] + 1] - starts
        rows.append(lot.rows[places_of(starts, counts)])
        owners.append(np.repeat(slots[there], counts))
        slots = slots[~there]
    return np.concatenate(rows), np.concatenate(owners)


def accepted(matches: PartMatches, slots: Slots, first: int, last: int) -> Pairs:
    """Every place and slot with first <= place < last where the slot's predicate accepts the row, the slot by
    its name; rows of a slot ascend.

    O(words * rows + pairs) for dense slots and O(pairs of the range) for selective ones; once for each sealed
    segment O(its pairs).
    """
    dense, selective = slots.dense(matches.cohorts)
    found = [matches.bits.pairs(dense, first, last)] if dense.count or not len(selective) else []
    if len(selective):
        of_lists = _of_lists(matches, slots, selective, first, last)
        found += [(rows, slots.names_of(owners)) for rows, owners in of_lists]
    if not found:
        return np.empty(0, np.int64), np.empty(0, np.int32)
    if len(found) == 1:
        return found[0]
    return np.concatenate([rows for rows, _ in found]), np.concatenate([owners for _, owners in found])


def accepted_of(matches: PartMatches, slots: Slots, rows: Int64Array) -> Pairs:
    """Finds the matches (:func:`accepted`) of some rows, which ascend. Matches have places in ``rows``
    instead of places in the segment, and come row by row where all slots are dense.

    O(rows * words + pairs) for dense slots; selective ones are looked up in ranges of rows near each other.
    """
    dense, selective = slots.dense(matches.cohorts)
    places, names = matches.bits.pairs_of_rows(dense, rows)
    if not len(selective):
        return places, names
    found = [(places, names)]
    for start, stop in near(rows):
        first, last = int(rows[start]), int(rows[stop - 1]) + 1
        for its, owners in _of_lists(matches, slots, selective, first, last):
            at, called = those_of(rows[start:stop], its, slots.names_of(owners))
            found.append((start + at, called))
    return np.concatenate([at for at, _ in found]), np.concatenate([called for _, called in found])


def accepted_at_most(matches: PartMatches, slots: Slots, rows: int) -> int:
    """No more pairs than this has a range of so many rows. O(slots)."""
    dense, selective = slots.dense(matches.cohorts)
    listed = 0 if matches.log is None else len(matches.log[0])
    for lot in matches.lists:
        places = np.flatnonzero(np.isin(lot.slots, selective))
        listed += int((lot.starts[places + 1] - lot.starts[places]).sum())
    return dense.count * rows + listed


def _of_lists(
    matches: PartMatches, slots: Slots, selective: Int32Array, first: int, last: int
) -> list[Pairs]:
    """Returns the matches of slots that are kept as lists. A slot that has a list is looked up there; the
    matches of the others are in the log.
    """
    if matches.log is None:
        if len(selective) > FEW_SLOTS:
            rows, owners = slots.by_row(matches, selective)
            low, high = place_of(rows, first), place_of(rows, last)
            return [(rows[low:high].astype(np.int64), owners[low:high])]
        listed = selective
    else:
        spoken_for = [lists.slots for lists in matches.lists]
        listed = np.intersect1d(selective, np.concatenate(spoken_for)) if spoken_for else selective[:0]
    found = []
    for slot in listed.tolist():
        its = matches.rows_of(slot, first, last)
        if len(its):
            found.append((its, np.full(len(its), slot, np.int32)))
    if matches.log is not None:
        logged, owners = matches.log
        low, high = place_of(logged, first), place_of(logged, last)
        logged, owners = logged[low:high], owners[low:high]
        wanted = slots.among
        inside = owners < len(wanted)
        kept = np.zeros(len(owners), np.bool_)
        kept[inside] = wanted[owners[inside]]
        for others in (listed, np.setdiff1d(slots.slots, selective)):
            if len(others) and kept.any():
                kept &= ~np.isin(owners, others)
        if kept.any():
            found.append((logged[kept].astype(np.int64), owners[kept]))
    return found

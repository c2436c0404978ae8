"""Who accepts which rows: the kept matches of many slots over a range of rows of a segment, in one pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from engine.model.batch import Int32Array, Int64Array
from engine.model.runs import places_of
from engine.store.matches.cohorts import SELECTIVE, Cohorts
from engine.store.matches.part_matches import PartMatches, place_of
from engine.store.matches.segment_bits import NamedPlaces, near, those_of
from engine.store.matches.slot_lists import RowNumbers, SlotLists

FEW_SLOTS = 16
"""So many lists of a sealed segment are looked up one by one."""
ROWS_MAX = 1 << 16
"""Above all places of a segment."""

Pairs = tuple[Int64Array, Int32Array]
"""Places in the segment, and slots or their names."""


class Slots:
    """Slots that stand and are asked for together. ``slots``: each once, ascending; ``names``: what each is
    called, itself if nothing else.
    """

    __slots__ = ("_dense", "_open", "_sealed", "names", "slots")

    def __init__(self, slots: Int32Array, names: Int32Array | None = None) -> None:
        """names: int32[n], of slots that are given once each."""
        self.slots, first = np.unique(slots, return_index=True)
        self.names = self.slots if names is None else names[first]
        self._dense: WeakKeyDictionary[Cohorts, tuple[NamedPlaces, Int32Array]] = WeakKeyDictionary()
        self._sealed: WeakKeyDictionary[PartMatches, Listed] = WeakKeyDictionary()
        self._open: Listed | None = None

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

    def listed(self, matches: PartMatches, selective: Int32Array) -> Listed:
        """What lists tell of a segment. selective: ascending, all of these slots whose matches are lists
        there. Made once for a sealed segment, for the open one when its lists change: O(matches).
        """
        known = self._open if matches.log is not None else self._sealed.get(matches)
        if known is None or known.lists is not matches.lists or known.cohorts is not matches.cohorts:
            known = _listed(matches, selective)
            if matches.log is None:
                self._sealed[matches] = known
            else:
                self._open = known
        return known


@dataclass(frozen=True, slots=True)
class Listed:
    """The lists of some slots, by row. log_from: int32 by slot, from which row on the matches of each are in
    the log of an open segment; beyond all rows of slots that have none there.
    """

    cohorts: Cohorts
    lists: tuple[SlotLists, ...]
    rows: RowNumbers
    owners: Int32Array
    log_from: Int32Array


def _listed(matches: PartMatches, selective: Int32Array) -> Listed:
    """The newest lot that has a slot's list tells all of it."""
    rows, owners = [np.empty(0, np.uint16)], [np.empty(0, np.int32)]
    log_from = np.full(int(selective[-1]) + 1 if len(selective) else 0, ROWS_MAX, np.int32)
    log_from[selective] = 0
    slots = selective
    for lot in reversed(matches.lists):
        if not len(lot.slots):
            continue
        places = np.minimum(lot.slots.searchsorted(slots), len(lot.slots) - 1)
        there = lot.slots[places] == slots
        starts = lot.starts[places[there]].astype(np.int64)
        counts = lot.starts[places[there] + 1] - starts
        rows.append(lot.rows[places_of(starts, counts)])
        owners.append(np.repeat(slots[there], counts))
        log_from[slots[there]] = lot.upto
        slots = slots[~there]
    all_rows = np.concatenate(rows)
    order = np.argsort(all_rows, kind="stable")
    return Listed(matches.cohorts, matches.lists, all_rows[order], np.concatenate(owners)[order], log_from)


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
    found = [(places, names), *listed_of(matches, slots, selective, rows)]
    return np.concatenate([at for at, _ in found]), np.concatenate([called for _, called in found])


def listed_of(matches: PartMatches, slots: Slots, selective: Int32Array, rows: Int64Array) -> Iterator[Pairs]:
    """Finds the matches of some rows, which ascend, that are kept as lists, as :func:`accepted_of` does.
    selective: those of the slots.
    """
    for start, stop in near(rows) if len(selective) else ():
        first, last = int(rows[start]), int(rows[stop - 1]) + 1
        for its, owners in _of_lists(matches, slots, selective, first, last):
            at, called = those_of(rows[start:stop], its, slots.names_of(owners))
            yield start + at, called


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
    """Returns the matches of slots that are kept as lists; in an open segment those of the log too."""
    if matches.log is None and len(selective) <= FEW_SLOTS:
        each = [(slot, matches.rows_of(slot, first, last)) for slot in selective.tolist()]
        return [(its, np.full(len(its), slot, np.int32)) for slot, its in each if len(its)]
    listed = slots.listed(matches, selective)
    low, high = place_of(listed.rows, first), place_of(listed.rows, last)
    found = [(listed.rows[low:high].astype(np.int64), listed.owners[low:high])]
    if matches.log is not None:
        rows, owners = matches.log
        low, high = place_of(rows, first), place_of(rows, last)
        rows, owners = rows[low:high], owners[low:high]
        known = np.flatnonzero(owners < len(listed.log_from))
        rows, owners = rows[known], owners[known]
        kept = rows >= listed.log_from[owners]
        found.append((rows[kept].astype(np.int64), owners[kept]))
    return found

"""Which of the two cohorts serves a slot: a bit for every row, or rows found by their keys.

It is decided by the share of rows that the best attribute lets through (:mod:`engine.stems.selectivity`), and
looked at again, some slots each time a segment is sealed. Segments keep the cohorts they were filled under,
so a place that a slot leaves is withheld until no segment is from before.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from engine.model.batch import BoolArray, Int64Array
from engine.stems.dense_filters import DenseFilters
from engine.stems.predicate_slots import PredicateSlots
from engine.stems.region_store import Intervals, RegionStore
from engine.stems.selective_index import SelectiveIndex
from engine.stems.selectivity import SHARE_MAX, AccessChoice, BatchSample
from engine.store.matches.cohorts import SELECTIVE, Cohorts

REVISED_SLOTS = 2_048
"""Slots whose cohort is looked at again at a time."""

REVISED_EVERY = 32
"""Segments between two looks, once all slots were seen with a good sample."""

PATH_MIN = 512
"""Fewer predicates than this are not worth a look-up for every row: as bits they cost it less."""

EPOCHS_MAX = 16
REVISION_GAIN = 4.0
SAMPLE_MIN = 512


class Placement:
    """``dense``, ``selective``: the two cohorts."""

    def __init__(
        self, slots: PredicateSlots, store: RegionStore, sample: BatchSample, attributes: int
    ) -> None:
        """attributes: how many rows may be reached by."""
        self._slots = slots
        self._store = store
        self._sample = sample
        self.dense = DenseFilters(store)
        self.selective = SelectiveIndex(attributes, store)
        self._epochs = [Cohorts(0, np.full(len(slots.holders), SELECTIVE, np.int32))]
        self._withheld: list[int] = []
        self._revised = 0
        self._unseen = 0
        self._waiting: Counter[tuple[int, bool]] = Counter()
        """By attribute, and whether by points: slots that wait for a path that is not there."""
        self._seals = 0

    @property
    def now(self) -> Cohorts:
        """Where matches of each slot are kept from now on."""
        return self._epochs[-1]

    def put(self, fresh: Int64Array, sizes: Int64Array, terms: Int64Array, rows: Intervals) -> None:
        """New slots, whose rows are in the store, get their cohort and their place. sizes, terms: int64[n],
        of each slot how many rows and terms it has.
        """
        choice = self._sample.choose(sizes, terms, rows)
        if len(self._sample) < SAMPLE_MIN:
            self._unseen = self._slots.used
        selective = self._worthwhile(choice.share <= SHARE_MAX, choice, sizes, rows)
        places = np.full(len(fresh), SELECTIVE, np.int32)
        for i in np.flatnonzero(~selective).tolist():
            places[i] = self.dense.add(int(fresh[i]))
        for cohorts in self._epochs:
            cohorts.make_room(self._slots.used)
            cohorts.place[fresh] = places
        if selective.any():
            self._reach(fresh[selective], choice, np.repeat(selective, sizes))
        self.dense.compile_full()

    def _reach(self, slots: Int64Array, choice: AccessChoice, mine: BoolArray) -> None:
        """mine: which rows of the choice are these slots'."""
        self._store.mark(slots, choice.ways_in[mine])
        self.selective.add(slots)

    def _worthwhile(
        self, selective: BoolArray, choice: AccessChoice, sizes: Int64Array, rows: Intervals
    ) -> BoolArray:
        """bool[n]: which of the selective slots have a path that has, or gets, enough of them.

        The others wait in the dense cohort and are called when they are many.
        """
        attribute, point = choice.paths(sizes, rows)
        kept = selective.copy()
        for name in set(zip(attribute[selective].tolist(), point[selective].tolist(), strict=True)):
            mine = selective & (attribute == name[0]) & (point == name[1])
            if name in self.selective.paths or name[0] < 0:
                continue
            self._waiting[name] += int(mine.sum())
            if self._waiting[name] < PATH_MIN:
                kept &= ~mine
            else:
                self._unseen = self._slots.used
        return kept

    def drop(self, slot: int) -> None:
        """A slot whose rows are still in the store goes."""
        place = self.now.of(slot)
        if place == SELECTIVE:
            self.selective.drop(slot)
        else:
            self.dense.drop(place, int(self._store.count[slot]))

    def revise(self, oldest_epoch: int) -> list[int]:
        """Change the cohort of some slots between two segments, as the rows that came suggest; returns those.

        Slots that came before there was a sample to measure them by are looked at first, then all in turn,
        seldom. oldest_epoch: of the segments that are kept. O(REVISED_SLOTS * log sample).
        """
        moved: list[int] = []
        self._seals += 1
        self._epochs = [held for held in self._epochs if held.epoch >= oldest_epoch or held is self.now]
        if len(self._epochs) == 1:
            for place in self._withheld:
                self.dense.release(place)
            self._withheld.clear()
        due = self._unseen > 0 or self._seals % REVISED_EVERY == 0
        if due and len(self._sample) >= SAMPLE_MIN and len(self._epochs) < EPOCHS_MAX:
            first = self._revised if self._revised < self._slots.used else 0
            self._revised = first + REVISED_SLOTS
            self._unseen = max(0, self._unseen - REVISED_SLOTS)
            if not self._unseen:
                self._waiting.clear()
            moved = self._move(self._slots.held(first, self._revised))
        self.dense.trim()
        return moved

    def _move(self, slots: Int64Array) -> list[int]:
        if not len(slots):
            return []
        sizes = self._store.count[slots].astype(np.int64)
        _, rows = self._store.of(slots)
        choice = self._sample.choose(sizes, self._store.terms[slots].astype(np.int64), rows)
        sparse = self.now.place[slots] == SELECTIVE
        leave = sparse & (choice.share > REVISION_GAIN * SHARE_MAX)
        enter = ~sparse & (choice.share * REVISION_GAIN < SHARE_MAX)
        attribute, point = choice.paths(sizes, rows)
        for name in set(zip(attribute[enter].tolist(), point[enter].tolist(), strict=True)):
            mine = enter & (attribute == name[0]) & (point == name[1])
            if name not in self.selective.paths and max(self._waiting[name], mine.sum()) < PATH_MIN:
                enter &= ~mine
        if not leave.any() and not enter.any():
            return []
        before = self.now
        now = Cohorts(before.epoch + 1, before.place.copy())
        for slot in slots[leave].tolist():
            self.selective.drop(slot)
            now.place[slot] = self.dense.add(slot)
        for slot in slots[enter].tolist():
            place = int(before.place[slot])
            self.dense.drop(place, int(self._store.count[slot]), free=False)
            self._withheld.append(place)
            now.place[slot] = SELECTIVE
        self._reach(slots[enter], choice, np.repeat(enter, sizes))
        self._epochs.append(now)
        moved: list[int] = slots[enter | leave].tolist()
        return moved

    def nbytes(self) -> int:
        """Bytes of both cohorts, and of the places."""
        places = sum(held.place.nbytes for held in self._epochs)
        return places + self.dense.nbytes() + self.selective.nbytes()

"""How many rows of a source each slot's predicate accepts, of the rows that are held.

Read off what is kept, in one pass over all slots: no predicate is evaluated. Rows that have gone from a
segment's begin are still counted until the segment goes. Any thread may read; a slot that went while it was
counted has another generation afterwards, which is for the caller to compare.

Cost: O(slots) a segment for lists, O(words * rows + matches) where bits are dense.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.model.batch import BoolArray, Int32Array, Int64Array
from engine.store.matches.cohorts import SELECTIVE
from engine.store.matches.part_matches import PartMatches


@dataclass(frozen=True, slots=True)
class HeldMatches:
    """Counts how many of the held rows of a source each slot accepts. counts, known: as :func:`match_counts`
    gives them. generations: int64[slots], those of the slots, an array that goes on changing. rows: how many
    rows are held.
    """

    counts: Int64Array
    known: BoolArray
    generations: Int64Array
    rows: int

    def at(self, places: Int64Array) -> npt.NDArray[np.float64]:
        """Returns the counts at places of matches, float64[n]; NaN where a count is not known, or the slot is
        another predicate's by now. places: int64[n], the slot in the low 32 bits, its generation above.
        """
        slots, generations = places & 0xFFFFFFFF, places >> 32
        found = np.full(len(places), np.nan)
        there = np.flatnonzero((generations >= 0) & (slots < len(self.counts)))
        mine = self.known[slots[there]] & (self.generations[slots[there]] == generations[there])
        there = there[mine]
        found[there] = self.counts[slots[there]]
        return found


def match_counts(segments: Iterable[tuple[PartMatches, int]], slots: int) -> tuple[Int64Array, BoolArray]:
    """Count the rows that each slot accepts. segments: the matches of each, and how many rows it has.

    Returns int64[slots], the rows of all segments that a slot accepts, and bool[slots], whether that is
    known: not while matches of some segment are still to be made.
    """
    counts = np.zeros(slots, np.int64)
    known = np.ones(slots, np.bool_)
    for matches, rows in segments:
        places = _places(matches, slots)
        selective = places == SELECTIVE
        counts[selective] += _listed(matches, slots)[selective]
        if not selective.all():
            dense = np.flatnonzero(~selective)
            counts[dense] += matches.bits.counts(rows, int(places.max()) + 1)[places[dense]]
        owed = np.array([slot for slot in matches.owed.copy() if slot < slots], np.int64)
        known[owed] = False
    return counts, known


def _places(matches: PartMatches, slots: int) -> Int32Array:
    """int32[slots]: as :meth:`Cohorts.of` has them."""
    places = np.full(slots, SELECTIVE, np.int32)
    there = matches.cohorts.place[:slots]
    places[: len(there)] = there
    return places


def _listed(matches: PartMatches, slots: int) -> Int64Array:
    """int64[slots]: rows in lists and in the log. The newest lot that speaks for a slot tells all below its
    ``upto``, the log what follows.
    """
    counts = np.zeros(slots, np.int64)
    upto = np.zeros(slots, np.int32)
    for lists in matches.lists:
        mine = lists.slots < slots
        counts[lists.slots[mine]] = np.diff(lists.starts)[mine]
        upto[lists.slots[mine]] = lists.upto
    if matches.log is not None:
        rows, owners = matches.log
        mine = owners < slots
        rows, owners = rows[mine], owners[mine]
        counts += np.bincount(owners[rows >= upto[owners]], minlength=slots)
    return counts

"""Which rows that a group over one stream was offered are the most promising.

An entry keeps its priority until it gets new rows or members: these, and new entries, are ranked before rows
are visited. A priority fades with the granularity of the zone that its cell is in now.

Cost: that of :func:`engine.promising.row_priorities.ranked` for entries that are new; O(entries) to fade.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from engine.model.batch import BoolArray, Column, Int64Array
from engine.operators.gather import gather
from engine.operators.scan import ScanAt
from engine.promising.cell_places import CellPlaces
from engine.promising.cell_values import RetainedAttribute
from engine.promising.group import GroupKey
from engine.promising.offered_rows import OfferedRows
from engine.promising.picking import EMPTY, UNRANKED, faded
from engine.promising.row_entries import FRESH, before
from engine.promising.row_filter import places_of
from engine.promising.row_priorities import ranked
from engine.summaries.summary import Summary


class RowRanking:
    """The priorities of the entries of a group."""

    def __init__(self, key: GroupKey, offered: OfferedRows, summary: Summary) -> None:
        self._key = key
        self._offered = offered
        self._summary = summary

    def rank(self, scan_at: ScanAt) -> None:
        """Tell the priorities of entries that are new, or have new rows or members."""
        offered = self._offered.set
        entries = offered.entries
        fresh = np.flatnonzero(entries.standing <= FRESH)
        if not len(fresh):
            return
        some = entries.take(fresh)
        attribute = RetainedAttribute(scan_at.rows.base, partial(self.values_at, scan_at))
        told = ranked(self._key, some, attribute, self._offered.members, self._offered.named, self._summary)
        priority, standing = entries.priority.copy(), entries.standing.copy()
        priority[fresh], standing[fresh] = told.priority, told.standing
        offered.entries = replace(entries, priority=priority, standing=standing)
        former = before(some.standing)
        empty, unranked = (
            int(np.count_nonzero(told.standing == rank)) - int(np.count_nonzero(former == rank))
            for rank in (EMPTY, UNRANKED)
        )
        counts = offered.counts
        offered.counts = replace(counts, pruned=counts.pruned + empty, unranked=counts.unranked + unranked)

    def faded(self) -> npt.NDArray[np.float64]:
        """float64[entries]: their priorities now."""
        entries = self._offered.set.entries
        if self._key.fade == 1.0:
            return entries.priority
        granularity = CellPlaces.of(entries, self._summary).granularity
        return faded(self._key.order, entries.priority, self._key.fade, granularity)

    def least(self, count: int, scan_at: ScanAt) -> BoolArray:
        """bool[entries]: so many, the least promising. They are ranked first."""
        self.rank(scan_at)
        entries = self._offered.set.entries
        priority = self.faded()
        best_last = -priority if self._key.order == "asc" else priority
        order = np.lexsort((np.arange(len(entries))[::-1], best_last, -entries.standing.astype(np.int64)))
        found = np.zeros(len(entries), np.bool_)
        found[order[:count]] = True
        return found

    def values_at(self, scan_at: ScanAt, ordinals: Int64Array) -> Column:
        """The summarised attribute of rows. ordinals: int64[n], of retained rows."""
        distinct, place = np.unique(ordinals, return_inverse=True)
        places = places_of(scan_at.rows, distinct)
        column = self._offered.members.column
        return gather(column, scan_at.rows.schema, places, len(distinct)).take(place)

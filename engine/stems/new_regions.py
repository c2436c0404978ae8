"""The regions of queries that just came, and which segments they rule out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.domains.domain import KEY_MAX, KEY_MIN
from engine.model.batch import BoolArray, Int64Array
from engine.stems.region_store import NULL_TOO, Intervals, RegionStore
from engine.stems.zone import SegmentZone


@dataclass(frozen=True, slots=True)
class NewRegions:
    """The new queries' rows of the store, and where terms and attributes begin.

    attributes: those they speak of; which: of each row, its place among them. groups: where a (slot, term,
    attribute) begins among the rows; terms: where a (slot, term) begins among the groups; owner: of each
    term, the place of its slot. possible: slots with a term that speaks of nothing.
    """

    rows: Intervals
    attributes: list[int]
    which: Int64Array
    null_too: BoolArray
    groups: Int64Array
    terms: Int64Array
    owner: Int64Array
    possible: BoolArray

    @classmethod
    def of(cls, store: RegionStore, slots: Int64Array) -> NewRegions:
        counts = store.count[slots].astype(np.int64)
        _, rows = store.of(slots)
        attributes, which = np.unique(rows.attribute, return_inverse=True)
        owner = np.repeat(np.arange(len(slots)), counts)
        first = np.ones(len(rows), np.bool_)
        first[1:] = (owner[1:] != owner[:-1]) | (rows.term[1:] != rows.term[:-1])
        begins = first.copy()
        begins[1:] |= which[1:] != which[:-1]
        groups, terms = np.flatnonzero(begins), np.flatnonzero(first)
        with_rows = np.bincount(owner[terms], minlength=len(slots))
        return cls(
            rows,
            attributes.tolist(),
            which,
            (rows.flags & NULL_TOO) > 0,
            groups,
            np.searchsorted(groups, terms),
            owner[terms],
            with_rows < store.terms[slots],
        )

    def possible_in(self, zones: Sequence[SegmentZone | None]) -> BoolArray:
        """Which of the slots may accept a row of such a segment. O(intervals)."""
        if not len(self.rows):
            return self.possible
        held = [zones[index] if index < len(zones) else None for index in self.attributes]
        low = np.array([KEY_MIN if zone is None else zone.low for zone in held], np.int64)
        high = np.array([KEY_MAX if zone is None else zone.high for zone in held], np.int64)
        null = np.array([zone is None or zone.null for zone in held], np.bool_)
        which, rows = self.which, self.rows
        passes = (rows.low <= high[which]) & (rows.last >= low[which]) & (rows.low <= rows.last)
        passes |= self.null_too & null[which]
        of_group = np.logical_or.reduceat(passes, self.groups)
        of_term = np.logical_and.reduceat(of_group, self.terms)
        possible = self.possible.copy()
        possible[self.owner[of_term]] = True
        return possible
